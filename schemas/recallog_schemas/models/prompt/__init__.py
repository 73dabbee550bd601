"""The prompt of an agent: what it is, knows and remembers, fitted to a budget."""
