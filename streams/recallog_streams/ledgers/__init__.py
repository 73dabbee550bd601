"""Ledgers: the port, and its adapters named by technology."""
