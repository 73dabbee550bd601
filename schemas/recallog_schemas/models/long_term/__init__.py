"""Long-term memory: the entries that agents keep on purpose, change, forget and share."""
