"""Consolidation: what time does to entries that carry a tier, computed from what the views say.

`plan` decides what moves and what is archived, `summary` writes the summary of what was archived. Both are pure.
"""
