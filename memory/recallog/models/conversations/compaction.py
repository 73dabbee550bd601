"""Compaction: the beginning of a long conversation becomes one message with a summary.

A conversation is compacted if it has more than 20 messages, or more than 48,000 characters in more than 8 messages. The
newest 8 stay, and more if a result of a tool would otherwise stay without its call. Instructions at the beginning of
the conversation stay before the summary and are not counted.

Sentences with must, never or always, and a question of the user that has no answer yet, follow the summary word for
word. A later compaction keeps them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from recallog_projections.models.conversations import rendering
from recallog_projections.models.conversations.rendering import Message
from recallog_projections.models.conversations.thresholds import DEFAULT, Thresholds
from recallog_schemas.models.conversations import limits as conversations_limits
from recallog_schemas.roles import ASSISTANT, USER
from recallog_schemas.shortening import cut

MARK = "[compacted]"
"""The beginning of the message with a summary."""
EXTRACTIVE = "extractive"
"""The author of a summary that was made without a model."""

Summarise = Callable[[Sequence[Message]], str]
"""Makes a summary from the messages to replace, oldest first. If there is a former summary, it is the first of them."""

_SENTENCES = "\n\nSaid word for word:\n"
_QUESTION = "\n\nNot answered yet:\n"
_LINE = "- "
_FORGED = re.compile(r"(?:\A|(?<=[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]))(?=(?:Said word for word|Not answered yet):)")
"""The beginning of a line that looks like one of these headings."""
_BINDING = re.compile(r"\b(?:must|never|always)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_BLANK_LINES = re.compile(r"\n\s*\n")


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary, and the sentences that follow it word for word."""

    text: str
    sentences: tuple[str, ...] = ()
    question: str | None = None

    def __str__(self) -> str:
        lines = "".join(f"{_LINE}{sentence}\n" for sentence in self.sentences).rstrip("\n")
        listed = f"{_SENTENCES}{_as_words(lines)}" if lines else ""
        asked = f"{_QUESTION}{_as_words(self.question)}" if self.question else ""
        return f"{_as_words(self.text)}{listed}{asked}"

    @classmethod
    def parse(cls, written: str) -> "Summary":
        """The summary that `str` wrote."""
        before, _, question = written.partition(_QUESTION)
        text, _, lines = before.partition(_SENTENCES)
        sentences = (line.removeprefix(_LINE) for line in lines.split("\n") if line)
        return cls(text, tuple(sentences), question or None)


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The messages that a compaction replaces, and those that stay."""

    instructions: Sequence[Message]
    """The messages before the summary, which stay."""
    former: Summary | None
    """The summary of the previous compaction."""
    head: Sequence[Message]
    """The messages that are replaced. Empty if there is nothing to compact."""
    kept: Sequence[Message]

    @property
    def summarised(self) -> Sequence[Message]:
        """The messages to summarise: the former summary, if there is one, and the messages that are replaced."""
        return self.head if self.former is None else [message_of(self.former.text), *self.head]

    def without(self, newest: int) -> "CompactionPlan":
        """A plan that does not replace the last `newest` of these messages."""
        end = len(self.head) - newest
        return replace(self, head=self.head[:end], kept=[*self.head[end:], *self.kept])

    def summary(self, text: str | None) -> Summary:
        """The whole summary. `text` is the summary of a model; None makes it without a model."""
        chosen = extractive(self.summarised) if text is None else cut(text, conversations_limits.COMPACT_MODEL_CHARS)
        question = _open_question(self)
        left = conversations_limits.COMPACT_VERBATIM_CHARS - len(question or "")
        count = conversations_limits.COMPACT_VERBATIM - (question is not None)
        sentences: list[str] = []
        for sentence in reversed(_binding(self)):  # the newest ones, if not all of them fit
            if len(sentences) < count and len(sentence) <= left:
                sentences.append(sentence)
                left -= len(sentence)
        return Summary(_BLANK_LINES.sub("\n", chosen.strip()), tuple(reversed(sentences)), question)


@dataclass(frozen=True, slots=True)
class Compacted:
    """A conversation after `compact`."""

    messages: list[Message]
    """Instructions, the summary, and the messages that stay; unchanged if nothing was compacted."""
    compacted: int
    """The number of messages that the summary replaces."""
    failed: str | None = None
    """Why `summarise` failed. The summary was then made without it."""


def compact(
    messages: Sequence[Message],
    summarise: Summarise | None = None,
    *,
    max_messages: int = conversations_limits.COMPACT_MESSAGES,
    max_chars: int = conversations_limits.COMPACT_CHARS,
    keep: int = conversations_limits.COMPACT_KEPT,
) -> Compacted:
    """Replace the beginning of a conversation by a message of the system that begins with `[compacted]`.

    Nothing happens up to `max_messages` messages (at least 8) with `max_chars` characters together (at least 4,000),
    and up to `keep` messages (at least 4). `summarise` makes the summary. Without it, and if it raises an exception,
    the summary quotes the last 12 of the replaced messages, 160 characters each and 700 in all. Nothing is stored; use
    `Memory.conversation` for that.
    """
    planned = plan(messages, Thresholds(max_messages, max_chars, keep).clamp())
    if not planned.head:
        return Compacted(list(messages), 0)
    text, failed = None, None
    if summarise is not None:
        try:
            text = summarise(planned.summarised)
            if not isinstance(text, str) or not text.strip():
                text, failed = None, "the summary is empty"
        except Exception as error:  # noqa: BLE001 - a model may fail in any way, and the conversation goes on
            failed = f"{type(error).__name__}: {error}"
    shown = message_of(str(planned.summary(text)))
    return Compacted([*planned.instructions, shown, *planned.kept], len(planned.head), failed)


def plan(messages: Sequence[Message], thresholds: Thresholds = DEFAULT, counted: int | None = None) -> CompactionPlan:
    """What a compaction would replace. Only the newest `counted` messages are counted; None counts all of them."""
    begin = next(
        (number for number, each in enumerate(messages) if each.get("role") not in rendering.INSTRUCTIONS),
        len(messages),
    )
    former = next((each for each in messages[:begin] if is_summary(each)), None)
    instructions = [each for each in messages[:begin] if each is not former]
    body = messages[begin:]
    ends = _cut(body, thresholds, len(body) if counted is None else min(counted, len(body)))
    return CompactionPlan(instructions, None if former is None else _parse_summary(former), body[:ends], body[ends:])


def is_summary(message: Message) -> bool:
    """Whether a message is one that a compaction made."""
    content = message.get("content")
    return message.get("role") == "system" and isinstance(content, str) and content.startswith(f"{MARK} ")


def message_of(summary: str) -> Message:
    """The message that contains a summary."""
    return {"role": "system", "content": f"{MARK} {summary}"}


def extractive(messages: Sequence[Message]) -> str:
    """A summary without a model: the beginning of a former summary, and the beginnings of the last 12 messages."""
    former = [each for each in messages[: -conversations_limits.COMPACT_SNIPPETS] if is_summary(each)]
    snippets = [_snippet(each) for each in (*former, *messages[-conversations_limits.COMPACT_SNIPPETS :])]
    joined = "; ".join(snippet for snippet in snippets if snippet)
    return cut(joined, conversations_limits.COMPACT_SUMMARY_CHARS) or "(no text)"


def text_of(message: Message) -> str:
    """The text of a message, or its refusal."""
    content = rendering.content_in(message)
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, Sequence) else ()
    texts = [part.get("text") or part.get("refusal") for part in parts if isinstance(part, dict)]
    said = "\n".join(text for text in texts if isinstance(text, str))
    refusal = message.get("refusal")
    return said or (refusal if isinstance(refusal, str) else "")


def _cut(body: Sequence[Message], thresholds: Thresholds, counted: int) -> int:
    """The number of messages of `body` that are replaced."""
    newest = body[len(body) - counted :]
    if not thresholds.are_exceeded(counted, sum(map(rendering.chars_of, newest)), len(body)):
        return 0
    ends = len(body) - thresholds.keep
    while ends and rendering.answers_calls(body[ends]):
        ends -= 1
    return ends


def _as_words(text: str) -> str:
    """`text`, with an indent before lines that look like headings of a summary. The message has the role system, but a
    user may have written the text."""
    return _FORGED.sub("  ", text)


def _parse_summary(message: Message) -> Summary:
    return Summary.parse(str(message["content"]).removeprefix(f"{MARK} "))


def _snippet(message: Message) -> str:
    """The beginning of a message in one line, with its role. For a message that calls tools, their names."""
    if is_summary(message):
        return " ".join(_parse_summary(message).text.split())[: conversations_limits.COMPACT_SNIPPET_CHARS]
    said = text_of(message) or ", ".join(f"{call.get('name')}()" for call in rendering.calls_in(message))
    text = " ".join(said.split())[: conversations_limits.COMPACT_SNIPPET_CHARS]
    return f"{rendering.role_in(message)}: {text}" if text else ""


def _binding(planned: CompactionPlan) -> list[str]:
    """The sentences with must, never or always that are replaced, each once, oldest first, except those in results of
    tools."""
    former = planned.former.sentences if planned.former is not None else ()
    said = (text_of(each) for each in planned.head if not rendering.answers_calls(each))
    sentences = (sentence.strip() for text in said for sentence in _SENTENCE_END.split(text))
    return list(dict.fromkeys([*former, *(each for each in sentences if _BINDING.search(each))]))


def _open_question(planned: CompactionPlan) -> str | None:
    """The user's last words, if they are replaced and the assistant has said nothing since."""
    former = planned.former.question if planned.former is not None else None
    question = former
    for message in planned.head:
        question = _find_question(message, question)
    for message in planned.kept:
        if message.get("role") == USER:
            return None  # the question is among the messages that stay
        question = _find_question(message, question)
    return None if question is None else cut(question, conversations_limits.COMPACT_VERBATIM_CHARS)


def _find_question(message: Message, question: str | None) -> str | None:
    """The open question after a message."""
    said = text_of(message).strip()
    if message.get("role") == USER:
        return said or question
    return None if message.get("role") == ASSISTANT and said else question
