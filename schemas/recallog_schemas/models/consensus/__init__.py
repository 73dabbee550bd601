"""Consensus: what agents agreed on, and who disagreed."""
