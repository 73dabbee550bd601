"""The limits of this model; see `recallog_schemas.limits`. Names end in the unit."""

from recallog_schemas.limits import NAME_CHARS_MAX, STORED_TEXT_CHARS_MAX

# The entity graph: what it has of one entry and of one entity, and what a query reads.
GRAPH_ENTITIES_MAX = 16  # of one text: the first ones
GRAPH_TEXT_CHARS_MAX = STORED_TEXT_CHARS_MAX  # of a text that are searched for entities
GRAPH_KEY_CHARS_MAX = NAME_CHARS_MAX
GRAPH_FACTS_KEPT = 256  # the newest ones of an entity, in one row
GRAPH_LINKS_KEPT = 64
GRAPH_HOP_ENTITIES = 64  # that a query follows at each hop
GRAPH_HOP_FACTS = 50  # the newest ones of an entity
GRAPH_ENTITIES_READ = 10_000  # of one graph, from which the strongest are shown
GRAPH_ENTITIES_COMPARED = 1_000  # the strongest of these, whose entries of one type are counted
GRAPH_ENTITIES_SHOWN = 300  # more are not readable in a picture
GRAPH_LINKS_SHOWN = 1_000
GRAPH_SAME_WORD = 256  # entities with one word that a query compares
# Facts: what one extraction reads and writes, and the hits that one answer of `reflect` rests on.
EXTRACTED_EVENTS = 64  # the newest of a turn
EXTRACTED_CHARS = 32_000  # of their texts, the newest first, or of the text of a call
EXTRACTED_FACTS_MAX = 32
FACT_CHARS_MAX = 500
SYNTHESIS_HITS = 10
SYNTHESIS_CHARS_MAX = 4_000  # of an answer
