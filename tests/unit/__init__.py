"""Pure parts: examples and properties."""
