"""Damage to bytes, and to the JSON in them."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

PIECES: Sequence[bytes] = (
    b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\r\n", b"\r", b"\x0b",
    b"\x85", "\u2028".encode(), "\u200d\u0301".encode(), "\U0001f950".encode(), b"\\u0000", b"\\ud800",
    b"\\udc00\\ud800", b"\\x41", b"NaN", b"Infinity", b"-0", b"-0.0", b"1e999", b"1e-999", b"-1", b"1.0", b"9" * 25,
    b"9" * 400, b"9" * 5000, b"1E400", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809",
    b"18446744073709551616", b"null", b"true", b'""', b'"', b"'", b"\\", b"{", b"}", b"[", b"]", b",", b":",
    b"[" * 70, b'{"a":' * 70, b"[" * 3000, b'{"a":' * 3000, b"]" * 70, b"/**/", b"//", b"#", b"--", b";", b"%00",
    b"%", b"=", b"&", b"?", b"@", b"..", b"../", b"\\..\\", b"0:41", b"2026-03-01T12:00:00Z", b"2026-03-01",
    b"0001-01-01T00:00:00+23:59", b"9999-12-31T23:59:59-23:59", b"24:00", b"+14:60", "\u0663".encode(),
    "\u00bd".encode(), "\u0130".encode(), "\u6f22\u5b57".encode(), "\u0e01".encode(), b" " * 300, b"\n" * 300,
)  # fmt: skip
"""What parsers stumble over."""

VALUES: Sequence[Any] = (
    None, True, False, 0, 1, -1, 1.0, -0.0, 0.1, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**30, 1e308,
    5e-324, float("nan"), float("inf"), "", " ", "x", "\0", "\ud800", "\udc00\ud800", "\ufeff", "a b", "a.b", "A.b",
    "agent.spoke", "agent.configured", "space.configured", "x" * 129, "x" * 9000, "x" * 270_000, "\n" * 500, "{text}",
    "{{{a.b}}} of {c}", "2026-03-01T12:00:00Z", "2026-03-01", "yesterday", "0:0", "5:0", "-1", "1e5", "true", "null",
    "baker", "village", "e-1", [], [[]], ["a", "a"], [None], ["baker", 7], {}, {"a": {"b": [1]}}, {"": ""},
    {"text": "x"}, {"text": 7}, {"agent.spoke": {"importance": 2}}, {"shop.opened": {"text": "{", "shared": "yes"}},
    {"relevance": -1},
)  # fmt: skip

KEYS: Sequence[str] = (
    "", "id", "space", "agent", "kind", "at", "turn", "payload", "envelope", "schema_version", "audience", "session",
    "run_id", "actor", "created_at", "text", "belief", "window", "kinds", "role", "content", "tool_calls", "messages",
    "space_id", "\0", "\ud800", "self", "__class__", "__dict__", "model_config", "a.b", "x" * 300,
)  # fmt: skip

LONGEST_BYTES = 300_000
"""Inputs are cut to this length: a little more than an event may have."""


def mutated(rng: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """`data` with one to five changes. `others` are inputs of the same kind, for splices."""
    of_json = rng.choice((1.0, 1.0, 1.0, 0.5, 0.0))  # most bytes that are no JSON are refused early, by any reader
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5))):
        damage = _json_damage if rng.random() < of_json else rng.choice(_BYTES)
        data = damage(rng, data, rng.choice(others))
    return data[:LONGEST_BYTES]


def _place(rng: random.Random, data: bytes) -> int:
    return rng.randrange(len(data) + 1)


def _range(rng: random.Random, data: bytes) -> tuple[int, int]:
    start = _place(rng, data)
    return start, min(len(data), start + rng.choice((1, 1, 2, 4, 16, 64, 400)))


def _flip(rng: random.Random, data: bytes, other: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _set(rng: random.Random, data: bytes, other: bytes) -> bytes:
    at = _place(rng, data)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _truncate(rng: random.Random, data: bytes, other: bytes) -> bytes:
    return data[: _place(rng, data)] if rng.random() < 0.8 else data[_place(rng, data) :]


def _delete(rng: random.Random, data: bytes, other: bytes) -> bytes:
    start, end = _range(rng, data)
    return data[:start] + data[end:]


def _repeat(rng: random.Random, data: bytes, other: bytes) -> bytes:
    start, end = _range(rng, data)
    return data[:end] + data[start:end] * rng.choice((1, 1, 2, 50, 2_000)) + data[end:]


def _move(rng: random.Random, data: bytes, other: bytes) -> bytes:
    start, end = _range(rng, data)
    rest = data[:start] + data[end:]
    at = _place(rng, rest)
    return rest[:at] + data[start:end] + rest[at:]


def _splice(rng: random.Random, data: bytes, other: bytes) -> bytes:
    return data[: _place(rng, data)] + other[_place(rng, other) :]


def _graft(rng: random.Random, data: bytes, other: bytes) -> bytes:
    start, end = _range(rng, other)
    at = _place(rng, data)
    return data[:at] + other[start:end] + data[at:]


def _insert(rng: random.Random, data: bytes, other: bytes) -> bytes:
    at, piece = _place(rng, data), rng.choice(PIECES)
    return data[:at] + piece * rng.choice((1, 1, 1, 1, 3, 200)) + data[at + rng.choice((0, 0, len(piece))) :]


def _line_ends(rng: random.Random, data: bytes, other: bytes) -> bytes:
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"", b"\n\n", b"\x00\n")))


def _encoding(rng: random.Random, data: bytes, other: bytes) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(rng.choice(("utf-16", "utf-32-be", "utf-8-sig", "latin-1", "utf-7")), "replace")


_BYTES: Sequence[Callable[[random.Random, bytes, bytes], bytes]] = (
    _flip, _flip, _set, _set, _truncate, _delete, _delete, _repeat, _move, _splice, _splice, _graft, _insert, _insert,
    _insert, _line_ends, _encoding,
)  # fmt: skip


# JSON


def _json_damage(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """`data` with a changed value or key, in one of its lines if it is JSON Lines; unchanged if it is no JSON."""
    lines = data.split(b"\n")
    index = rng.randrange(len(lines)) if len(lines) > 1 and not data.startswith((b"[\n", b"{\n")) else None
    try:
        document = json.loads(data if index is None else lines[index])
    except (ValueError, RecursionError):
        return _insert(rng, data, data)
    written = _written(rng, _changed(rng, document))
    if index is None:
        return written
    lines[index] = written
    return b"\n".join(lines)


def _changed(rng: random.Random, document: Any) -> Any:
    """The document with one change at a random place in it, in place where it can be."""
    if isinstance(document, dict) and document and rng.random() < 0.85:
        key = "payload" if "payload" in document and rng.random() < 0.5 else rng.choice(list(document))
        action = rng.random()
        if action < 0.65:
            document[key] = _changed(rng, document[key])
        elif action < 0.75:
            del document[key]
        elif action < 0.82:
            document[rng.choice(KEYS)] = document.pop(key)
        elif action < 0.9:
            other = rng.choice(list(document))
            document[key], document[other] = document[other], document[key]
        else:
            document[rng.choice(KEYS)] = rng.choice(VALUES)
        return document
    if isinstance(document, list) and document and rng.random() < 0.85:
        at, action = rng.randrange(len(document)), rng.random()
        if action < 0.6:
            document[at] = _changed(rng, document[at])
        elif action < 0.75:
            del document[at]
        elif action < 0.9:
            document[at:at] = document[at : at + 1] * rng.choice((1, 2, 200))
        else:
            rng.shuffle(document)
        return document
    action = rng.random()
    if action < 0.7:
        return rng.choice(VALUES)
    if action < 0.8:
        return _nested(document, rng.choice((1, 2, 62, 64, 66, 190, 300)), in_lists=rng.random() < 0.5)
    if isinstance(document, str):
        at = rng.randrange(len(document) + 1)
        piece = rng.choice(PIECES).decode("utf-8", "surrogateescape")
        return document[:at] + piece + document[at:]
    if isinstance(document, int | float) and not isinstance(document, bool):
        return rng.choice((str(document), -document, document * 10**6 if document == document else 0, [document]))
    return {"text": document}


def _nested(value: Any, levels: int, *, in_lists: bool) -> Any:
    for _ in range(levels):
        value = [value] if in_lists else {"a": value}
    return value


def _written(rng: random.Random, document: Any) -> bytes:
    """JSON as some program may write it: with escapes or without, with any white space, with a key twice."""
    separators = rng.choice(((",", ":"), (", ", ": "), (" ,\t", " : ")))
    text = json.dumps(document, ensure_ascii=rng.random() < 0.5, separators=separators)
    if isinstance(document, dict) and document and rng.random() < 0.1:
        twice = json.dumps({rng.choice(list(document)): rng.choice(VALUES)})[1:-1]
        text = f"{{{twice},{text[1:]}" if rng.random() < 0.5 else f"{text[:-1]},{twice}}}"
    return text.encode("utf-8", "surrogatepass")
