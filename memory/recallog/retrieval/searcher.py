"""The parts that one query for memories uses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from recallog.retrieval.term_cache import TermCache
from recallog_schemas.errors import IndexUnavailable

if TYPE_CHECKING:
    from recallog.index.indexer import IndexSnapshot
    from recallog.index.semantic_index import SemanticIndex
    from recallog.retrieval.memory_index import FedIndex
    from recallog.retrieval.sources import CandidateSource


@dataclass(frozen=True)
class Searcher:
    """The parts that one query for memories uses, as the memory has them when the query is read."""

    index: "SemanticIndex | None" = None
    """None: the semantic index is off."""
    cache: TermCache = field(default_factory=TermCache)
    relevance: "FedIndex | None" = None
    """The program's own index, which measures relevance for salience; None if it provides none."""
    added: "Mapping[str, Callable[[], CandidateSource]]" = field(default_factory=dict)
    """Factories of the sources of models that are not built in, by the names of the models."""

    async def open_index(self, partition: int) -> "IndexSnapshot":
        """The generation of the index that answers. Raises `IndexUnavailable` if none does, or if the index is off."""
        if self.index is None:
            raise IndexUnavailable("the index is off")
        return await self.index.open(partition)

    @cached_property
    def sources(self) -> "Sequence[CandidateSource]":
        """The candidate sources of the memory models."""
        from recallog.retrieval import sources

        return [*sources.built_in(), *(make() for make in self.added.values())]
