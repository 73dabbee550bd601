"""The stream of an agent: what happened to it, scored, summarised, and the insights from it."""
