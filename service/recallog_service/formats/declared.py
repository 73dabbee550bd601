"""Formats declared in a TOML file instead of code: the structure of their records, and rules for reading them.

A table is a format:

about, keeps, leaves_out   one line each, for people
structure                  patterns of a record, or of a document; the module `structure` describes them. Absent: that
                           of `elsewhere.toml`
documents, records         where a document has its conversations, and a conversation its records; absent: the documents
                           of the file are the records
session, session_when      the fields of a session, each with the place where a record has it: id, cwd, created_at; and
                           a pattern of the records that have them
agent                      who speaks where a record is the agent's; default "assistant"
trust                      the source class that the events state, if it is not that of their kinds
id, time, kind             where a record has the id and the time of its message, and the kind under which it is counted
                           if no rule fits it
speaker, name              where a record has who spoke, and their name; a second one of a name has the id too
says                       rules: what a record says

A place is a path of names, as "message.content"; "|" separates alternatives, of which the first with a value is used.
In a path, "*" is the first value of an object and "~" its first key; "=shell" is the literal text. A rule has a
pattern (`when`) and the way to read a record that matches it (`as`):

"user", "assistant", "system", "thought"    a text of this speaker, with `content`
"call"                                      `tool`, `arguments`, `call`, and `output` if the record has the result
"result"                                    `call`, `output`
"message"                                   the record, or its `content`, is a message of a model's API
"item"                                      the same for an item of OpenAI's Responses

With `each`, the elements of that list are read together with the fields of the record; an element's own time has
priority. `failed` is a pattern of failed results, `media` has the places of files, `inline` joins the parts of a text
to one line, `within` names the tags around the text, and `html` decodes HTML entities. A list of places in `content`
gives one line each.
"""

import html
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources.abc import Traversable
from itertools import groupby
from typing import Any

from recallog.messages.blocks import LeftOutBlock
from recallog.messages.mapping import CAST, Cast
from recallog_service.formats.conversation_file import FoundMessages, reader
from recallog_service.formats.elsewhere import structure_of
from recallog_service.formats.format import Format
from recallog_service.formats.guess import objects
from recallog_service.formats.response_items import left_out, messages_of_item
from recallog_service.formats.sessions import Record, sessions_of
from recallog_service.formats.structure import Structure, faults

Table = Mapping[str, Any]


def declared_in(file: Traversable) -> dict[str, Format]:
    """The formats of a file of TOML, by name."""
    return {name: _format(name, table) for name, table in tomllib.loads(file.read_text(encoding="utf-8")).items()}


def _format(name: str, table: Table) -> Format:
    own = table.get("structure")
    structure = Structure(own, table.get("among")) if own else structure_of(name)
    read = reader(table["about"], lambda documents, _options: find(table, documents), structure, table.get("trust"))
    return Format(name, table["about"], structure, read, table["keeps"], table.get("leaves_out", ""))


def find(table: Table, documents: Sequence[object]) -> FoundMessages:
    """The conversations of documents in the format of a table."""
    if "documents" in table:
        documents = [each for document in documents for each in _list_at(document, table["documents"]) or [document]]

    def records(document: Record) -> list[object] | None:
        return _list_at(document, table["records"]) if "records" in table else None

    def about(record: Record) -> Table:
        is_about = not faults(table.get("session_when", {}), record)
        known = {name: value_at(record, place) for name, place in table.get("session", {}).items() if is_about}
        known = {name: value for name, value in known.items() if value is not None}
        return known | ({"session": str(known["id"])} if "id" in known else {})

    names = _names(
        table, [each for document in objects(documents) for each in objects(records(document) or [document])]
    )
    cast = Cast(table.get("agent", CAST.agent))
    return sessions_of(
        documents, lambda record: read_messages(table, record, names), about, records=records, cast=lambda _: cast
    )


def value_at(value: object, place: str) -> Any:
    """The value at a place; None if there is none."""
    if place.startswith("="):
        return place[1:]
    for path in place.split("|"):
        found: Any = value
        for name in path.split("."):
            if not isinstance(found, dict):
                found = None
            elif name in "*~":
                found = next(iter(found.values() if name == "*" else found), None)
            else:
                found = found.get(name)
        if found not in (None, "", []):
            return found
    return None


def _list_at(value: object, place: str) -> list[object] | None:
    found = value_at(value, place)
    return found if isinstance(found, list) else None


def _names(table: Table, records: Sequence[Record]) -> dict[str, str]:
    """The name of each speaker of a file; with the speaker's id if an earlier speaker has the same name.

    So the names at the beginning of a file do not change when it grows.
    """
    known: dict[str, str] = {}
    for record in records if "speaker" in table else ():
        speaker, name = value_at(record, table["speaker"]), value_at(record, table["name"])
        if speaker is not None and (isinstance(name, str) or str(speaker) not in known):
            known[str(speaker)] = name if isinstance(name, str) else str(speaker)
    first = {name: who for who, name in reversed(known.items())}
    return {who: name if first[name] == who else f"{name} ({who})" for who, name in known.items()}


def read_messages(table: Table, record: Record, names: Mapping[str, str]) -> list[object]:
    """The messages of a record in the form of model APIs."""
    common = {name: value_at(record, table.get(name, name)) for name in ("id", "time")}
    common = {"id": common["id"], "timestamp": common["time"] or value_at(record, "timestamp")}
    if "speaker" in table:
        common["name"] = names.get(str(value_at(record, table["speaker"])))
    made: list[object] = []
    matched = False
    for place, rules in groupby(table["says"], key=lambda rule: rule.get("each")):
        of_place = list(rules)
        for part in [record] if place is None else objects(value_at(record, place)):
            beside = {**record, **part}
            known = common if place is None else common | {"timestamp": part.get("timestamp") or common["timestamp"]}
            fitting = [rule for rule in of_place if not faults(rule.get("when", {}), beside)]
            matched = matched or bool(fitting)
            for rule in fitting:
                made += _SAID.get(rule["as"], _spoken)(rule, part, beside, known)
            if place is not None and not fitting:
                made.append(_leave_out(part, "type"))
    if not made:
        return [LeftOutBlock("empty_message") if matched else _leave_out(record, table.get("kind", "type"))]
    return list(_together(made))


def _leave_out(record: Record, place: str) -> LeftOutBlock:
    """A record that no rule matches, under its kind."""
    return left_out(str(value_at(record, place) or "other_record"))


def _together(made: Sequence[object]) -> Iterator[object]:
    """Merges consecutive messages of one speaker with the same time in one record."""
    keys = ("role", "timestamp")
    for key, group in groupby(made, key=lambda each: [isinstance(each, dict) and each.get(name) for name in keys]):
        messages: list[Any] = list(group)
        if key[0] not in ("user", "assistant") or len(messages) == 1:
            yield from messages
        else:
            yield {**messages[0], "content": [part for each in messages for part in _as_list(each["content"])]}


def _spoken(rule: Table, part: Record, beside: Record, common: Record) -> list[object]:
    content = _content(rule, part, beside)
    if not content:
        return []
    if rule["as"] != "thought":
        return [{**common, "role": rule["as"], "content": content}]
    texts = (each.get("text") if isinstance(each, dict) else each for each in _as_list(content))
    text = "\n".join(each for each in texts if isinstance(each, str))
    return [{**common, "role": "assistant", "content": [{"type": "thinking", "thinking": text}]}]


def _as_it_is(rule: Table, part: Record, _beside: Record, common: Record) -> list[object]:
    message = value_at(part, rule["content"]) if "content" in rule else part
    return [{**message, **{name: value for name, value in common.items() if value is not None}}]


def _items(rule: Table, part: Record, _beside: Record, common: Record) -> list[object]:
    item = value_at(part, rule["content"]) if "content" in rule else part
    try:
        item = json.loads(item) if isinstance(item, str) else item
    except (ValueError, RecursionError):
        item = {}
    said = messages_of_item(item if isinstance(item, dict) else {})
    return [{**each, "timestamp": common["timestamp"]} if isinstance(each, dict) else each for each in said]


def _call(rule: Table, _part: Record, beside: Record, common: Record) -> list[object]:
    """A call, its result, or both."""
    id_, tool, output = (value_at(beside, rule[name]) if name in rule else None for name in ("call", "tool", "output"))
    call = {
        **common,
        "call_id": None if id_ is None else str(id_),
        "name": tool.removeprefix("tool-") if isinstance(tool, str) else None,
    }
    made: list[object] = []
    if rule["as"] == "call":
        made.append(call | {"type": "function_call", "arguments": value_at(beside, rule["arguments"])})
    if rule["as"] == "result" or output is not None:
        failed = "failed" in rule and not faults(rule["failed"], beside)
        made.append(call | {"type": "function_call_output", "output": output, "is_error": failed})
    return made


_SAID: Mapping[str, Callable[[Table, Record, Record, Record], list[object]]] = {
    "call": _call, "result": _call, "message": _as_it_is, "item": _items,
}  # fmt: skip


def _content(rule: Table, part: Record, beside: Record) -> Any:
    """The content with its files; for `each`, the content of the element."""
    place = rule.get("content")
    content: Any
    if isinstance(place, list):
        content = "\n".join(text for each in place if isinstance(text := value_at(beside, each), str))
    else:
        content = value_at(beside, place) if place else [part]
    if rule.get("inline") and isinstance(content, list):
        texts = (each.get("text") if isinstance(each, dict) else each for each in content)
        content = "".join(each for each in texts if isinstance(each, str))
    if rule.get("html") and isinstance(content, str):
        content = html.unescape(content)
    if "within" in rule:
        content = _within(rule["within"], _as_list(content))
    files = [_file(each) for place in rule.get("media", ()) for each in _as_list(value_at(beside, place))]
    return [*_as_list(content), *files] if files else content


def _within(tag: str, parts: list[object]) -> list[object]:
    """The parts of a content without the texts outside of the tags, if any text has them."""
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    inside = [
        "\n".join(re.findall(rf"<{tag}>\s*(.*?)\s*</{tag}>", text, re.DOTALL)) if isinstance(text, str) else None
        for text in texts
    ]
    if not any(inside):
        return parts
    pairs = zip(parts, inside, strict=True)
    return [
        part if text is None else {**part, "text": text} if isinstance(part, dict) else text
        for part, text in pairs
        if text != ""
    ]


def _file(value: object) -> object:
    if not isinstance(value, dict):
        return {"type": "file", "name": value}
    if isinstance(data := value.get("extracted_content"), str):
        return {**value, "type": "document", "source": {"type": "text", "data": data}}
    return {**value, "type": "file"}


def _as_list(value: object) -> list[object]:
    return [] if value is None else value if isinstance(value, list) else [value]
