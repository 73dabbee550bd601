"""The prompt of an agent: its identity, knowledge and memories, within a budget."""
