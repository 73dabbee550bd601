"""The parts of the doors for single memory models, one package for each. CONTRIBUTING.md has the map.

Operations need nothing here: commands, routes and documents are derived from them. `import_parts` finds modules by
their names: `commands` written by hand, `tools` and `resources` of the MCP server, further HTTP `paths`, and
`rendering` of answers in a terminal.
"""
