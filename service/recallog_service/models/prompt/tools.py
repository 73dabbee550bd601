"""The MCP tools for prompts."""

from recallog_service.mcp import showing
from recallog_service.mcp.tools import Tool, Way

TOOLS = (
    Tool(
        "context",
        "Context",
        "What you should have in mind now: your identity, the scene, recent events, beliefs, and memories that fit "
        "the query. Use it at the beginning of a session.",
        [Way("context", {"query": "query", "budget_tokens": "budget_tokens"}, showing.text)],
    ),
    Tool(
        "why",
        "Why an event is remembered",
        "Whether your context has an event, and why or why not: the parts of its score, its rank and its age.",
        [Way("explain", {"memory_id": "event_id", "query": "query"}, showing.text)],
    ),
)
