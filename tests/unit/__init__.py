"""Unit tests: examples and properties that need no services."""
