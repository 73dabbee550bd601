"""The log of a process: a JSON document a line on stderr; of a server, with the id of each request and nothing that was
sent or answered."""

import logging
import logging.config
from collections.abc import Mapping
from typing import Any

from recallog.json_lines import FIELDS, JsonLines, describe_error
from recallog_schemas.errors import InvariantViolation

_log = logging.getLogger("recallog.http")

CONFIGURATION: Mapping[str, Any] = {
    "formatters": {"json": {"()": JsonLines}},
    "handlers": {"default": {"class": "logging.StreamHandler", "formatter": "json"}},
    # Their lines have URLs, with the names of spaces and agents.
    "loggers": {name: {"level": "WARNING"} for name in ("httpx", "httpcore")},
}
"""What the logs of all processes have in common, as `logging.config` takes it."""


def to_stderr(level: str) -> None:
    """Write the log of this process to stderr, from `level` on, with the warnings of Python, but no details of
    libraries: some show what is sent."""
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.config.dictConfig(
        {
            **CONFIGURATION,
            "version": 1,
            "disable_existing_loggers": False,
            "root": {"level": max(number, logging.INFO), "handlers": ["default"]},
        }
    )
    logging.getLogger("recallog").setLevel(number)
    logging.captureWarnings(True)


def request(message: str, **fields: Any) -> None:
    """Log an answered request."""
    _log.info(message, extra={FIELDS: fields})


def event(message: str, **fields: Any) -> None:
    """Log an event of interest to operators."""
    _log.warning(message, extra={FIELDS: fields})


def defect(error: BaseException, request_id: str) -> InvariantViolation:
    """Log where an unexpected error was raised, and return the message for the client."""
    _log.error("a request failed because of a defect", extra={FIELDS: {"request": request_id, **describe_error(error)}})
    return InvariantViolation(f"a defect of the server, logged as {request_id}; report it with the lines of the log")
