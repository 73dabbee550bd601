"""The parts of the doors for this memory model."""
