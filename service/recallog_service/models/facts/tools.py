"""The MCP tool that answers questions from stored entries."""

from recallog_schemas.models.long_term.views import Synthesis
from recallog_schemas.views import indent_continuation, one_line
from recallog_service.mcp.showing import Given
from recallog_service.mcp.tools import Tool, Way


def _show_answer(answer: Synthesis, given: Given) -> str:
    """The answer, and the ids of its sources."""
    sources = f"\n\nFrom: {one_line(', '.join(answer.sources))}" if answer.sources else ""
    return f"{indent_continuation(answer.answer)}{sources}"


TOOLS = (
    Tool(
        "reflect_on_memory",
        "Reflect on memories",
        "Answer a question from the best matching stored facts and experiences, and name their ids.",
        [Way("long_term.reflect", {"question": "question"}, _show_answer)],
    ),
)
