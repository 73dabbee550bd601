"""The own words of a message: without what its author quotes, pastes or forwards, which is from somebody else.

These are left out: fenced blocks, quoted lines (`>`), blocks between tags, and quotations after a colon; and everything
from a line on that begins another document: a heading, the header of a forwarded mail, the mark of another speaker
(`SYSTEM:`), or a mark of a chat template. Each pattern reads a text once.
"""

import re

_FENCED = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_QUOTED_LINE = re.compile("^[ \t]*[>\uff1e|].*$", re.MULTILINE)
_TAG = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z][\w.-]*)(?:\s[^<>]*)?>")
_STYLES = frozenset({"b", "i", "u", "s", "em", "strong", "br", "p", "span"})
"""Tags with which people style their own words."""
_QUOTATIONS = ('""', "“”", "„“", "«»", "「」", "『』", "\u2018\u2019", "''")
_QUOTATION = re.compile(
    "(?<=[:\uff1a])\\s*(?:" + "|".join(f"{each[0]}[^{each[1]}]*(?:{each[1]}(?!\\w)|\\Z)" for each in _QUOTATIONS) + ")"
)
_SPEAKERS = (
    "system|developer|assistant|operator|administrator|admin|tool|function|sistema|asistente|operador|administrador|"
    "herramienta|entwickler|assistent|betreiber|werkzeug|系统|系統|开发者|助手|管理员|操作员|工具"
)
_SORTS = "message|prompt|note|override|mensaje|nachricht|hinweis|消息|提示"
_OTHER_DOCUMENT = re.compile(
    r"^[ \t]*(?:"
    r"\#{1,6}[ \t]|[=_*-]{3,}[ \t]*\S|[=-]{3,}[ \t]*$"
    rf"|[\[(*_{{]*(?:{_SPEAKERS})(?:[ \t]*(?:{_SORTS}))?[\])*_}}]*[ \t]*[:\uff1a]"
    rf"|[\[{{](?:{_SPEAKERS})[^\n\]}}]*[\]}}]"
    r"|(?:begin forwarded message|(?:from|von|de|发件人|寄件人)[ \t]*[:\uff1a][^\n]*[@<])"
    r")|<\|[\w-]+\|>|\[/?INST\]|<</?SYS>>",
    re.IGNORECASE | re.MULTILINE,
)


def own_words(text: str) -> str:
    """`text` without what its author quotes; "" if all of it is quoted."""
    text = "\n".join(text.splitlines())
    # A line break takes the place of what is left out: words on both sides of it never become one mark.
    text = _QUOTED_LINE.sub("", _without_tags(_FENCED.sub("\n", text)))
    text = _QUOTATION.sub("\n", text)
    other = _OTHER_DOCUMENT.search(text)
    return (text if other is None else text[: other.start()]).strip()


def _without_tags(text: str) -> str:
    """The text before, between and after elements; what follows a tag that is not closed is left out too."""
    own: list[str] = []
    end, name, depth = 0, "", 0
    for tag in _TAG.finditer(text):
        if tag["name"].lower() in _STYLES:
            continue
        if not depth and not tag["close"]:
            own.append(text[end : tag.start()])
            name, depth = tag["name"], 1
        elif depth and tag["name"] == name:
            depth += -1 if tag["close"] else 1
            end = tag.end()
    return "\n".join([*own, "" if depth else text[end:]])
