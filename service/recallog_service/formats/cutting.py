"""Cuts the texts of an event that exceeds the size limit."""

import json
from collections.abc import Mapping
from typing import Any

from recallog_schemas import codec, limits
from recallog_schemas.errors import EventTooLarge, InvalidEvent


def cut_to_fit(fields: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The `fields` of an event with the longest texts of its payload cut to the size limit, and what is missing.

    Texts are cut between characters, as late as the limit allows, and end with a note of how much is missing. A list or
    an object that is too long is cut as JSON text. If this is not enough, `fields` are returned unchanged.
    """
    payload: Mapping[str, Any] = fields["payload"]
    texts = {name: text for name, value in payload.items() if (text := _as_text(value)) is not None}
    fits, too_long = 0, limits.EVENT_BYTES_MAX
    if not _encodable(fields, _cut(payload, texts, fits)):
        return dict(fields), ""
    while fits + 1 < too_long:
        middle = (fits + too_long) // 2
        if _encodable(fields, _cut(payload, texts, middle)):
            fits = middle
        else:
            too_long = middle
    missing = [
        f"{name}: {len(text) - fits:,} of {len(text):,} characters" for name, text in texts.items() if len(text) > fits
    ]
    return {**fields, "payload": _cut(payload, texts, fits)}, ", ".join(missing)


def _as_text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else None


def _cut(payload: Mapping[str, Any], texts: Mapping[str, str], chars: int) -> dict[str, Any]:
    long = {
        name: f"{text[:chars]}\n(cut: {len(text) - chars:,} of {len(text):,} characters are missing)"
        for name, text in texts.items()
        if len(text) > chars
    }
    return {**payload, **long}


def _encodable(fields: Mapping[str, Any], payload: dict[str, Any]) -> bool:
    try:
        codec.make({**fields, "payload": payload})
    except EventTooLarge:
        return False
    except InvalidEvent:
        return True  # another fault, which shorter texts do not mend
    return True
