"""Tables of words: `<name>.txt` has one entry in each line; lines that begin with "#" say what it is."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path


@cache
def lines(name: str) -> Sequence[str]:
    """The entries of a table."""
    table = (Path(__file__).parent / f"{name}.txt").read_text(encoding="utf-8")
    return tuple(line for line in table.splitlines() if line and not line.startswith("#"))


@cache
def words(name: str) -> frozenset[str]:
    """The words of a table."""
    return frozenset(word for line in lines(name) for word in line.split())


@cache
def replacements(name: str) -> Sequence[tuple[str, str]]:
    """Each phrase of a table "said = phrase, phrase", and what is said instead; the longest first."""
    groups = [line.split("=") for line in lines(name)]
    pairs = [(phrase.strip(), said.strip()) for said, phrases in groups for phrase in phrases.split(",")]
    return sorted(pairs, key=lambda pair: -len(pair[0]))


def rewritten(name: str, text: str) -> Iterator[str]:
    """What a text becomes by each pattern of a table "pattern => form" that it matches as a whole."""
    for line in lines(name):
        pattern, _, form = line.partition(" => ")
        found = re.fullmatch(pattern, text)
        if found is not None:
            yield found.expand(form)
