"""A cache of the terms of memories, bounded in bytes: queries by words compare the same memories again and again."""

import sys
from collections import OrderedDict
from typing import NamedTuple

from recallog_schemas import limits

_ENTRY_BYTES = 512
"""The size of an entry without its texts and weights: tuples, integers, and its share of the table."""
_WEIGHT_BYTES = sys.getsizeof(1.0)


class MemoryTerms(NamedTuple):
    """The fields of a memory that recall by words compares."""

    agent: str
    kind: str
    session: str
    at: int
    is_question: bool
    length: int
    text_key: int
    weights: dict[str, float] | None
    """BM25 weights by term; None for a memory without text."""

    @property
    def size_bytes(self) -> int:
        """The memory that the entry takes if it shares no text with other entries."""
        texts = (self.agent, self.kind, self.session, *(self.weights or ()))
        return (
            _ENTRY_BYTES
            + sum(map(sys.getsizeof, texts))
            + (sys.getsizeof(self.weights) + len(self.weights) * _WEIGHT_BYTES if self.weights else 0)
        )


class TermCache:
    """Terms by generation and offset. Above `bytes_max`, the least recently used are removed.

    An offset has one text for all agents within a generation. In another generation its text may differ.
    """

    def __init__(self, bytes_max: int = limits.CACHED_TERMS_BYTES) -> None:
        self._bytes_max = bytes_max
        self._entries: OrderedDict[tuple[str, int], MemoryTerms] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, generation: str, offset: int) -> MemoryTerms | None:
        key = generation, offset
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, generation: str, offset: int, found: MemoryTerms) -> None:
        """Add an entry that `get` did not find."""
        self._entries[generation, offset] = found
        self.size_bytes += found.size_bytes
        while self.size_bytes > self._bytes_max:
            _, removed = self._entries.popitem(last=False)
            self.size_bytes -= removed.size_bytes
