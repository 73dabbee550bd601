"""Beliefs: what an agent comes to hold true, written by reflections that fall due."""
