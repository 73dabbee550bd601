"""Conversations: the messages of a session, and the results of adding, removing and compacting them."""

from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from recallog_schemas import limits
from recallog_schemas.event import Position
from recallog_schemas.shortening import cut
from recallog_schemas.views.base import Bounded, OfAgent, View, count_noun, indent_lines, one_line, shown_json
from recallog_schemas.views.erasures import ErasureReport


def _line(message: dict[str, Any]) -> str:
    """A message in one line: `user: What is owed?`."""
    content, calls = message.get("content"), message.get("tool_calls")
    said = "" if content is None else cut(one_line(shown_json(content)), limits.PREVIEW_CHARS)
    called = "" if not calls else f" -> {cut(one_line(shown_json(calls)), limits.PREVIEW_CHARS)}"
    return f"{message.get('role')}: {said}{called}"


class ConversationView(OfAgent, Bounded):
    """The messages of one session of an agent.

    If not all fit, the older ones are left out: call again with the first of `ids` as `before`.
    """

    list_field: ClassVar[str] = "messages"
    kept: ClassVar[Literal["first", "last"]] = "last"
    items_least: ClassVar[int] = 1
    rest: ClassVar[str] = "call again with the first of `ids` as `before`"

    session: str
    """The session."""
    messages: tuple[dict[str, Any], ...]
    """The messages as they were added, in the form of OpenAI's chat completions: what a model can be sent. The summary
    of a compaction is a message of the system that begins with `[compacted]`."""
    ids: tuple[str, ...]
    """The id of the event of each message; for a summary, the id of the compaction."""
    compacted: int
    """How many messages the summary stands for; 0 without one."""
    chars: int
    """The characters of the messages that a model reads as text."""

    def shorten(self, count: int) -> Self:
        """The answer with at most `count` messages and their ids."""
        found = super().shorten(count)
        return found.model_copy(update={"ids": found.ids[found.left_out - self.left_out :]})

    @property
    def empty(self) -> bool:
        """Whether the session has no messages. Its name may then be misspelt."""
        return not self.messages

    def format(self) -> str:
        """One line for each message; `(nothing)` if there are none."""
        return "\n".join(_line(message) for message in self.messages) or "(nothing)"


class MessagesAdded(View):
    """The result of adding messages to a conversation."""

    added: int
    """How many of them are new."""
    known: int
    """How many of them the conversation already had."""
    ids: tuple[str, ...]
    """The ids of the events of the new ones."""
    position: Position | None
    """The position of the last event that was written. None: nothing was written."""

    def format(self) -> str:
        """The numbers: `2 added, 3 known`."""
        return f"{self.added:,} added, {self.known:,} known"


class MessagesRemoved(Bounded):
    """The result of removing messages from a conversation."""

    list_field: ClassVar[str] = "messages"
    items_least: ClassVar[int] = 1

    removed: tuple[str, ...]
    """The ids of the events of the removed messages."""
    messages: tuple[dict[str, Any], ...] = Field(repr=False)
    """The messages, in their order."""
    position: Position | None
    """The position of the last event that was written. None: nothing was written."""
    erasure: ErasureReport | None = Field(default=None, exclude_if=lambda erasure: erasure is None)
    """What of them was erased; left out if no erasure was requested."""

    @property
    def ok(self) -> bool:
        """Whether there was anything to remove."""
        return bool(self.removed)

    def format(self) -> str:
        """One line for each message; `(nothing)` if there was none."""
        lines = [_line(message) for message in self.messages] or ["(nothing)"]
        return "\n".join([*lines, *([] if self.erasure is None else [self.erasure.format()])])


class CompactionView(View):
    """What a compaction of a conversation did."""

    compacted: int
    """How many messages the new summary replaces, besides those of the previous summary. 0: nothing was compacted."""
    kept: int
    """How many messages stay after the summary."""
    summary: str | None
    """The summary, with what follows it word for word; None if nothing was compacted."""
    by: str | None
    """What wrote it: a model, or "extractive"."""
    failed: str | None
    """Why the model gave no summary; the summary was then made without a model."""
    position: Position | None
    """The position of its event. None: nothing was written."""

    @property
    def empty(self) -> bool:
        """Whether the conversation has no messages."""
        return not self.compacted and not self.kept

    def format(self) -> str:
        """The numbers, and the summary indented below them."""
        line = f"{count_noun(self.compacted, 'message')} compacted, {self.kept:,} kept"
        failed = f"\nwithout the model: {one_line(self.failed)}" if self.failed else ""
        return f"{line}{failed}\n{indent_lines(self.summary)}" if self.summary is not None else line
