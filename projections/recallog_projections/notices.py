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
    """Tell the caller of an operation about a probable mistake: by a warning, once; a door by what it answers."""
    told = _told.get()
    if told is None:
        warn_once(area, message, message)
    elif message not in told:
        told.append(message)


@contextmanager
def collect_notices() -> Iterator[list[str]]:
    """Collect the notices within it, for a door that answers them: the log of a server has no names of its clients."""
    messages: list[str] = []
    token = _told.set(messages)
    try:
        yield messages
    finally:
        _told.reset(token)


def forget() -> None:
    """Forget what was said, so that every cause is said again."""
    _said.clear()
