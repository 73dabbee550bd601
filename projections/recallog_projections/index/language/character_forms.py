"""Simplified and traditional forms of Chinese terms, by the tables of characters in the package of the extra
`multilingual`. Without the package, terms have no other forms."""

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import product

from recallog_projections.index.language.words import HAN


@lru_cache(maxsize=16_384)
def find_other_forms(term: str) -> tuple[str, ...]:
    """`term` in simplified and in traditional characters, without `term` itself. If a character has several forms, each
    gives a term. Exact strings, which are longer than pairs of characters, have no other forms."""
    if len(term) > 2 or not HAN.search(term):
        return ()
    found = ["".join(form) for table in _tables() for form in product(*(table.get(one, one) for one in term))]
    return tuple(form for form in dict.fromkeys(found) if form != term)


def without_unused_forms(searched: Sequence[str], used: Collection[str]) -> list[str]:
    """The terms `searched`, without unused forms: texts have another form of the term, which is then `used`, or it is
    searched earlier. Otherwise a word that texts have in one form would also count as a rare word that they lack."""
    return [
        term
        for at, term in enumerate(searched)
        if term in used or term.isascii() or {*used, *searched[:at]}.isdisjoint(find_other_forms(term))
    ]


@lru_cache(maxsize=1)
def _tables() -> Sequence[dict[str, str]]:
    """By traditional character its simplified forms, and by simplified character its traditional ones."""
    from importlib import resources  # takes milliseconds, and few commands read Chinese

    try:
        folder = resources.files("opencc") / "dictionary"
        texts = [(folder / f"{name}.txt").read_text("utf-8") for name in ("TSCharacters", "STCharacters", "TWVariants")]
    except (ModuleNotFoundError, FileNotFoundError):  # a package without these files may have the same name
        return ()
    tables = [{line[0]: line[2:].replace(" ", "") for line in text.splitlines()} for text in texts]
    simplified, traditional, variants = tables
    pairs = {one: forms[0] for one, forms in simplified.items()}
    for one, form in pairs.items():  # the second table has one of several variants
        traditional[form] = "".join(dict.fromkeys(traditional.get(form, form) + one + variants.get(one, "")))
    return pairs, traditional
