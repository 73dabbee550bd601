"""Reactors: code that answers triggers with new events, and the reflectors that write the answers."""
