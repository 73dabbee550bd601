"""Blocks of facts: how one is added to the text of an item, and how the document of a day stays short.

A document is an item of the namespace `workspace`; its key is its path. Pure functions of texts and dates. Characters
are those of Python: code points.
"""

import re
from collections.abc import Sequence
from datetime import date

from recallog_schemas.models.items import limits as items_limits

WORKSPACE = ("workspace",)
"""The namespace of documents."""
MEMORY = "MEMORY.md"
"""The document of facts that are always worth knowing."""

_DAILY = re.compile(r"memory/\d{4}-\d{2}-\d{2}\.md")
_BULLET = "- "


class NoDocument(Exception):
    """Facts are added to this document only if it exists."""


class NoRoom(Exception):
    """The document is too long for more facts."""


def daily_key(day: date) -> str:
    """The key of the document of a day: `memory/2026-11-23.md`. Times are those of UTC."""
    return f"memory/{day:%Y-%m-%d}.md"


def with_block(namespace: Sequence[str], key: str, before: str | None, lines: str, day: date) -> str:
    """The text of an item, followed by a block of facts.

    `before` is its text, None if it does not exist; `lines` are the facts, without a line break at the end; `day` is
    the date of the event that brings them. A daily document gets a heading and the lines, and is compacted;
    `MEMORY.md` gets a heading and the lines; any other item the lines.

    Raises `NoRoom` and `NoDocument`.
    """
    in_workspace = tuple(namespace) == WORKSPACE
    if in_workspace and _DAILY.fullmatch(key):
        # An edited document may end within a line.
        start = f"{before}\n" if before and not before.endswith("\n") else before or ""
        whole = f"{start}## Session Facts ({day:%Y-%m-%d})\n{lines}\n\n"
        if len(whole) > items_limits.DAILY_CHARS_MAX:
            raise NoRoom
        return compact_document(whole)
    if in_workspace and key == MEMORY:
        if before is None:
            raise NoDocument
        if len(before) >= items_limits.MEMORY_DOCUMENT_CHARS:
            raise NoRoom
        return f"{before}\n## Auto-extracted ({day:%Y-%m-%d})\n{lines}"
    return f"{before}\n{lines}" if before else lines


def compact_document(text: str) -> str:
    """A daily document without repeated bullets; one of up to 2,000 characters is not changed.

    Two bullets are equal if their first 80 characters, case-folded and including `- `, are equal. The first one stays,
    and so do headings and all other lines.
    """
    if len(text) <= items_limits.DAILY_CHARS_UNCOMPACTED:
        return text
    seen = set[str]()
    kept = []
    for line in text.split("\n"):
        if line.startswith(_BULLET):
            beginning = line[: items_limits.DAILY_BULLET_CHARS].casefold()
            if beginning in seen:
                continue
            seen.add(beginning)
        kept.append(line)
    return "\n".join(kept)
