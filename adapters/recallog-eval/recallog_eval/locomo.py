"""The reader of LoCoMo files: conversations of many dated sessions between two speakers.

Each conversation becomes one space, named by its `sample_id`.

The file is a list of {"sample_id", "conversation": {"session_N": [{"speaker", "dia_id", "text", "blip_caption"?}],
"session_N_date_time": "1:56 pm on 8 May, 2023"}}.

    first                space.configured by "narrator", so that both speakers remember every turn
    each session N       session.started {"title": its date} · agent.spoke per turn · session.ended; session "session-N"
    each turn            agent.spoke {"text", "dia_id"} by its speaker; a picture adds " [shares <caption>]" to the text

id    a turn's `dia_id` ("D1:3"), so that an evaluation can map hits to evidence; uuid5 of (space, session, ordinal in
      the session) for other events, and for a turn whose `dia_id` is missing or in use already
turn  the number of the turn in the conversation, from 1
at    the session's date, as UTC, plus one second per event of the session

The field `query` is not read: it holds the annotators' search words, which would leak the answers.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from recallog import InvalidEvent
from recallog_schemas import codec, kinds, limits
from recallog_schemas.names import in_nfc, is_name
from recallog_service.formats import (
    Format,
    Item,
    ItemsReading,
    Options,
    Source,
    derived_id,
    make_item,
    refuse_item,
    structure_of,
    wrong_format,
)

NARRATOR = "narrator"

_SESSION = re.compile(r"session_(\d+)")
_DATE = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True, slots=True)
class _Session:
    key: str
    """The key in the file: "session_7"."""
    session: str
    """The name in the ledger: "session-7"."""
    title: str
    begins: datetime
    turns: list[object]


@dataclass(slots=True)
class _Reading:
    """The state of the reader within one conversation."""

    number: int
    space: str
    subjects: bool
    """As in `Options`. Both speakers are people."""
    turn: int = 0
    ids: set[str] = field(default_factory=set)

    def item(
        self, location: str, *, ordinal: int, session: _Session | None, event_id: str | None = None, **fields: Any
    ) -> Item:
        name = session.session if session else None
        known = {"id": event_id or derived_id(self.space, name, ordinal), "space": self.space, "session": name}
        return make_item(self.number, f"conversation {self.number}: {location}", known | {"turn": self.turn} | fields)

    def refused(self, location: str, error: InvalidEvent) -> Item:
        return refuse_item(self.number, f"conversation {self.number}: {location}", error)


def read(text: bytes, *, space: str | None = None, subjects: bool = False) -> Iterator[Item]:
    """The events of all conversations; `Item.number` is the conversation's ordinal, from 1. `space` is a prefix,
    `subjects` as in `Options`.

    Raises `InvalidEvent` for a file that is not LoCoMo, and `InvalidArgument` for a `space` that is not a name.
    """
    if space is not None:
        space = codec.checked_name(space)
    spaces: set[str] = set()
    for number, sample in enumerate(_samples(text), 1):
        try:
            name = _space(sample, space)
            if name in spaces:
                raise InvalidEvent(f"sample_id: {name} is used by an earlier conversation", path="sample_id")
        except InvalidEvent as error:
            yield refuse_item(number, f"conversation {number}", error)
            continue
        spaces.add(name)
        yield from _conversation(_Reading(number, name, subjects), sample["conversation"])


def _samples(text: bytes) -> list[Any]:
    expected = 'LoCoMo: a JSON list of objects with "sample_id" and "conversation"'
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidEvent(f"not JSON: {error}; {wrong_format(expected)}", rule="unparsable") from None
    samples = document if isinstance(document, list) else [document]
    if samples and not any(isinstance(sample, dict) and "conversation" in sample for sample in samples):
        raise wrong_format(expected, document)
    return samples


def _space(sample: object, prefix: str | None) -> str:
    if not isinstance(sample, dict) or not isinstance(sample.get("conversation"), dict):
        raise InvalidEvent('conversation: not an object with "session_1", ...', path="conversation")
    sample_id = sample.get("sample_id")
    space = in_nfc(f"{prefix}/{sample_id}" if prefix else sample_id)
    if not isinstance(sample_id, str) or not isinstance(space, str) or not is_name(space):
        raise InvalidEvent(f"sample_id: {sample_id!r} cannot name a space", path="sample_id")
    return space


def _conversation(reading: _Reading, conversation: Mapping[str, Any]) -> Iterator[Item]:
    configured = False
    for number, key in _session_keys(conversation):
        try:
            session = _session(number, key, conversation)
        except InvalidEvent as error:
            yield reading.refused(f"{key}_date_time", error)
            continue
        if not configured:
            configured = True
            yield reading.item(
                "shared kinds", ordinal=1, session=None, agent=NARRATOR, kind="space.configured", at=session.begins,
                payload={"shared_kinds": sorted(kinds.shared_kinds() | {"agent.spoke"})},
            )  # fmt: skip
        yield from _session_items(reading, session)


def _session_keys(conversation: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Number and key of each session that has turns, in the order of the numbers."""
    keys = ((_SESSION.fullmatch(key), turns) for key, turns in conversation.items())
    return sorted((int(found[1]), found[0]) for found, turns in keys if found and isinstance(turns, list) and turns)


def _session(number: int, key: str, conversation: Mapping[str, Any]) -> _Session:
    date = conversation.get(f"{key}_date_time")
    try:
        begins = datetime.strptime(str(date), _DATE).replace(tzinfo=UTC)
    except ValueError:
        raise InvalidEvent(f'{date!r} is not a time like "1:56 pm on 8 May, 2023"', path=f"{key}_date_time") from None
    return _Session(key, f"session-{number}", str(date), begins, conversation[key])


def _session_items(reading: _Reading, session: _Session) -> Iterator[Item]:
    first, last = _speaker(session.turns[0]), _speaker(session.turns[-1])
    reading.turn += 1
    yield reading.item(
        session.key, ordinal=1, session=session, agent=first, kind="session.started", at=session.begins,
        payload={"title": session.title},
    )  # fmt: skip
    for ordinal, turn in enumerate(session.turns, 2):
        reading.turn += ordinal > 2
        yield from _turn(reading, session, ordinal, turn)
    ordinal = len(session.turns) + 2
    yield reading.item(
        session.key, ordinal=ordinal, session=session, agent=last, kind="session.ended",
        at=session.begins + timedelta(seconds=ordinal - 1), payload={},
    )  # fmt: skip


def _turn(reading: _Reading, session: _Session, ordinal: int, turn: object) -> Iterator[Item]:
    location = f"{session.key}.{ordinal - 1}"
    if not isinstance(turn, dict) or not isinstance(turn.get("text"), str):
        error = InvalidEvent("not a turn with speaker, dia_id and text", path=location)
        yield reading.refused(location, error)
        return
    text = _text(turn)
    dia_id = turn.get("dia_id")
    if text:
        yield reading.item(
            location, ordinal=ordinal, session=session, event_id=_free_id(reading, dia_id), agent=_speaker(turn),
            kind="agent.spoke", at=session.begins + timedelta(seconds=ordinal - 1),
            payload={"text": text} | ({"dia_id": dia_id} if isinstance(dia_id, str) else {}),
            **({"subject": _speaker(turn)} if reading.subjects else {}),
        )  # fmt: skip
    else:
        yield Item(reading.number, left_out="empty_turn")


def _text(turn: Mapping[str, Any]) -> str:
    caption = turn.get("blip_caption")
    shares = f" [shares {caption}]" if isinstance(caption, str) and caption else ""
    return f"{turn['text']}{shares}".strip()


def _free_id(reading: _Reading, dia_id: object) -> str | None:
    """`dia_id`, if it is a valid id that no event of the conversation has yet."""
    if not isinstance(dia_id, str) or not 0 < len(dia_id) <= limits.ID_CHARS_MAX or dia_id in reading.ids:
        return None
    reading.ids.add(dia_id)
    return dia_id


def _speaker(turn: object) -> str:
    """The speaker as an agent's name; "" if there is none. The codec refuses an invalid name."""
    speaker = turn.get("speaker") if isinstance(turn, dict) else None
    return speaker.strip() if isinstance(speaker, str) else ""


def _read(source: Source, options: Options) -> ItemsReading:
    return ItemsReading(read(source.text(), space=options.space, subjects=options.subjects), "conversation")


FORMAT = Format(
    "locomo",
    "the LoCoMo data set: many sessions between two speakers",
    structure_of("locomo"),
    _read,
    "sessions and turns, captions of pictures",
    "turns without a text",
)
