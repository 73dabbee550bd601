"""Cuts the texts of an event that exceeds the size limit."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recallog_schemas import Event, codec, limits
from recallog_schemas.errors import EventTooLarge
from recallog_schemas.kinds.trust import CLASSES, TRUST
from recallog_schemas.rules import with_newest_rule
from recallog_service.formats.item import Item, make_item

_CLASS = {TRUST: max(CLASSES, key=len)}
"""Added before the size is checked: an event still fits when an ingest has stated its source class."""


def make_cut_item(number: int, location: str, fields: Mapping[str, Any]) -> Item:
    """The event with these fields, which is too large, cut to the size limit; that error if cutting does not help."""
    shorter, missing = _cut_to_fit(fields)
    item = make_item(number, location, shorter)
    if item.event is None:
        return make_item(number, location, fields)
    return replace(item, cut=f"{location}: cut, {missing} are missing")


def fit_item(item: Item, event: Event, unit: str) -> Item:
    """The item with `event`, whose texts are cut if what is stated in it, or scrubbing, makes it too large."""
    published = with_newest_rule(event)
    try:
        codec.encode(published)
    except EventTooLarge:
        made = make_cut_item(item.number, f"{unit} {item.number}", published.model_dump())
        return replace(item, event=made.event, error=made.error, cut=item.cut or made.cut)
    return replace(item, event=event)


def _cut_to_fit(fields: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The `fields` of an event with the longest texts of its payload cut to the size limit, and what is missing.

    Texts are cut between characters, as late as the limit allows, and end with a note of how much is missing. A list or
    an object that is too long is cut as JSON text. If this is not enough, `fields` are returned unchanged.
    """
    payload: Mapping[str, Any] = fields["payload"]
    texts = {name: text for name, value in payload.items() if (text := _as_text(value)) is not None}
    fits, too_long = 0, limits.EVENT_BYTES_MAX
    if not _fits(fields, _cut(payload, texts, fits)):
        return dict(fields), ""
    while fits + 1 < too_long:
        middle = (fits + too_long) // 2
        if _fits(fields, _cut(payload, texts, middle)):
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


def _fits(fields: Mapping[str, Any], payload: dict[str, Any]) -> bool:
    """Whether the event is not too large. It may have another fault, which shorter texts do not mend."""
    return not isinstance(make_item(0, "", {**fields, "payload": {**_CLASS, **payload}}).error, EventTooLarge)
