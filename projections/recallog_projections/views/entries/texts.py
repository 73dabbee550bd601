"""Equal texts of entries: the keys by which an entry finds its exact duplicates."""

import hashlib
import unicodedata
from collections.abc import Sequence

NEVER_DEDUPLICATED = frozenset({"tool_usage", "summary", "experience"})
"""The types of entries of which equal ones are kept: each of them records something that happened."""


def digest_key(type_: str, text: str, audience: Sequence[str] = (), *, shared: bool = False) -> str:
    """The key of an entry of the type `type_` among those of its owner: entries with the same key are duplicates.

    Texts are equal if they are after normalisation (NFC) with white space trimmed and collapsed. An entry that other
    agents may read is no duplicate of one that others, or fewer, may read: `audience` are the names, sorted and without
    the owner.
    """
    readers = "*" if shared else ",".join(audience)
    words = " ".join(unicodedata.normalize("NFC", text).split())
    digest = hashlib.blake2b(f"{readers}\n{words}".encode(), digest_size=16)
    return f"{type_}/{digest.hexdigest()}"
