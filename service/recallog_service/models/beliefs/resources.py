"""The MCP resources with the beliefs of an agent, and with the beliefs that it may see."""

from recallog_service.mcp.tools import Resource

RESOURCES = (
    Resource("recallog://beliefs", "Beliefs", "The newest beliefs of the agent, oldest first.", "beliefs"),
    Resource(
        "recallog://beliefs/graph",
        "Graph of beliefs",
        "The beliefs that the agent may see, and which support, contradict or supersede each other.",
        "beliefs.graph",
    ),
    Resource(
        "recallog://beliefs/contradictions",
        "Contradictory beliefs",
        "The beliefs that the agent may see and that are for and against the same subject, newest first.",
        "beliefs.contradictions",
    ),
)
