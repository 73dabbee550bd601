"""Conversations: messages of sessions with models, compacted when they grow long."""
