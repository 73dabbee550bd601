"""The semantic index of a memory: who keeps it, and how it is asked."""
