"""Reactors: code that answers triggers with new events, the loop that runs them, and what they ask.

Reflectors write beliefs, extractors draw facts, synthesizers answer questions. Each module is imported when it is first
used, as `reactors.<module>`.
"""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.reactors import answering as answering
    from recallog.reactors import loop as loop
    from recallog.reactors import pace as pace
    from recallog.reactors import reactor as reactor
else:
    __getattr__, __dir__ = lazy_exports(__name__)
