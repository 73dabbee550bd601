"""Projections, the built-in views, the stores of their rows, and the semantic index."""
