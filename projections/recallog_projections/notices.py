"""Notices: a warning that is logged once in a process, however often its cause is met.

Without configured logging Python prints it to stderr; the command line prints it there as `warning: …`.
"""

import logging
from collections.abc import Hashable

_said: set[tuple[str, Hashable]] = set()


def warn_once(area: str, cause: Hashable, message: str) -> None:
    """Log `message` as a warning of the logger `recallog.<area>`, unless this process has done so for `cause`."""
    if (area, cause) not in _said:
        _said.add((area, cause))
        logging.getLogger(f"recallog.{area}").warning("%s", message)


def forget() -> None:
    """Forget what was said, so that every cause is said again."""
    _said.clear()
