"""Recall: which memories answer a question."""
