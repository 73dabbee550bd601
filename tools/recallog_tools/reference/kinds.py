"""The page of kinds: the catalogue as a table, then the payload of each kind."""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from recallog_schemas.docstrings import attribute_docstrings
from recallog_schemas.kinds import (
    ACTION,
    BOOKKEEPING,
    CATALOGUE,
    DEFAULT_IMPORTANCE,
    ENTRY,
    MEMORY,
    VISITOR,
    Kind,
    Payload,
    Role,
)
from recallog_tools.reference.facades import SCHEMAS
from recallog_tools.reference.markdown import bounds, code, docstring, sections, table
from recallog_tools.reference.signatures import type_text, value_text
from recallog_tools.reference.views import contained

_NOT_RECALLED = " and ".join(f"`{kind.name}`" for kind in CATALOGUE.values() if kind.is_episode and not kind.recalled)

_INTRODUCTION = f"""\
The kind of an event determines who sees it, how much it weighs, and what its text is. Kinds are an open set. One that
is not listed here is private, has importance {DEFAULT_IMPORTANCE}, and its text is the first of `text`, `belief`,
`summary` and `goal` that its payload has, unless its space [declares otherwise](../producers.md#kinds-of-your-own).
`recallog schema kinds` lists the kinds of the catalogue and those that spaces declare.

- *Importance*, from 0 to 1, is one term of [salience](../glossary.md#salience).
- *Readers*: events of a shared kind are seen by all agents of their space, if they have no `audience`; private ones by
  their agent and audience. `space.configured` changes which kinds a space shares: see [privacy](../privacy.md).
  Bookkeeping is not a memory of any agent.
- *Entries* are what an agent keeps on purpose. They are in no window, salience, scene or count of reflections.
- *Section* is where a prompt shows events of the kind besides YOUR MEMORY.
- *Content* names the payload fields that are texts, values or names that people choose. The others are structure: ids,
  roles, numbers. Fields that are not listed here are content.
- *Text* names the payload fields that the text consists of. Recall and search find every memory with a text, except
  those of {_NOT_RECALLED}, which only name or close a session."""

_SECTIONS: dict[Role, str] = {MEMORY: "", ACTION: "ACTION HISTORY", VISITOR: "VISITOR", ENTRY: "", BOOKKEEPING: ""}


def page() -> str:
    """The page."""
    kinds = CATALOGUE.values()
    others = {each.__name__: each for kind in kinds for each in _nested(kind.payload)}
    return sections(
        (
            "# Kinds",
            _INTRODUCTION,
            table(("kind", "importance", "readers", "section", "text", "description"), map(_row, kinds)),
            "## Payloads",
            "A payload may have further fields; they are stored. Fields that are not required may be absent or null.",
            *(_kind(kind) for kind in kinds),
            "## Types of fields",
            "Further fields of these are refused.",
            *(sections((f"### {name}", docstring(each), _fields(each))).rstrip() for name, each in others.items()),
        )
    )


def _row(kind: Kind) -> tuple[str, ...]:
    importance = f"{kind.importance:.2f}" if kind.is_episode or kind.recalled else ""
    text = code(kind.text.__name__) if kind.text.__name__ else ""
    name = f"[{code(kind.name)}](#{kind.name.replace('.', '')})"
    return name, importance, _readers(kind), _SECTIONS[kind.role], text, kind.description


def _readers(kind: Kind) -> str:
    if kind.role == BOOKKEEPING:
        return "none: bookkeeping"
    if kind.role == ENTRY:
        return "private: entry"
    return "shared" if kind.shared else "private"


def _kind(kind: Kind) -> str:
    said = kind.description if kind.payload is Payload else docstring(kind.payload) or kind.description
    schema = f"[JSON Schema]({SCHEMAS}/kinds/{kind.name}.json)."
    return sections((f"### {kind.name}", said, _fields(kind.payload), _content(kind), schema)).rstrip()


def _content(kind: Kind) -> str:
    content = [code(field) for field in kind.payload.model_fields if kind.is_content(field)]
    return f"Content: {', '.join(content)}." if content else ""


def _fields(model: type[BaseModel]) -> str:
    properties, descriptions = model.model_json_schema()["properties"], attribute_docstrings(model)
    rows = [
        (
            code(field.alias or name),
            code(type_text(field.annotation)),
            "required" if field.is_required() else _default(field.get_default(call_default_factory=True)),
            bounds(properties[field.alias or name]),
            descriptions.get(name, ""),
        )
        for name, field in model.model_fields.items()
    ]
    return table(("field", "type", "default", "bounds", "description"), rows) if rows else ""


def _default(value: object) -> str:
    return "" if value is None else code(value_text(value))


def _nested(model: type[BaseModel]) -> Iterable[type[Any]]:
    for field in model.model_fields.values():
        yield from contained(field.annotation)
