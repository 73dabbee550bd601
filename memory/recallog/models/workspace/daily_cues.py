"""The cues of the daily log: which messages of a session become lines of documents, in English and Chinese.

A user's message that is long enough is a request if its first line contains a cue of a request. A message of the agent
itself reports a result if it contains a cue of a result. English cues are whole words, in any case; next to Chinese
text they do not need a space.
"""

import re
from typing import Literal, NamedTuple

from recallog_schemas.kinds.settings import CueLanguage
from recallog_schemas.models.workspace import limits as workspace_limits

Speaker = Literal["user", "agent"]
Language = Literal["english", "chinese"]


class _Cues(NamedTuple):
    label: str
    """The beginning of the lines."""
    pattern: re.Pattern[str]


_LETTER = "[^\\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
"""A letter, a digit or "_", except Chinese and Japanese characters, which are next to words without spaces."""


def _words(*words: str) -> re.Pattern[str]:
    spaced = "|".join(word.replace(" ", r"\s+") for word in words)
    return re.compile(f"(?<!{_LETTER})(?:{spaced})(?!{_LETTER})", re.IGNORECASE)


_CUES: dict[Speaker, dict[Language, _Cues]] = {
    "user": {
        "english": _Cues(
            "User asked",
            _words("please", "help", "need", "want", "how (?:do|to|can)", "could you", "remember"),
        ),
        "chinese": _Cues("用户请求", re.compile("请|帮|要|需要|希望|如何|怎么")),
    },
    "agent": {
        "english": _Cues(
            "Done",
            _words("done", "completed", "finished", "fixed", "created", "deployed", "resolved"),
        ),
        "chinese": _Cues("完成事项", re.compile("已完成")),
    },
}


def line_of(speaker: Speaker, text: str, language: CueLanguage = "cue") -> str | None:
    """The line that a message becomes, as a bullet; None if it has no cue. If cues of two languages occur, the first
    decides."""
    quoted, cues = _quote_message(speaker, text), _CUES[speaker]
    found = {each: cue.start() for each, one in cues.items() if (cue := one.pattern.search(quoted)) is not None}
    if not found:
        return None
    spoken = min(found, key=found.__getitem__) if language == "cue" else language
    return f"- {cues[spoken].label}: {quoted}"


def _quote_message(speaker: Speaker, text: str) -> str:
    """The part of a message that a line quotes. It must contain the cue. "" if the message is too short."""
    text = text.strip()
    if speaker == "user":
        text = text.splitlines()[0] if len(text) > workspace_limits.DAILY_REQUEST_CHARS else ""
    return " ".join(text.split())[: workspace_limits.DAILY_LINE_CHARS_MAX].rstrip()
