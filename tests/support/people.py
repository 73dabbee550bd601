"""Names that people and identity providers give, those that are made to collide, and all others that are valid."""

import unicodedata

from hypothesis import strategies as st

from recallog_schemas import names

OF_PEOPLE = [
    "auth0|65f2c0ffee", "user:123", "ann+shop@example.org", "张伟", "Jürgen", "Project X", "+4915112345", "-kQ7_x",
    "Doe, Jane", "CN=Jane Doe,OU=Sales", "O'Neil", 'a "b"', "who?", "50%", "C:\\Users\\ann", "#7", "a&b=c", "[x]", "🙂",
    "Анна", "สมชาย", "{space}",
]  # fmt: skip
COLLIDING = [
    "a", "b", "a,b", "a/b", "a%2Cb", "a%2Fb", "a:b", "a%3Ab", "a b", "a-b", "a.b", "-a", "+a", "--a", "a|b", "a\\b",
    "a/../b", "a/.", "a/reaction.due/b", "b/summary.due/a", "a_b", "a%", "a%25", "é", "e", "A", "a?b", "a#b", "...",
]  # fmt: skip
REFUSED = [
    ("", "is empty"), (" a", "blank"), ("a\u3000", "blank"), ("a\nb", "U+000A"), ("a\u2028b", "U+2028"),
    ("a\0", "U+0000"), ("a\u200db", "U+200D"), ("a\u202eb", "U+202E"), ("\ufeffa", "U+FEFF"), ("*", "has a *"),
    ("acme/*", "has a *"), (".", "path or a command"), ("..", "path or a command"), ("-", "path or a command"),
    ("张" * 86, "258 bytes"), ("ann\u3164", "U+3164"), ("ann\u034f", "U+034F"), ("ann\u2800", "U+2800"),
]  # fmt: skip
"""What is not a name, with a part of the reason."""


def is_valid(text: str) -> bool:
    return names.is_name(names.in_nfc(text))


def otherwise(name: str) -> str:
    """The same name, composed in another way."""
    return unicodedata.normalize("NFD", name)


valid = (
    st.sampled_from(OF_PEOPLE + COLLIDING)
    | st.lists(st.sampled_from([*"a/%:,-+.|\\ é张", "%2F", "e\u0301", ".due/"]), min_size=1, max_size=6).map("".join)
    | st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)
).filter(is_valid)
