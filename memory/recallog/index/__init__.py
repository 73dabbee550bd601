"""The semantic index of a memory: the indexer that maintains it, its service process, and access for readers."""
