"""The workspace: documents of an agent, which are items, and its daily log."""
