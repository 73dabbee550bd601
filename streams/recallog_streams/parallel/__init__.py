"""Folding in several processes: each folds the events of some spaces, and one of them commits what all have folded."""
