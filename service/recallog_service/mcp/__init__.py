"""The MCP door: a memory as tools and resources for models, over stdio and Streamable HTTP. Needs the extra `mcp`."""
