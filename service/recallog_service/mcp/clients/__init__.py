"""The configuration files of MCP clients: a server is put into one, or taken out, and nothing else in it changes."""
