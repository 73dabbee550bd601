"""Words that are capitalised because a sentence begins with them, in lower case.

Words that are mainly names ("Mark", "Will", "Max") are not among them. The folder `function_words` has them by
language, and also the common English ones.
"""

from pathlib import Path

_FOLDER = Path(__file__).with_name("function_words")


def _words(name: str) -> frozenset[str]:
    return frozenset((_FOLDER / f"{name}.txt").read_text("utf-8").split())


FUNCTION_WORDS = _words("english") | _words("german") | _words("romance")
"""Dropped in front of a name, wherever the name is."""
COMMON_WORDS = _words("common")
"""Words that begin sentences of conversations and notes. One that stands alone at the beginning of a sentence is not
a name."""
ACRONYMS = frozenset({"asap", "btw", "fyi", "imo", "lol", "ok", "omg", "tbh"})
"""Dropped in capitals too; other words in capitals are names: AT, US, WHO."""
ARTICLES = frozenset({"a", "an", "the"})
"""Dropped from the beginning of quoted names too: "The Hobbit" and Hobbit are one entity."""
TITLES = frozenset({"dr", "jr", "mr", "mrs", "ms", "prof", "sr", "st"})
"""Abbreviations whose full stop does not end a name."""
