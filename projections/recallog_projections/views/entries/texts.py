"""Equal texts: the keys by which an entry finds its exact duplicates, and a migration what was kept before."""

import hashlib
import unicodedata
from collections.abc import Sequence

NEVER_DEDUPLICATED = frozenset({"tool_usage", "summary", "experience"})
"""The types of entries of which equal ones are kept: each of them records something that happened."""


def digest_key(
    type_: str, text: str, audience: Sequence[str] = (), *, shared: bool = False, subject: str | None = None
) -> str:
    """The key of an entry of the type `type_` among those of its owner: entries with the same key are duplicates.

    Texts are equal if they are after normalisation (NFC) with white space trimmed and collapsed. An entry that other
    agents may read is no duplicate of one that others, or fewer, may read: `audience` are the names, sorted and without
    the owner. Nor is one about a person (`subject`) a duplicate of one about another person.
    """
    readers = "*" if shared else ",".join(audience)
    return f"{type_}/{_digest(readers, subject or '', _words(text))}"


def text_key(text: str) -> str:
    """The key of a text, whatever the type and the readers of the entry that has it."""
    return _digest(_words(text))


def _words(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
