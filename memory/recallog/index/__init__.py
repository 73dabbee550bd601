"""The semantic index of a memory: the indexer that maintains it, its service process, and its access for readers."""
