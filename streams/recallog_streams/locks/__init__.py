"""Locks between processes: in a folder, and in Redis."""
