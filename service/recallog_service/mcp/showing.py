"""The answers of tools as texts for a model.

Memories are written by many hands. Each is shown with its id, time, author and kind, and indented where it has several
lines, so that no text of a memory can pass for the words of the tool or for another memory.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from recallog_schemas import limits
from recallog_schemas.models.long_term.views import EntriesChange, Retained, Synthesis
from recallog_schemas.shortening import cut
from recallog_schemas.views import AroundView, EntriesView, Preview, RecallView, View, continued, indented, one_line

NOTHING = "No relevant memories found."
NEAREST = " The nearest ones, which may have nothing to do with it:"
ONLY_WORDS = "(Only words were compared: search by meaning is not available now.)"

Given = Mapping[str, Any]
"""The arguments of a tool."""


def text(answer: View, given: Given) -> str:
    """The human form of an answer."""
    return answer.format()


def retained(answer: Retained, given: Given) -> str:
    """`Stored memory l-7: Acme prefers React.`, or why nothing was stored."""
    shown = cut(one_line(given["content"]), limits.PREVIEW_CHARS)
    match answer.outcome:
        case "stored" | "updated":
            return one_line(f"Stored memory {answer.id}: {shown}{_near(answer)}")
        case "skipped":
            return one_line(f"Memory {answer.id} has this already: {shown}")
        case _:
            return f"Not stored ({answer.reason}): {shown}"


def _near(answer: Retained) -> str:
    """A further line that names the nearest memory, if it may say the same."""
    nearest = answer.nearest
    if nearest is None or nearest.similarity <= limits.SIMILARITY_OF_ENTRIES:
        return ""
    return (
        f"\nMemory {nearest.id} is similar ({nearest.similarity:.2f}). If one of both is wrong, correct or forget it."
    )


def recalled(answer: RecallView, given: Given) -> str:
    """One line for each memory, best first; weak ones only if there is no other, and marked as such."""
    hits = answer.hits if answer.nothing_close else [hit for hit in answer.hits if not hit.weak]
    lines = [
        one_line(f"- {_origin(hit.event.id, hit.at, hit.event.agent, hit.event.kind)}: {hit.quote}") for hit in hits
    ]
    if answer.nothing_close:
        lines = [NOTHING + (NEAREST if lines else ""), *lines]
    if answer.degraded is not None:
        lines.append(ONLY_WORDS)
    return "\n".join(lines)


def reflected(answer: Synthesis, given: Given) -> str:
    """The answer, and the ids of the memories that it was made from."""
    sources = f"\n\nFrom: {one_line(', '.join(answer.sources))}" if answer.sources else ""
    return f"{continued(answer.answer)}{sources}"


def forgotten(answer: EntriesChange, given: Given) -> str:
    """Whether the memory was there to be forgotten."""
    return one_line(f"Memory {given['memory_id']} {'forgotten' if answer.changed else 'not found'}")


def updated(answer: EntriesChange, given: Given) -> str:
    """Whether the memory was changed."""
    return one_line(f"Memory {given['memory_id']} {'updated' if answer.changed else 'not found'}")


def opened(answer: EntriesView, given: Given) -> str:
    """Whole memories, and the ids that were not found."""
    found = [
        f"{_origin(each.event.id, each.at, each.event.agent, each.event.kind)}:\n{indented(each.text)}"
        for each in answer.entries
    ]
    missing = [one_line(f"Memory {id_} not found") for id_ in answer.missing]
    rest = [f"({answer.left_out} more have no room in this answer: {answer.rest})"] if answer.left_out else []
    return "\n".join([*found, *missing, *rest])


def around(answer: AroundView, given: Given) -> str:
    """The beginnings of memories in the order in which they happened, `>` before the one that was named."""
    return "\n".join(
        f"{'>' if each is answer.anchor else '-'} {_preview(each)}"
        for each in (*answer.before, answer.anchor, *answer.after)
    )


def _preview(each: Preview) -> str:
    return f"{_origin(each.id, each.at, each.agent, each.kind)}: {one_line(each.preview)}"


def _origin(id_: str, at: datetime, agent: str, kind: str) -> str:
    return f"{one_line(id_)} ({at:%Y-%m-%d %H:%M}, {agent}, {kind})"
