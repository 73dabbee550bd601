"""Hits of recall as a section of a prompt."""

from collections.abc import Iterable

from recallog.retrieval.channels import DOCUMENT
from recallog_schemas.shortening import CHARS_PER_TOKEN
from recallog_schemas.views import RecallHit, one_line

HEADING = "## Recalled Memories"


def format_context(hits: Iterable[RecallHit], max_tokens: int = 2000) -> str:
    """A heading and one line for each hit, in the given order: `- [category] text (score: 0.95)`; "" without a line.

    An entry without a category shows its type, and an event its kind. The lines have at most 4 * `max_tokens`
    characters in all, without the heading; a hit whose whole line does not fit is left out.
    """
    room, lines = CHARS_PER_TOKEN * max_tokens, []
    for hit in hits:
        labels = one_line(f"[{_label(hit)}]{hit.source_label}{hit.labels(hit.event.id)}")
        line = f"- {labels} {hit.quote_data(hit.text)} (score: {hit.score:.2f})"
        if len(line) <= room:
            lines.append(line)
            room -= len(line) + 1  # with the line break before the next one
    return "\n".join([HEADING, *lines]) if lines else ""


def _label(hit: RecallHit) -> str:
    payload = hit.event.payload
    if hit.lines is not None:
        return DOCUMENT
    if not hit.is_entry:
        return hit.event.kind
    return str(payload.get("category") or payload["type"])
