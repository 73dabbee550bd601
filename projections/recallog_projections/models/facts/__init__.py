"""The entity graph: which entities the live entries of each reader name, and which of them are named together.

Modules by concern: `entities` finds the entities of a text; `tables` are the rows; `projection` is the fold.
"""
