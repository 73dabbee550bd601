"""The texts of working memory that an agent wants to keep when a session ends.

A line qualifies that begins with LESSON, STRATEGY, INFO, INSIGHT or NOTE and a colon, in any case, followed by
a text. Strings at any depth of a value are judged line by line. Keys that begin with `_` are skipped, with all below
them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from recallog_projections.models.items import projection as items
from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey
from recallog_schemas import limits
from recallog_schemas.models.long_term import limits as long_term_limits

_QUALIFYING = re.compile(r"(?:LESSON|STRATEGY|INFO|INSIGHT|NOTE):\s*\S", re.ASCII | re.IGNORECASE)

KeptText = tuple[str, str]
"""The path of a text, for example `recent_insights.0`, and the text."""


def texts_in(rows: Rows, space: str, agent: str, session: str | None) -> Iterator[KeptText]:
    """The texts that the agent wants to keep: from its blocks of working memory, then from its scratchpad of the
    session."""
    for namespace, key in _items(rows, space, agent, session):
        row = rows.get(items.ROWS, space, agent, items.path_of(namespace, key))
        if row is not None:
            yield from texts_of(key, items.value_of(row))


def _namespaces(session: str | None) -> list[Sequence[str]]:
    working: list[Sequence[str]] = [(items.WORKING,)]
    return working if session is None else [*working, items.session_namespace(session)]


def rows_of(space: str, agent: str, session: str | None, paths: Iterable[str]) -> list[RowKey]:
    """The addresses of the items in which texts at these paths may be. A key may contain dots."""
    keys = {path[:end] for path in paths for end in (*(dot.start() for dot in re.finditer(r"\.", path)), None)}
    return [
        RowKey(items.ROWS.name, space, agent, items.path_of(namespace, key))
        for namespace in _namespaces(session)
        for key in sorted(keys)
    ]


def _items(rows: Rows, space: str, agent: str, session: str | None) -> Iterator[tuple[Sequence[str], str]]:
    """The namespaces and keys of the agent's items, by key within each namespace."""
    for namespace in _namespaces(session):
        listed = rows.get(items.NAMESPACES, space, agent, items.prefix_of(namespace))
        for key in listed.keys if listed is not None else ():
            if not key.startswith("_"):
                yield namespace, key


def texts_of(key: str, value: Any) -> Iterator[KeptText]:
    """The qualifying lines in the value of the item `key`: objects by key, lists in their order."""
    if key.startswith("_"):
        return
    if isinstance(value, str):
        for line in value.splitlines():
            if _QUALIFYING.match(text := line.strip()):
                yield key, text
    elif isinstance(value, dict):
        for name in sorted(value):
            if not name.startswith("_"):
                yield from texts_of(_below(key, name), value[name])
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from texts_of(_below(key, str(index)), each)


def qualifies(text: str) -> bool:
    """Whether a text may be one of working memory that an agent wants to keep."""
    return _QUALIFYING.match(text.strip()) is not None


def _below(path: str, name: str) -> str:
    return f"{path}.{name}"[: long_term_limits.MIGRATED_PATH_CHARS_MAX]


def type_of(text: str) -> str:
    """The type of the entry that a qualifying text becomes: its prefix in lower case."""
    return text.partition(":")[0].lower()


def parts_of(texts: Iterable[KeptText]) -> list[Sequence[KeptText]]:
    """The texts in parts that fit one row each. Only the first of equal texts remains."""
    parts: list[list[KeptText]] = []
    seen, size = set[str](), 0
    for path, text in texts:
        if text in seen:
            continue
        seen.add(text)
        added = len(path.encode()) + len(text.encode())
        if not parts or size + added > long_term_limits.MIGRATED_BYTES_MAX or len(parts[-1]) == limits.EVENT_IDS_MAX:
            parts.append([])
            size = 0
        parts[-1].append((path, text))
        size += added
    return list(parts)
