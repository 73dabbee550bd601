"""Beliefs of agents, written by reflections that fall due."""
