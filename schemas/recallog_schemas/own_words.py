"""The author's own words in a message, without what the author quotes, pastes or forwards.

These are left out: fenced blocks, quoted lines (`>`), blocks between tags, comments, quotations after a colon, and
quotations that end with the full stop of a sentence; and everything from a line on that begins another document: a
heading, a line of dashes, the header of a forwarded mail, the mark of another speaker (`SYSTEM:`), or a mark of a chat
template. Each pattern reads a text once.
"""

import re

_BLOCK = re.compile(
    r"^[ \t]*(`{3,}(?=[^`\n]*$)|~{3,})[^\n]*$.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)|```.*?(?:```|\Z)|<!--.*?(?:-->|\Z)",
    re.DOTALL | re.MULTILINE,
)
_QUOTED_LINE = re.compile("^[ \t]*[>\uff1e|].*$", re.MULTILINE)
_TAG = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z][\w.-]*)(?:\s[^<>]*)?>")
_STYLES = frozenset({"b", "i", "u", "s", "em", "strong", "br", "p", "span"})
"""Tags with which people style their own words."""
_QUOTATIONS = ('""', "\uff02\uff02", "“”", "””", "„“”", "«»", "»«", "\u2039\u203a", "\u203a\u2039", "「」", "『』")
"""In each text, the mark that opens a quotation, and then those that close it."""
_APOSTROPHES = ("\u2018\u2019", "\u2019\u2019", "''")
"""Marks of quotations whose closing mark also occurs inside words."""
_QUOTATION = re.compile(
    "(?<=[:\uff1a])\\s*(?:"
    + "|".join(
        [f"{each[0]}[^{each[1:]}]*(?:[{each[1:]}]|\\Z)" for each in _QUOTATIONS]
        + [f"{each[0]}(?:[^{each[1]}]|{each[1]}(?=[^\\W\u4e00-\u9fff]))*(?:{each[1]}|\\Z)" for each in _APOSTROPHES]
    )
    + ")"
)
_SPEAKERS = (
    "system|developer|assistant|operator|administrator|admin|tool|function|user|human|ai|sistema|asistente|operador|"
    "administrador|herramienta|usuario|entwickler|assistent|betreiber|werkzeug|nutzer|benutzer|système|opérateur|"
    "administrateur|outil|utilisateur|系统|系統|开发者|助手|管理员|操作员|工具|用户"
)
_SORTS = (
    "message|prompt|note|override|result|output|mensaje|resultado|nachricht|hinweis|ergebnis|résultat|消息|提示|结果"
)
_SENTENCE = re.compile(
    "(?<![A-Za-z0-9])(?:"
    + "|".join(
        [f"{each[0]}([^{each}]*[.!?。！？…])[{each[1:]}]" for each in _QUOTATIONS]
        + [rf"{each[0]}([^{each}]*(?:\w{each[1]}\w[^{each}]*)*[.!?]){each[1]}(?!\w)" for each in _APOSTROPHES]
    )
    + ")"
)
"""A quotation that ends with the full stop of a sentence."""
_WORD = re.compile(r"[^\W\d_]{3,}")
_OTHER_DOCUMENT = re.compile(
    r"^[ \t]*+(?:"
    r"\#{1,6}[ \t]|[=-]{3,}[ \t]*\S|[_*]{3,}[ \t]+\S|[=_-]{3,}[ \t]*$"
    rf"|[\[(*_{{]*(?:{_SPEAKERS})(?:[^\S\n]*(?:{_SORTS}))?[\])*_}}]*[^\S\n]*[:\uff1a]"
    rf"|[\[{{](?:{_SPEAKERS})[^\n\]}}]*[\]}}]"
    r"|(?:begin forwarded message|(?:from|von|de|发件人|寄件人)[^\S\n]*[:\uff1a][^\n]*[@<])"
    r"|(?:(?:on|am|le|el)\b[^\n\d]{0,60}\d[^\n]{0,200}?\b(?:wrote|schrieb|écrit|escribió)\b[^\n]{0,100}"
    r"|[^\n\d]{0,60}\d[^\n]{0,200}?写道)[:\uff1a][ \t]*$"
    r")|<\|[\w-]+\|>|\[/?INST\]|<</?SYS>>",
    re.IGNORECASE | re.MULTILINE,
)


def own_words(text: str) -> str:
    """`text` without what its author quotes; "" if all of it is quoted."""
    text = "\n".join(text.splitlines())
    # A line break replaces what is left out, so that the text on both sides never forms a new mark.
    text = _QUOTED_LINE.sub("", _without_tags(_BLOCK.sub("\n", text)))
    text = _SENTENCE.sub(_leave_out_sentence, _QUOTATION.sub("\n", text))
    other = _OTHER_DOCUMENT.search(text)
    return (text if other is None else text[: other.start()]).strip()


def _leave_out_sentence(quotation: re.Match[str]) -> str:
    """A line break in place of a quoted sentence. A quoted word stays, as does a name or title: its words are
    capitalized."""
    first, *more = next(filter(None, quotation.groups()), "").split() or [""]
    longer = [word for part in more for word in _WORD.findall(part)]
    is_name = all(word[0].isupper() for word in longer) if longer else not more and first.isascii()
    return quotation[0] if is_name else "\n"


def _without_tags(text: str) -> str:
    """The text before, between and after elements; what follows a tag that is not closed is left out too."""
    own: list[str] = []
    end, name, depth = 0, "", 0
    tags = list(_TAG.finditer(text))
    closed = {tag["name"] for tag in tags if tag["close"]}
    for tag in tags:
        is_parameter = tag["name"] not in closed and text[tag.start() - 1 : tag.start()].isalnum()  # `List<Name>`
        if is_parameter or tag["name"].lower() in _STYLES:
            continue
        if not depth and not tag["close"]:
            own.append(text[end : tag.start()])
            name, depth = tag["name"], 1
        elif depth and tag["name"] == name:
            depth += -1 if tag["close"] else 1
            end = tag.end()
    return "\n".join([*own, "" if depth else text[end:]])
