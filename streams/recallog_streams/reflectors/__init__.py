"""Who turns what an agent has seen into a belief: the port, and one module per way to do it."""
