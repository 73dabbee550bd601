"""Whether a text is a question, in any script."""

import re
import unicodedata

_MARKS = "?？؟⸮⁇⁈⁉‽፧꘏\u037e"
_AFTER_MARK = "\"'`*_~:～!！.。…,，、”’“‘»«›‹」』)）]］}｝】〉》\u200d"
"""Signs that may follow a question mark: closing quotes and brackets, and repeated marks."""

_OPENING = {")": "(", "）": "（", "]": "[", "］": "［", "】": "【", "*": "*"}
"""By closing bracket. A last part in brackets or asterisks is a shared image, or what a role does while it speaks."""

_GREEK = re.compile(r"[\u0370-\u03ff\u1f00-\u1fff][\s”’»\"']*;$")
"""The question mark of Greek is the semicolon."""
_ARMENIAN = re.compile(r"\u055e[^\u0589:]*[\u0589:]?$")
"""The question mark of Armenian is inside of the last sentence."""

_ENDINGS = re.compile(
    "[吗嗎]$"
    "|(?:です|ます|でした|ました|ません|でしょう|だろう|のだろう)か$"
    "|(?:까요|는가요|은가요|인가요)$"
    "|(?:ไหม|มั้ย|มั๊ย|หรือเปล่า|หรือยัง|หรือไม่)(?:ครับ|คะ|ค่ะ|จ๊ะ|จ้ะ)?$"
)
"""Endings that ask in Chinese, Japanese, Korean and Thai, where the mark is often left out."""
_KOREAN_ENDING = re.compile("([가-힣])니까$")
_FINAL_CONSONANTS = 28
_BIEUP = 17
"""The final consonant of 습니까 and 입니까. With another one, 니까 means "because"."""


def is_question(text: str) -> bool:
    """Whether `text` ends with a question mark, or with words that ask in languages that leave it out.

    A last part in brackets, closing quotes and emoji are ignored.
    """
    bare = _without_brackets(text)
    if not bare and not text.rstrip().endswith("]"):
        bare = text  # all of it is in brackets, and it is not an image
    end = _end(bare)
    if end.endswith(tuple(_MARKS)) or _GREEK.search(bare):
        return True
    if end.isascii():
        return False
    if _ENDINGS.search(end) or _ARMENIAN.search(bare):
        return True
    korean = _KOREAN_ENDING.search(end)
    return korean is not None and (ord(korean[1]) - ord("가")) % _FINAL_CONSONANTS == _BIEUP


def _without_brackets(text: str) -> str:
    text = text.rstrip()
    while text and (opening := _OPENING.get(text[-1])) is not None:
        start = text.rfind(opening, 0, len(text) - 1)
        if start < 0 or (opening != "*" and start < text.rfind(text[-1], 0, len(text) - 1)):
            break  # a smiley
        text = text[:start].rstrip()
    return text


def _end(text: str) -> str:
    """The last characters of a text, without those that may follow a question mark."""
    last = len(text)
    while last and (text[last - 1] in _AFTER_MARK or text[last - 1].isspace() or _is_emoji(text[last - 1])):
        last -= 1
    return text[max(0, last - 16) : last]


def _is_emoji(character: str) -> bool:
    return character == "\ufe0f" or (character > "\u2000" and unicodedata.category(character) in {"So", "Sk"})
