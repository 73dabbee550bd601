"""The resource with the beliefs of an agent."""

from recallog_service.mcp.tools import Resource

RESOURCES = (Resource("recallog://beliefs", "Beliefs", "The newest beliefs of the agent, oldest first.", "beliefs"),)
