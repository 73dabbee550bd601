"""Transcripts as plain text: `name: what was said`, one message a line, with or without times.

    Alice: Who owes the miller?                     [2024-05-01 10:00] Alice: Who owes the miller?
    Assistant: The baker, nine sacks.               01/05/2024, 10:00 - Alice: Who owes the miller?
    and one of them since May.                      2024-05-01T10:00:05Z Alice: Who owes the miller?

A line without a name continues the previous message. If the first message has a time, only lines with a time begin a
message. "Assistant", "AI", "Bot" and the names of well-known assistants are the assistant, "System" is a system text,
"User", "Human" and "You" are the user; any other name is a user with that name.

Exports of WhatsApp have dates as the phone of the user writes them, in any digits and with words for the halves of a
day. There every name is that of a person, and may have any characters. Whether the day or the month comes first follows
from the numbers of the whole file, then from the order of its lines; else the month is first if "/" is between them and
a clock of 12 hours follows. A time without a zone is taken as UTC. A clock time without a date is ignored. Lines before
the first message, lines with a time but no name, and notices in the name of a group, or at the beginning of a chat, are
left out. What people write there is an import, since it is not said to an agent.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from recallog.messages.blocks import LeftOutBlock
from recallog_schemas.errors import InvalidEvent
from recallog_service.formats.conversation_file import ConversationFile, file_of
from recallog_service.formats.conversations import FileConversation
from recallog_service.formats.format import Format, Options
from recallog_service.formats.source import Sample, Source, lines_of

_EXPECTED = 'a transcript: lines like "Alice: Hello", with or without a time before the name'
_ASSISTANTS = frozenset({"assistant", "ai", "bot", "chatbot", "model", "agent", "chatgpt", "claude", "gpt", "gemini"})
_USERS = frozenset({"user", "human", "you", "me"})
_SYSTEMS = frozenset({"system", "developer"})
_LEVELS = frozenset({"trace", "debug", "info", "notice", "warn", "warning", "error", "critical", "fatal", "panic"})
"""Levels of log lines, which also begin with times."""

_AFTER_NOON = frozenset({"pm", "下午", "晚上", "午後", "오후", "م", "μμ", "ch"})
_HALF = r"[AaPp]\.?[ \u202f\u00a0]?[Mm]\.?|上午|下午|凌晨|晚上|午前|午後|오전|오후|[صم]|[πμ]\.μ\.|SA|CH"
_CLOCK = (
    rf"(?:(?P<before>{_HALF})[ \u202f\u00a0]?)?(?P<hour>\d{{1,2}})[:.](?P<minute>\d{{2}})"
    rf"(?:[:.](?P<second>\d{{2}})(?:[.,]\d+)?)?(?:[ \u202f\u00a0]?(?P<half>{_HALF}))?"
)
_ISO = r"(?P<iso>\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|UTC|[+-]\d{2}:?\d{2}))?)"
_DATE = (
    r"(?P<one>\d{1,4})(?P<mark>[./-]|[년年]) ?(?P<two>\d{1,2})(?:[./-]|[월月]) ?(?P<three>\d{1,4})(?:\.|[일日])?"
    rf"[,\u060c]?[ \u202f\u00a0]{_CLOCK}"
)
_AFTER_A_TIME = r"(?(open)[\])])(?:[ \t]*[-\u2013\u2014|,])?[ \t]+"
_TIME = re.compile(rf"[\u200e\u200f\u202a-\u202e]*(?P<open>[\[(])?(?:{_ISO}|{_DATE}){_AFTER_A_TIME}")
_ONLY_A_CLOCK = re.compile(rf"(?P<open>[\[(])?{_CLOCK}{_AFTER_A_TIME}")
_NAME = re.compile(
    r"(?P<name>[^\W\d_][^\s:\uff1a<>{}\[\]\"`=/\\]*(?: [^\s:\uff1a<>{}\[\]\"`=/\\]+){0,3})"
    r"(?: ?[\[(](?:\d{1,2}:\d{2}(?::\d{2})?(?: ?[AaPp][Mm])?)[\])])?(?::(?:[ \t]+|$)|\uff1a[ \t]*)"
)
_PERSON = re.compile(r"(?P<name>[^:\uff1a\n\"\u201c\u201d\u201e\u00ab\u00bb]{1,80}?) ?(?::(?: |$)|\uff1a)")
"""Invisible characters before the text of a message in an export of WhatsApp."""
_AROUND_A_NAME = "~ \u00a0\u202f\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_OF_THE_PROGRAM = "\u200e"
"""The beginning of a text that WhatsApp wrote; a note about a file continues with "<"."""
_NAME_CHARS_MAX = 40
_SAMPLE_MESSAGES = 4


@dataclass(slots=True)
class _Said:
    line: int
    name: str
    time: datetime | None
    is_person: bool
    """Whether the name is always a person's, and never a role."""
    texts: list[str] = field(default_factory=list)


def _read(source: Source, options: Options) -> ConversationFile:
    """The conversation of a transcript. Raises `InvalidEvent` for a file that is not text or has no message."""
    try:
        lines = lines_of(source.text().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidEvent(f"not UTF-8: {error}; expected {_EXPECTED}", rule="unparsable") from None
    parts = list(_without_notices(_parts(lines)))
    if not any(isinstance(part, _Said) for _, part in parts):
        if not any(line.strip() for line in lines):
            return file_of([], options)
        raise InvalidEvent(f"expected {_EXPECTED}", rule="format")
    messages = [_message(part) if isinstance(part, _Said) else part for _, part in parts]
    conversation = FileConversation(1, {}, messages, [line for line, _ in parts], "line")
    is_of_people = any(isinstance(part, _Said) and part.is_person for _, part in parts)
    return file_of([conversation], options, trust="import" if is_of_people else None)


def _parts(lines: Iterable[str]) -> Iterator[tuple[int, "_Said | LeftOutBlock"]]:
    """The messages and the left-out parts, each with the number of its first line."""
    lines = list(lines)
    month_first = _has_month_first(lines)
    dated = False
    said: _Said | None = None
    in_notice = False
    for number, line in enumerate(lines, 1):
        time, rest, is_person = _time(line, month_first)
        name, text = _name(rest, is_person)
        begins = name is not None and (time is not None or not dated)
        if begins and name is not None:
            if said is not None:
                yield said.line, said
            else:
                dated = time is not None
            said = _Said(number, name, time, is_person, [text])
            in_notice = False
        elif dated and (time is not None or (in_notice and line.strip())):
            yield number, LeftOutBlock("notice")
            in_notice = True
        elif said is not None:
            said.texts.append(line)
        elif line.strip():
            yield number, LeftOutBlock("line_before_the_first_message")
    if said is not None:
        yield said.line, said


def _without_notices(
    parts: Iterable[tuple[int, "_Said | LeftOutBlock"]],
) -> Iterator[tuple[int, "_Said | LeftOutBlock"]]:
    """The parts without notices. WhatsApp writes notices in the name of a group, which has no other messages, and a
    notice about encryption as the first message of the other person."""
    parts = list(parts)
    said = [part for _, part in parts if isinstance(part, _Said)]
    people = {each.name for each in said if not _is_of_the_program(each)}
    first = next(filter(_is_of_the_program, said[:1]), None)
    for number, part in parts:
        is_kept = isinstance(part, LeftOutBlock) or (part is not first and part.name in people)
        yield number, part if is_kept else LeftOutBlock("notice")


def _is_of_the_program(said: _Said) -> bool:
    return said.texts[0].startswith(_OF_THE_PROGRAM) and said.texts[0][1:2] != "<"


def _message(said: _Said) -> dict[str, object]:
    name = "" if said.is_person else said.name.casefold()
    content = "\n".join(said.texts).replace(_OF_THE_PROGRAM, "").strip()
    role = "assistant" if name in _ASSISTANTS else "system" if name in _SYSTEMS else "user"
    message: dict[str, object] = {"role": role, "content": content}
    if said.time is not None:
        message["timestamp"] = said.time.isoformat()
    return message if role != "user" or name in _USERS else message | {"name": said.name}


def _time(line: str, month_first: bool | None) -> tuple[datetime | None, str, bool]:
    """The time at the beginning of a line, the rest of the line, and whether WhatsApp wrote the line."""
    found = _TIME.match(line)
    if found is None:
        clock = _ONLY_A_CLOCK.match(line)
        return None, line[clock.end() :] if clock else line, False
    try:
        moment = _of_iso(found["iso"]) if found["iso"] else _of_date(found, month_first)
    except (ValueError, OverflowError):
        return None, line, False
    return moment, line[found.end() :], found["iso"] is None


def _has_month_first(lines: Iterable[str]) -> bool | None:
    """Whether dates begin with the month, inferred from the numbers and the order of all lines; None if
    undetermined."""
    found = [each for line in lines if (each := _TIME.match(line)) and each["one"] and len(each["one"]) < 4]
    dates = [(int(each["three"]), int(each["one"]), int(each["two"])) for each in found]
    if any(one > 12 or two > 12 for _, one, two in dates):
        return not any(one > 12 for _, one, _ in dates)
    days, months = (sorted(each) == each for each in ([(y, b, a) for y, a, b in dates], dates))
    return None if days == months else months


def _of_iso(text: str) -> datetime:
    moment = datetime.fromisoformat(re.sub(r" ?(?:UTC|Z)$", "+00:00", text.replace(",", ".")))
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _of_date(found: re.Match[str], month_first: bool | None) -> datetime:
    one, two, three = int(found["one"]), int(found["two"]), int(found["three"])
    half = re.sub(r"[\W\d]", "", found["half"] or found["before"] or "").casefold()
    if month_first is None:
        month_first = found["mark"] == "/" and (found["half"] or "").casefold() in ("am", "pm")
    if len(found["one"]) == 4:
        year, month, day = one, two, three
    else:
        year = three + 2000 if three < 100 else three
        day, month = (two, one) if month_first else (one, two)
    hour = int(found["hour"])
    if half:
        hour = hour % 12 + (12 if half in _AFTER_NOON else 0)
    return datetime(year, month, day, hour, int(found["minute"]), int(found["second"] or 0), tzinfo=UTC)


def _name(text: str, is_person: bool) -> tuple[str | None, str]:
    found = (_PERSON if is_person else _NAME).match(text)
    name = found["name"].strip(_AROUND_A_NAME) if found else ""
    if found is None or not name or (len(name) > _NAME_CHARS_MAX and not is_person):
        return None, text
    return name, text[found.end() :]


class _Transcript:
    """The structure of a transcript: messages of recurring names, of known roles, or with times."""

    def fits(self, sample: Sample) -> bool:
        return _recognises(sample)

    def lacks(self, sample: Sample) -> tuple[float, str]:
        return (0.5 if sample.lines else 0.0), 'few of its lines are like "Alice: Hello", of names that return'


def _recognises(sample: Sample) -> bool:
    """Whether the text begins with a message and has several, of recurring names, of known roles, or with times. This
    excludes configurations and logs."""
    parts = [part for _, part in _without_notices(_parts(sample.lines))]
    said = [part for part in parts if isinstance(part, _Said)]
    first = next(iter(parts), None)
    if len(said) < 2 or not isinstance(first, _Said | LeftOutBlock):
        return False
    names = {each.name.casefold() for each in said}
    if names <= _ASSISTANTS | _USERS | _SYSTEMS:
        return isinstance(first, _Said) or said[0].time is not None
    if any(name.split()[0] in _LEVELS for name in names):
        return False
    if said[0].time is not None:
        return said[0].is_person or len(names) <= max(2, len(said) // 2)
    lines = sum(bool(line.strip()) for line in sample.lines)
    returns = len(said) >= _SAMPLE_MESSAGES and len(names) * 2 <= len(said)
    return returns and isinstance(first, _Said) and len(said) * 2 >= lines


FORMAT = Format(
    "text",
    'text, one message a line: "name: what was said"; exports of WhatsApp',
    _Transcript(),
    _read,
    "messages, by the names of who wrote them",
    "notices, lines before the first message",
)
