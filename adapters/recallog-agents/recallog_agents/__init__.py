"""Recallog in the configuration of coding agents and other MCP clients: `recallog mcp install`."""
