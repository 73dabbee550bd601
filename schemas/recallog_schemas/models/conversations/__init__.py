"""Conversations: messages of sessions with models, compacted where they grow long."""
