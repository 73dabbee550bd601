"""Reactors: code that answers triggers with new events, the loop that runs them, and what they ask.

Reflectors write beliefs, extractors draw facts, synthesizers answer questions. Each module is imported when it is first
used, as `reactors.<module>`.
"""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.reactors import answering as answering
    from recallog.reactors import endpoint as endpoint
    from recallog.reactors import extraction as extraction
    from recallog.reactors import extractive as extractive
    from recallog.reactors import extractor as extractor
    from recallog.reactors import heuristic as heuristic
    from recallog.reactors import loop as loop
    from recallog.reactors import migration as migration
    from recallog.reactors import pace as pace
    from recallog.reactors import reactor as reactor
    from recallog.reactors import reflection as reflection
    from recallog.reactors import reflector as reflector
    from recallog.reactors import retraction as retraction
    from recallog.reactors import synthesizer as synthesizer
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {},
        submodules=[
            "answering",
            "endpoint",
            "extraction",
            "extractive",
            "extractor",
            "heuristic",
            "loop",
            "migration",
            "pace",
            "reactor",
            "reflection",
            "reflector",
            "retraction",
            "synthesizer",
        ],
    )
