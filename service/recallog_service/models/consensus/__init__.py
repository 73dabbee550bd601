"""What the doors have for this memory model alone."""
