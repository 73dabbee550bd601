"""The roles of who speaks in a chat. They are also the names of agents that messages without a name are by."""

USER = "user"
ASSISTANT = "assistant"
