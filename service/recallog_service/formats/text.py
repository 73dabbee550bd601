"""Transcripts as plain text: `name: what was said`, one message a line, with or without times.

    Alice: Who owes the miller?                     [2024-05-01 10:00] Alice: Who owes the miller?
    Assistant: The baker, nine sacks.               01/05/2024, 10:00 - Alice: Who owes the miller?
    and one of them since May.                      2024-05-01T10:00:05Z Alice: Who owes the miller?

A line without a name continues the message before it. Where the first message has a time, only lines with a time begin
a message. "Assistant", "AI", "Bot" and the names of well-known assistants are the assistant, "System" is a system text,
"User", "Human" and "You" are the user; everyone else is a user with that name. Dates with "/" are read with the month
first if a clock of 12 hours follows, else with the day first, as dates with "." are; a time without a zone is taken as
UTC. A clock without a date is no time. Lines before the first message, and lines with a time but no name, are left out.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from recallog.messages.blocks import LeftOut
from recallog_schemas.errors import InvalidEvent
from recallog_service.formats.conversation_file import ConversationFile, file_of
from recallog_service.formats.conversations import Conversation
from recallog_service.formats.format import Format, Options
from recallog_service.formats.source import Sample, Source, lines_of

_EXPECTED = 'a transcript: lines like "Alice: Hello", with or without a time before the name'
_ASSISTANTS = frozenset({"assistant", "ai", "bot", "chatbot", "model", "agent", "chatgpt", "claude", "gpt", "gemini"})
_USERS = frozenset({"user", "human", "you", "me"})
_SYSTEMS = frozenset({"system", "developer"})
_LEVELS = frozenset({"trace", "debug", "info", "notice", "warn", "warning", "error", "critical", "fatal", "panic"})
"""Of a log, whose lines have times too."""

_CLOCK = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)?"
    r"(?:[ \u202f\u00a0]?(?P<half>[AaPp]\.?[Mm]\.?))?"
)
_ISO = r"(?P<iso>\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|UTC|[+-]\d{2}:?\d{2}))?)"
_DATE = rf"(?P<one>\d{{1,4}})(?P<mark>[./-])(?P<two>\d{{1,2}})(?P=mark)(?P<three>\d{{2,4}}),? {_CLOCK}"
_AFTER_A_TIME = r"(?(open)[\])])(?:[ \t]*[-\u2013\u2014|])?[ \t]+"
_TIME = re.compile(rf"[\u200e\u200f]*(?P<open>[\[(])?(?:{_ISO}|{_DATE}){_AFTER_A_TIME}")
_ONLY_A_CLOCK = re.compile(rf"(?P<open>[\[(])?{_CLOCK}{_AFTER_A_TIME}")
_NAME = re.compile(
    r"(?P<name>[^\W\d_][^\s:\uff1a<>{}\[\]\"`=/\\]*(?: [^\s:\uff1a<>{}\[\]\"`=/\\]+){0,3})"
    r"(?: ?[\[(](?:\d{1,2}:\d{2}(?::\d{2})?(?: ?[AaPp][Mm])?)[\])])?(?::(?:[ \t]+|$)|\uff1a[ \t]*)"
)
_NAME_CHARS_MAX = 40
_SAMPLE_MESSAGES = 4


@dataclass(slots=True)
class _Said:
    line: int
    name: str
    time: datetime | None
    texts: list[str] = field(default_factory=list)


def _read(source: Source, options: Options) -> ConversationFile:
    """Raises `InvalidEvent` for a file that is not text, or has no message."""
    try:
        lines = lines_of(source.text().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidEvent(f"not UTF-8: {error}; expected {_EXPECTED}", rule="unparsable") from None
    parts = list(_parts(lines))
    if not any(isinstance(part, _Said) for _, part in parts):
        if not any(line.strip() for line in lines):
            return file_of([], options)
        raise InvalidEvent(f"expected {_EXPECTED}", rule="format")
    messages = [_message(part) if isinstance(part, _Said) else part for _, part in parts]
    conversation = Conversation(1, {}, messages, [line for line, _ in parts], "line")
    return file_of([conversation], options)


def _parts(lines: Iterable[str]) -> Iterator[tuple[int, "_Said | LeftOut"]]:
    """The messages, each with the number of its first line, and what is left out."""
    dated = False
    said: _Said | None = None
    in_notice = False
    for number, line in enumerate(lines, 1):
        time, rest = _time(line)
        name, text = _name(rest)
        begins = name is not None and (time is not None or not dated)
        if begins and name is not None:
            if said is not None:
                yield said.line, said
            else:
                dated = time is not None
            said = _Said(number, name, time, [text])
            in_notice = False
        elif dated and (time is not None or (in_notice and line.strip())):
            yield number, LeftOut("notice")
            in_notice = True
        elif said is not None:
            said.texts.append(line)
        elif line.strip():
            yield number, LeftOut("line_before_the_first_message")
    if said is not None:
        yield said.line, said


def _message(said: _Said) -> dict[str, object]:
    name = said.name.casefold()
    content = "\n".join(said.texts).strip()
    role = "assistant" if name in _ASSISTANTS else "system" if name in _SYSTEMS else "user"
    message: dict[str, object] = {"role": role, "content": content}
    if said.time is not None:
        message["timestamp"] = said.time.isoformat()
    return message if role != "user" or name in _USERS else message | {"name": said.name}


def _time(line: str) -> tuple[datetime | None, str]:
    """The time at the beginning of a line, and the rest of the line."""
    found = _TIME.match(line)
    if found is None:
        clock = _ONLY_A_CLOCK.match(line)
        return None, line[clock.end() :] if clock else line
    try:
        moment = _of_iso(found["iso"]) if found["iso"] else _of_date(found)
    except (ValueError, OverflowError):
        return None, line
    return moment, line[found.end() :]


def _of_iso(text: str) -> datetime:
    moment = datetime.fromisoformat(re.sub(r" ?(?:UTC|Z)$", "+00:00", text.replace(",", ".")))
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _of_date(found: re.Match[str]) -> datetime:
    one, two, three = int(found["one"]), int(found["two"]), int(found["three"])
    if len(found["one"]) == 4:
        year, month, day = one, two, three
    else:
        year = three + 2000 if three < 100 else three
        month_first = found["mark"] == "/" and found["half"] is not None
        day, month = (two, one) if (month_first or two > 12) and one <= 12 else (one, two)
    hour = int(found["hour"])
    if found["half"]:
        hour = hour % 12 + (12 if found["half"].lower().startswith("p") else 0)
    return datetime(year, month, day, hour, int(found["minute"]), int(found["second"] or 0), tzinfo=UTC)


def _name(text: str) -> tuple[str | None, str]:
    found = _NAME.match(text)
    if found is None or len(found["name"]) > _NAME_CHARS_MAX:
        return None, text
    return found["name"], text[found.end() :]


def _recognises(sample: Sample) -> bool:
    """Whether the text begins with a message and has several, of names that return, of known roles, or with times: a
    configuration or a log is not a transcript."""
    parts = [part for _, part in _parts(sample.lines)]
    said = [part for part in parts if isinstance(part, _Said)]
    first = next(iter(parts), None)
    if len(said) < 2 or not isinstance(first, _Said | LeftOut):
        return False
    names = {each.name.casefold() for each in said}
    if names <= _ASSISTANTS | _USERS | _SYSTEMS:
        return isinstance(first, _Said) or said[0].time is not None
    if any(name.split()[0] in _LEVELS for name in names):
        return False
    if said[0].time is not None:
        return len(names) <= max(2, len(said) // 2)
    lines = sum(bool(line.strip()) for line in sample.lines)
    returns = len(said) >= _SAMPLE_MESSAGES and len(names) * 2 <= len(said)
    return returns and isinstance(first, _Said) and len(said) * 2 >= lines


FORMAT = Format("text", 'text, one message a line: "name: what was said"', _recognises, _read)
