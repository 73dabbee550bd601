"""An oracle of daily logs: which lines messages become, word by word and without regular expressions."""

from collections.abc import Sequence
from dataclasses import dataclass, field

REQUESTS_IN_ENGLISH = [
    ["please"], ["help"], ["need"], ["want"], ["how", "do"], ["how", "to"], ["how", "can"], ["could", "you"],
    ["remember"],
]  # fmt: skip
DONE_IN_ENGLISH = [["done"], ["completed"], ["finished"], ["fixed"], ["created"], ["deployed"], ["resolved"]]
REQUESTS_IN_CHINESE = ["请", "帮", "要", "需要", "希望", "如何", "怎么"]
DONE_IN_CHINESE = ["已完成"]


@dataclass
class Session:
    """What one agent has seen of one session."""

    unread: list[tuple[bool, str]] = field(default_factory=list)
    """Since its last lines: whether somebody else said it, and the text."""


def words_of(text: str) -> list[tuple[int, str]]:
    """The words of a text in lower case with their places; Chinese characters end words."""
    words: list[tuple[int, str]] = []
    word = ""
    for place, character in enumerate(f"{text} "):
        if (character.isalnum() or character == "_") and not is_chinese(character):
            word += character
        elif word:
            words.append((place - len(word), word.lower()))
            word = ""
    return words


def is_chinese(character: str) -> bool:
    return "\u3040" <= character <= "\u30ff" or "\u3400" <= character <= "\u9fff" or "\uf900" <= character <= "\ufaff"


def english(text: str, phrases: Sequence[Sequence[str]]) -> int | None:
    """Where the first of some phrases begins; between its words there are only spaces."""
    words = words_of(text)
    for number, (place, _) in enumerate(words):
        for phrase in phrases:
            found = words[number : number + len(phrase)]
            if [word for _, word in found] == phrase:
                end = found[-1][0] + len(found[-1][1])
                if text[place:end].lower().split() == phrase:
                    return place
    return None


def chinese(text: str, phrases: Sequence[str]) -> int | None:
    places = [text.find(phrase) for phrase in phrases if phrase in text]
    return min(places) if places else None


def line_of(of_user: bool, text: str, language: str = "cue") -> str | None:
    text = text.strip()
    if of_user:
        if len(text) <= 30:
            return None
        text = text.splitlines()[0]
    quoted = " ".join(text.split())[:200].rstrip()
    in_english = english(quoted, REQUESTS_IN_ENGLISH if of_user else DONE_IN_ENGLISH)
    in_chinese = chinese(quoted, REQUESTS_IN_CHINESE if of_user else DONE_IN_CHINESE)
    if in_english is None and in_chinese is None:
        return None
    is_english = in_chinese is None or (in_english is not None and in_english < in_chinese)
    if language != "cue":
        is_english = language == "english"
    if of_user:
        return f"- {'User asked' if is_english else '用户请求'}: {quoted}"
    return f"- {'Done' if is_english else '完成事项'}: {quoted}"


def lines_of(session: Session, language: str = "cue") -> list[str] | None:
    """The lines when a turn ends, which reads what was unread; None if there are too few messages."""
    if len(session.unread) < 6:
        return None
    lines: list[str] = []
    for of_user, text in session.unread[-20:]:
        line = line_of(of_user, text, language)
        if line is not None and line not in lines:
            lines.append(line)
    session.unread.clear()
    return lines[:8]
