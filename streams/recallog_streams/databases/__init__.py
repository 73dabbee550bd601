"""Databases: the port, and the adapters that need no folder."""
