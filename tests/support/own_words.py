"""A projection of a user's own that cannot apply each record."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from recallog.extending import Record, Rows, Table


class Spoken(msgspec.Struct, frozen=True):
    """How many words an agent has spoken."""

    words: int


WORDS = Table("words", Spoken)


class Words:
    """Counts the words of each agent. It raises on the word "bad"."""

    name: ClassVar[str] = "words"
    version: ClassVar[int] = 1
    tables = (WORDS,)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            said = record.event
            if "bad" in said.text:
                raise ValueError("cannot count that")
            row = rows.get(WORDS, said.space, said.agent) or Spoken(0)
            rows.put(WORDS, Spoken(row.words + len(said.text.split())), said.space, said.agent)


class Lines(Words):
    """A second projection."""

    name: ClassVar[str] = "lines"


unusable = 7
