"""Hides from callers the messages of errors that are for operators."""

import logging

from recallog_schemas.errors import (
    IndexUnavailable,
    InvariantViolation,
    ModelFailed,
    ModelMisconfigured,
    ProjectionError,
    RecallogError,
    SettingsError,
    StorageError,
)

FOR_OPERATORS = (
    StorageError,
    IndexUnavailable,
    ModelFailed,
    ModelMisconfigured,
    ProjectionError,
    SettingsError,
    InvariantViolation,
)
"""Errors whose messages may name hosts, folders, and records of other callers."""

_log = logging.getLogger("recallog.access")


def conceal_error(error: RecallogError) -> RecallogError:
    """The error without its message and its fields. It is logged."""
    name = type(error).__name__
    _log.error("an error whose message is for operators", exc_info=error)
    message = f"the memory cannot answer now: {name}; the same call with an operator's key says why"
    told = type(error).__new__(type(error), message)
    if told.retryable is not error.retryable:
        vars(told)["retryable"] = error.retryable
    return told
