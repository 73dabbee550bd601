"""The memory model of facts: entries that are extracted from texts, and the entities that they name."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recallog.model import Model
from recallog.models.facts.operations import LongTerm

if TYPE_CHECKING:
    from recallog.access import MemoryAccess
    from recallog.reactors.reactor import Reactor


def _reactors(access: "MemoryAccess") -> "Sequence[Reactor]":
    from recallog.models.facts.askers import EXTRACTOR
    from recallog.models.facts.reactor import Extraction
    from recallog.reactors.misconfigured import unless_misconfigured

    return [unless_misconfigured(Extraction.kinds, lambda: Extraction(access, access.asker(EXTRACTOR)))]


MODEL = Model(name="facts", after=("long_term",), operations=LongTerm, reactors=_reactors)
