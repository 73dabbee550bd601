"""Conversations: how the messages of a model's API become events."""
