"""The channels that score a candidate, the ways to fuse their scores, and the presets (rankings of entries alone)."""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

Channel = Literal["semantic", "keyword", "late_interaction", "structure", "temporal", "salience", "entity"]
Fusion = Literal["weighted", "rrf"]
Preset = Literal["four_channel", "hybrid"]

SEMANTIC: Channel = "semantic"
"""Cosine of the query's vector and the memory's."""
KEYWORD: Channel = "keyword"
"""BM25 of the query's terms."""
LATE_INTERACTION: Channel = "late_interaction"
"""The best cosine of each of the query's tokens with the memory's tokens (as in ColBERT), weighted by rarity."""
STRUCTURE: Channel = "structure"
"""Conversation structure: neighbouring turns, answers to questions, authors, sessions."""
TEMPORAL: Channel = "temporal"
"""Age, halved every 7 days. In a preset: age, use and confidence."""
SALIENCE: Channel = "salience"
"""Importance of the kind, and recency in turns."""
ENTITY: Channel = "entity"
"""The entities that the query names, and those linked to them in one or two steps. Only presets have it."""

SCORED = (SEMANTIC, KEYWORD, LATE_INTERACTION, TEMPORAL, SALIENCE)
RANKED: Sequence[Channel] = [channel for channel in get_args(Channel) if channel != ENTITY]
"""The channels of a ranking without a preset."""
DEFAULT_CHANNELS: frozenset[Channel] = frozenset({SEMANTIC, KEYWORD, LATE_INTERACTION, STRUCTURE})

WEIGHTED: Fusion = "weighted"
RRF: Fusion = "rrf"

EVENT = "event"
"""The name for events where types of entries are chosen."""
DOCUMENT = "document"
"""The name for documents of the agent's workspace where types are chosen. Documents are found only if it is given."""

FOUR_CHANNEL: Preset = "four_channel"
HYBRID: Preset = "hybrid"
PRESETS: Mapping[Preset, Sequence[Channel]] = {
    FOUR_CHANNEL: (SEMANTIC, KEYWORD, ENTITY, TEMPORAL),
    HYBRID: (SEMANTIC, KEYWORD),
}
"""The channels of each preset."""
