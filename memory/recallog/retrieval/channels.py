"""The channels that score a candidate, and the ways to fuse their scores."""

from typing import Literal, get_args

Channel = Literal["semantic", "keyword", "late_interaction", "structure", "temporal", "salience"]
Fusion = Literal["weighted", "rrf"]

SEMANTIC: Channel = "semantic"
"""Cosine of the query's vector and the memory's."""
KEYWORD: Channel = "keyword"
"""BM25 of the query's terms."""
LATE_INTERACTION: Channel = "late_interaction"
"""Best cosine of each of the query's tokens with the memory's tokens (as in ColBERT), weighted by rarity."""
STRUCTURE: Channel = "structure"
"""Conversation structure: neighbouring turns, answers to questions, authors, sessions."""
TEMPORAL: Channel = "temporal"
"""Age, halved every 7 days."""
SALIENCE: Channel = "salience"
"""Importance of the kind, and recency in turns."""

SCORED = (SEMANTIC, KEYWORD, LATE_INTERACTION, TEMPORAL, SALIENCE)
CHANNELS: frozenset[Channel] = frozenset(get_args(Channel))
DEFAULT_CHANNELS: frozenset[Channel] = frozenset({SEMANTIC, KEYWORD, LATE_INTERACTION, STRUCTURE})

WEIGHTED: Fusion = "weighted"
RRF: Fusion = "rrf"
