"""The MCP resource with the prompt of an agent."""

from recallog_service.mcp.tools import Resource

RESOURCES = (Resource("recallog://context", "Context", "What the agent should have in mind now.", "context"),)
