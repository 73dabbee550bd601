"""Conversations view: the messages of each session of an agent, and what a compaction has replaced."""
