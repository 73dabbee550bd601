"""The channels that score a candidate, and the ways to fuse their scores."""

SEMANTIC = "semantic"
"""Cosine of the query's vector and the memory's."""
KEYWORD = "keyword"
"""BM25 of the query's terms."""
LATE_INTERACTION = "late_interaction"
"""Best cosine of each of the query's tokens with the memory's tokens (as in ColBERT), weighted by rarity."""
STRUCTURE = "structure"
"""Conversation structure: neighbouring turns, answers to questions, authors, sessions."""
TEMPORAL = "temporal"
"""Age, halved every 7 days."""
SALIENCE = "salience"
"""Importance of the kind, and recency in turns."""

SCORED = (SEMANTIC, KEYWORD, LATE_INTERACTION, TEMPORAL, SALIENCE)
CHANNELS = frozenset({*SCORED, STRUCTURE})
DEFAULT_CHANNELS = frozenset({SEMANTIC, KEYWORD, LATE_INTERACTION, STRUCTURE})

WEIGHTED, RRF = "weighted", "rrf"
FUSIONS = (WEIGHTED, RRF)
