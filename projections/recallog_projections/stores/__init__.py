"""Stores of views: the port and its adapters."""
