"""The conversations of a chat file: the identity, the user and the space of each.

A conversation is identified by its own id (`id`, `conversation_id`, ...), else by a digest of its first user message,
the time of that message, and the person that the conversation names. Its position in the file is not used. Two
conversations with the same digest are refused, because they could not be distinguished once they grow. Two with the
same id are refused too, unless one is a continuation of the other.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

from recallog.messages.blocks import LeftOutBlock
from recallog.messages.mapping import CAST, MESSAGE_TIMES, Cast, content_of, role_of
from recallog.messages.times import time_in
from recallog_schemas import limits
from recallog_schemas.errors import InvalidEvent
from recallog_schemas.names import in_nfc, is_name, is_plain
from recallog_schemas.roles import USER

_PREFIX = "chat"
_PROJECT = "project"
_DIGEST = re.compile("[0-9a-f]{16}")
_ID_FIELDS = (
    "id", "conversation_id", "chat_id", "thread_id", "session_id", "sample_id", "instance_id", "uuid",
)  # fmt: skip
_BEGIN_FIELDS = ("created_at", "create_time", "started_at")
_PERSON_FIELDS = (
    "user_id", "userId", "user", "user_name", "userName", "username", "customer_id", "customer", "customer_name",
    "account_id", "account", "person", "email",
)  # fmt: skip
_PERSON_OBJECT_FIELDS = ("id", "user_id", "uuid", "email", "name")
_NOBODY = frozenset(
    {"user", "customer", "client", "person", "human", "guest", "anonymous", "anon", "unknown", "default", "system",
     "admin", "me", "you", "none", "null", "nobody", "n/a", "na", "-1", "default_user", "default_user_id"}
)  # fmt: skip
"""Values that do not identify a person: conversations that share one may be from different people."""

_SESSIONS = "each conversation is a session"
_ID_SHOWN_CHARS_MAX = 60
_DIGEST_CHARS = 16
_FOLDER_CHARS_MAX = 120
_KEYS_WITH_IDS = ("message", "call", "result")
_UNIQUE_ID_CHARS = 20
"""A shorter id may be a number that another file uses too."""


@dataclass(frozen=True)
class FileConversation:
    """One conversation of a file, as it was read."""

    number: int
    """Its ordinal in the file, from 1."""
    fields: Mapping[str, Any]
    messages: Sequence[object]
    ordinals: Sequence[int] = ()
    """Ordinals of the messages in the file; absent: from 1."""
    unit: str = "message"
    """What the ordinals count."""
    cast: Cast = CAST
    home: str | None = None
    """The space that its format determined: the space of a project."""
    grows: bool = False
    """Whether an agent writes it while it works. Then calls may get their results later, and a copy of the session
    repeats its records with their ids."""

    @property
    def numbered(self) -> Iterable[tuple[int, object]]:
        return zip(self.ordinals, self.messages, strict=True) if self.ordinals else enumerate(self.messages, 1)

    def spoken_by(self, name: str | None) -> Self:
        """The conversation with another name for its assistant and its subagents; None: unchanged."""
        main, _, subagent = self.cast.agent.partition("/")
        if name is None:
            return self
        agent = f"{name}/{subagent}" if subagent else name
        writer = name if self.cast.writer == main else self.cast.writer
        audience = (agent,) if self.cast.audience else ()
        return replace(self, cast=Cast(agent, writer, self.cast.kind, audience))

    @cached_property
    def own_id(self) -> str | None:
        """The first field that can serve as an id; `task_id` and `trial` together can too."""
        texts = [_text(self.fields.get(name)) for name in _ID_FIELDS]
        task, trial = _text(self.fields.get("task_id")), _text(self.fields.get("trial"))
        return next(filter(None, [*texts, f"{task}-{trial}" if task and trial else ""]), None)

    @cached_property
    def name(self) -> str:
        """Its identity: a valid name derived from its id, or from its beginning."""
        if self.own_id is None:
            return self.beginning
        own = self.own_id
        return own if is_plain(f"{_PREFIX}/{own}") and len(own) <= limits.ID_CHARS_MAX else digest(own)

    @property
    def is_certain(self) -> bool:
        """Whether its name is unique, because its id was generated to be unique."""
        return self.own_id is not None and len(self.own_id) >= _UNIQUE_ID_CHARS

    @cached_property
    def beginning(self) -> str:
        """A digest of the first user message (else of the first message), its id and time, and the person.

        Lines that are not JSON, and records that the format leaves out, are not messages.
        """
        of_user = (each for each in self.messages if isinstance(each, dict) and role_of(each) == USER)
        readable = (each for each in self.messages if not isinstance(each, InvalidEvent | LeftOutBlock))
        first = next(of_user, next(readable, None))
        said = [first.get("id"), content_of(first)] if isinstance(first, dict) else first
        return digest([said, _iso(self._time_of(first)), self.person])

    @cached_property
    def begins(self) -> datetime | None:
        """The time at which it began, if the file says so."""
        return time_in(self.fields, _BEGIN_FIELDS)

    @cached_property
    def first_time(self) -> datetime | None:
        """Its first known time: of a message, else its own."""
        times = (time_in(each, MESSAGE_TIMES) for each in self.messages if isinstance(each, dict))
        return next((time for time in times if time is not None), self.begins)

    @cached_property
    def person(self) -> tuple[str, ...]:
        """The fields that name its user, as "field=value"; empty if there are none."""
        metadata = self.fields.get("metadata")
        sources = [self.fields, metadata if isinstance(metadata, dict) else {}]
        named = ((name, _person(source.get(name))) for source in sources for name in _PERSON_FIELDS)
        return tuple(f"{name}={value}" for name, value in named if value)

    def _time_of(self, message: object) -> datetime | None:
        own = time_in(message, MESSAGE_TIMES) if isinstance(message, dict) else None
        return own or self.begins


@dataclass(frozen=True, slots=True)
class Layout:
    """The space of each conversation."""

    space: str | None
    """The common space of all conversations, each a session; None: each is in the space of its project, or in a
    separate space."""
    reason: str
    """What was chosen and why: one line for people."""
    is_shared: bool
    """Whether several conversations can be in one space."""

    def space_of(self, conversation: FileConversation) -> str:
        return self.space or conversation.home or f"{_PREFIX}/{conversation.name}"

    def session_of(self, conversation: FileConversation) -> str:
        return conversation.name if self.space or conversation.home else "1"


def layout_of(conversations: Sequence[FileConversation], space: str | None) -> Layout:
    """The given space for all; else the space of each one's project, or one for the person whom the file names; else a
    separate space for each conversation.

    Conversations of different people share a space only if the caller names it: in one space, everyone sees what each
    user said.
    """
    count = len(conversations)
    people = {conversation.person for conversation in conversations}
    named_people = len(people - {()})
    if space is not None:
        warning = f"; the file names {named_people:,} people: what one of them said can be recalled for the others"
        reason = f"one space, {space}, as --space says; {_SESSIONS}{warning if named_people > 1 else ''}"
        return Layout(space, reason, is_shared=True)
    if homes := {conversation.home for conversation in conversations} - {None}:
        return Layout(None, _of_projects(homes), is_shared=True)
    if len(people) == 1 and (named := next(iter(people))):
        field_name, _, value = named[0].partition("=")
        person = _space_of_person(field_name, value)
        reason = f"one space, {person}: the file names one person ({field_name}); {_SESSIONS}"
        return Layout(person, reason, is_shared=True)
    if named_people == 1:
        why = "not all conversations name the same person"
    else:
        why = "the file names several people" if named_people else "the file names no person"
    if count == 1:
        reason = f"one space, {_PREFIX}/{conversations[0].name}: {why}; --space names another one"
        return Layout(None, reason, is_shared=False)
    each = f"a space for each of {count:,} conversations, {_PREFIX}/..."
    return Layout(None, f"{each}: {why}; --space makes them sessions of one space", is_shared=False)


def _of_projects(homes: set[str | None]) -> str:
    if len(homes) == 1:
        return f"one space, {next(iter(homes))}, for the project; {_SESSIONS}"
    return f"a space for each of {len(homes):,} projects, {_PROJECT}/...; {_SESSIONS}"


def space_of_project(folder: object) -> str | None:
    """The space of the project in a folder: "project/home/alice/app" for /home/alice/app; None without a folder.

    Different folders have different spaces. If the path is long or cannot be a name, its digest is used.
    """
    if not isinstance(folder, str) or not folder.strip("/\\. "):
        return None
    name = in_nfc(folder.strip("/"))
    is_told = is_name(f"{_PROJECT}/{name}") and len(name) <= _FOLDER_CHARS_MAX and not _DIGEST.fullmatch(name)
    return f"{_PROJECT}/{name if is_told else digest(folder)}"


def _space_of_person(field_name: str, value: str) -> str:
    """The name contains the field, because customer 17 and user 17 may be different people."""
    kind = "user" if field_name.startswith("user") else field_name.partition("_")[0]
    space = f"{kind}/{value}"
    return space if is_plain(space) else f"{kind}/{digest(value)}"


def alike(conversations: Sequence[FileConversation]) -> dict[int, InvalidEvent]:
    """The conversations that cannot be told apart, by their number, each with its error."""
    same: dict[str, list[FileConversation]] = {}
    for conversation in conversations:
        same.setdefault(conversation.name, []).append(conversation)
    refused: dict[int, InvalidEvent] = {}
    for group in same.values():
        if len(group) > 1 and not _one_that_grew(group):
            for conversation in group:
                other = next(each.number for each in group if each is not conversation)
                refused[conversation.number] = _not_unique(conversation, other)
    return refused


def is_unique(key: Sequence[str]) -> bool:
    """Whether the key of a draft contains an id that was generated to be unique."""
    return key[0] in _KEYS_WITH_IDS and len(key[1]) >= _UNIQUE_ID_CHARS


def _one_that_grew(group: Sequence[FileConversation]) -> bool:
    """Whether all have an id, and each is a prefix of the next longer one."""
    if any(each.own_id is None for each in group):
        return False
    grown = sorted((each.messages for each in group), key=len)
    try:
        return all(longer[: len(shorter)] == shorter for shorter, longer in pairwise(grown))
    except RecursionError:
        return False


def _not_unique(conversation: FileConversation, other: int) -> InvalidEvent:
    if conversation.own_id is None:
        why = f'begins like conversation {other} and has no id; give each an "id" of its own'
    else:
        shown = conversation.own_id[:_ID_SHOWN_CHARS_MAX]
        why = f"has the id {shown!r} of conversation {other} but other messages; give each an id of its own"
    return InvalidEvent(why, path="id", rule="not_unique")


def _person(value: object) -> str:
    """The person that a field names; "" if it does not identify a person."""
    if isinstance(value, dict):
        value = next((value[name] for name in _PERSON_OBJECT_FIELDS if _text(value.get(name))), None)
    text = _text(value).strip()
    is_zero = not text.strip("0-")  # 0, and the UUID of zeros
    return "" if is_zero or text.lower() in _NOBODY or len(text) > limits.NAME_CHARS_MAX else text


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def digest(value: object) -> str:
    """A short name derived from `value`."""
    try:
        text = json.dumps(value, sort_keys=True)
    except RecursionError:
        text = "nested too deeply"  # the message is refused later
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]
