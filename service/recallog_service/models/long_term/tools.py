"""The MCP tools for entries, and their answers as texts for a model."""

from recallog_schemas import limits
from recallog_schemas.models.long_term import limits as long_term_limits
from recallog_schemas.models.long_term.views import EntriesChange, Retained
from recallog_schemas.shortening import cut
from recallog_schemas.views import one_line
from recallog_service.mcp.showing import Given
from recallog_service.mcp.tools import Tool, Way


def _show_retained(answer: Retained, given: Given) -> str:
    """`Stored memory l-7: Acme prefers React.`, or why nothing was stored."""
    shown = cut(one_line(given["content"]), limits.PREVIEW_CHARS)
    match answer.outcome:
        case "stored" | "updated":
            return f"{one_line(f'Stored memory {answer.id}: {shown}')}{_show_superseded(answer)}{_near(answer)}"
        case "unpinned":
            why = "but not pinned, since five are already pinned"
            return one_line(f"Stored memory {answer.id}, {why}: {shown}") + _show_superseded(answer)
        case "skipped":
            return one_line(f"Nothing new was stored: duplicate of memory {answer.id}: {shown}")
        case _:
            return f"Not stored ({answer.explanation}): {shown}"


def _show_superseded(answer: Retained | EntriesChange) -> str:
    """A line that names the superseded memories."""
    past = one_line(", ".join(answer.supersedes))
    return f"\nIt supersedes memory {past}, which is kept and marked as past." if past else ""


def _near(answer: Retained) -> str:
    """A line that names the nearest memory if it is similar."""
    nearest = answer.nearest
    if nearest is None or nearest.similarity <= long_term_limits.SIMILARITY_OF_ENTRIES:
        return ""
    near = one_line(f"Memory {nearest.id} is similar ({nearest.similarity:.2f}).")
    return f"\n{near} If one of them is wrong, correct or forget it."


def _forgotten(answer: EntriesChange, given: Given) -> str:
    """Whether the memory was found and forgotten."""
    return one_line(f"Memory {given['memory_id']} {'forgotten' if answer.changed else 'not found'}")


def _show_updated(answer: EntriesChange, given: Given) -> str:
    """Whether the memory was changed, and which memories are superseded."""
    return one_line(f"Memory {given['memory_id']} {'updated' if answer.changed else 'not found'}") + _show_superseded(
        answer
    )


TOOLS = (
    Tool(
        "retain_memory",
        "Retain a memory",
        "Store a fact for later sessions, as one sentence that makes sense without this conversation. A text that "
        "is already stored is not stored twice.",
        [
            Way(
                "long_term.retain",
                {"content": "text", "entity": "entity", "category": "category"},
                _show_retained,
            )
        ],
    ),
    Tool(
        "forget_memory",
        "Forget a memory",
        "Forget a kept memory by its id: nothing shows its text any more. Use it when a person asks for it; correct "
        "an error with update_memory instead.",
        [
            Way(
                "long_term.forget",
                {"memory_id": "entry_ids", "reason": "reason"},
                _forgotten,
                lists=frozenset({"memory_id"}),
                if_not_owner="Memory {memory_id} not found",
            )
        ],
    ),
    Tool(
        "update_memory",
        "Update a memory",
        "Replace the text of a kept memory by a corrected one. The earlier text stays on record.",
        [
            Way(
                "long_term.update",
                {"memory_id": "entry_id", "new_content": "text"},
                _show_updated,
                needs=frozenset({"new_content"}),
                if_not_owner="Memory {memory_id} not found",
            )
        ],
    ),
)
