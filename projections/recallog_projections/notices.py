"""Notices: a warning that is logged once in a process, however often its cause is met.

Without configured logging Python prints it to stderr; the command line prints it there as `warning: …`.
"""

import logging
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_said: set[tuple[str, Hashable]] = set()


def warn_once(area: str, cause: Hashable, message: str) -> None:
    """Log `message` as a warning of the logger `recallog.<area>`, unless this process has done so for `cause`."""
    if (area, cause) not in _said:
        _said.add((area, cause))
        logging.getLogger(f"recallog.{area}").warning("%s", message)


_told: ContextVar[list[str] | None] = ContextVar("told", default=None)


def tell(area: str, message: str) -> None:
    """Tell the caller of an operation about a probable mistake: in the list of `collect_notices`, or by a warning."""
    told = _told.get()
    if told is None:
        warn_once(area, message, message)
    elif message not in told:
        told.append(message)


@contextmanager
def collect_notices() -> Iterator[list[str]]:
    """Collect the notices of the block, to include them in an answer: a server's log has no names of its clients."""
    messages: list[str] = []
    token = _told.set(messages)
    try:
        yield messages
    finally:
        _told.reset(token)


def forget() -> None:
    """Forget which causes were logged, so that each is logged again."""
    _said.clear()
