"""Facts: what is drawn from the turns of an agent."""
