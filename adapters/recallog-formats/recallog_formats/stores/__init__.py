"""Stores of other memories, read by `recallog import`: a module for each system, and what they share."""
