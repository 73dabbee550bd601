"""Counts of what an event and a question cost, which do not depend on the machine: calls, rows, bytes, fetches."""
