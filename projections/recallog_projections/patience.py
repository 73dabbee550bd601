"""Patience: work that takes minutes, such as a rebuild, waits for servers as long as a worker does.

Somebody waits for the answer to a question, so a question gives up after two seconds of silence. A rebuild that gives
up loses its work. Patience belongs to the call, not to a connection: one process answers questions and rebuilds views.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from recallog_schemas import limits

OUTAGE_SECONDS: Final = 30.0
"""How long a patient call is repeated while a server that has answered before cannot be reached."""

_is_patient: ContextVar[bool] = ContextVar("recallog_is_patient", default=False)


@contextmanager
def patient() -> Iterator[None]:
    """Be patient in the block, and in the tasks that it starts."""
    token = _is_patient.set(True)
    try:
        yield
    finally:
        _is_patient.reset(token)


def is_patient() -> bool:
    """Whether the present call is patient."""
    return _is_patient.get()


def answer_seconds(of_question: float) -> float:
    """How long the present call waits for an answer, where a question waits `of_question`."""
    return max(of_question, limits.PATIENT_SECONDS) if _is_patient.get() else of_question
