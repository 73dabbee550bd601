"""The limits of this model; see `recallog_schemas.limits`. Names end in the unit."""

CONSENSUS_AGENTS_MAX = 256
CONSENSUS_CLAIMS_MAX = 20
CONSENSUS_CRUXES_MAX = 5
CONSENSUS_TAGS_MAX = 20
CONSENSUS_WORDS_MAX = 64  # of a topic that are compared: each is a row with all words of the topic
CONSENSUS_SUPERSEDED_MAX = 64  # by one consensus
CONSENSUS_COMPARED = 1_000  # of the newest consensuses that have a word of a topic
SIMILAR_CONSENSUSES = 5
