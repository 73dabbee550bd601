"""Histories of Aider: the Markdown of `.aider.chat.history.md`.

A session begins with `# aider chat started at 2026-03-01 12:00:00`. Lines with `####` are input of the user, lines with
`>` are output of the program, and all others are the answer of the model. A session is named by its time.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from recallog import InvalidEvent
from recallog_service.formats import (
    Cast,
    ConversationFile,
    FileConversation,
    Format,
    LeftOutBlock,
    Options,
    Source,
    file_of,
    structure_of,
)

_EXPECTED = "a history of Aider: Markdown with sessions that begin with # aider chat started at"
_BEGINS = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_TYPED, _OUTPUT = "####", ">"


def _read(source: Source, options: Options) -> ConversationFile:
    try:
        lines = source.text().decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InvalidEvent(f"not UTF-8: {error}; expected {_EXPECTED}", rule="unparsable") from None
    begins = [(index, found[1]) for index, line in enumerate(lines) if (found := _BEGINS.fullmatch(line))]
    if not begins and any(line.strip() for line in lines):
        raise InvalidEvent(f"expected {_EXPECTED}", rule="format")
    conversations: list[FileConversation | InvalidEvent] = []
    left_out: list[str] = []
    ends = [*(each for each, _ in begins), len(lines)][1:]
    for (begin, time), end in zip(begins, ends, strict=True):
        parts = list(_messages(lines[begin + 1 : end], begin + 2))
        if not any(isinstance(message, dict) for _, message in parts):
            left_out += [message.type for _, message in parts if isinstance(message, LeftOutBlock)]
            continue
        messages, ordinals = [message for _, message in parts], [ordinal for ordinal, _ in parts]
        try:
            began = datetime.fromisoformat(time).replace(tzinfo=UTC).isoformat()
        except ValueError:
            conversations.append(InvalidEvent(f"line {begin + 1}: {time} is not a time", rule="datetime_parsing"))
            continue
        fields = {"id": f"aider-{time}", "created_at": began}
        number = len(conversations) + 1
        conversations.append(FileConversation(number, fields, messages, ordinals, "line", Cast("aider")))
    return file_of(conversations, options, left_out)


def _messages(lines: list[str], first: int) -> Iterator[tuple[int, object]]:
    role, texts, began = "", list[str](), first
    for number, line in enumerate([*lines, ""], first):
        now = "user" if line.startswith(_TYPED) else "output" if line.startswith(_OUTPUT) else "assistant"
        if role and (now != role or number == first + len(lines)):
            if text := "\n".join(texts).strip():
                yield began, LeftOutBlock("output") if role == "output" else {"role": role, "content": text}
            texts, began = [], number
        role = now
        texts.append(line.removeprefix(_TYPED).strip() if now == "user" else line)


FORMAT = Format(
    "aider",
    "histories of Aider (.aider.chat.history.md)",
    structure_of("aider"),
    _read,
    "what the user typed, answers",
    "output of the program (files, tokens, commits)",
)
