"""Every limit of Recallog. Names end in the unit."""

# Events. A larger event is rejected when it is published; a larger record in the ledger becomes a dead letter.
EVENT_BYTES_MAX = 256 * 1024
ID_CHARS_MAX = 128
NAME_CHARS_MAX = 128
KIND_CHARS_MAX = 128
AUDIENCE_NAMES_MAX = 64
SHARED_KINDS_MAX = 64
DECLARED_KINDS_MAX = 64  # of a space: its settings are one row, which every fold of an event reads
TEXT_RULE_CHARS_MAX = 500
TURN_MAX = 2**53 - 1  # the largest integer that every JSON reader reads exactly (RFC 8259, section 6)
INTEGER_MAX = 2**63 - 1  # payload integers: the range of a signed 64-bit integer
PARTITION_MAX = 2**31 - 1  # the number of a partition in Kafka is a signed 32-bit integer
PAYLOAD_DEPTH_MAX = 64
TOOL_TEXT_CHARS_MAX = 800  # of the text of a tool call: its name, its arguments and its outcome
TOOL_NAME_CHARS_MAX = 100  # of them for the name
TOOL_ARGUMENTS_CHARS = 400  # of them for the arguments; they and the outcome may use what the other leaves
TOOL_DETAILS_CHARS_MAX = 8_000  # of a tool call, whose exact strings are indexed
EVENT_IDS_MAX = 200  # ids of entries that one event names, and moves of one part of a plan
ACCESSED_IDS_MAX = 256  # of one event, and of what a process has counted and not published
ACCESSED_SECONDS = 1.0  # how long a process collects reads of entries before it publishes them
ACCESSED_CLOSE_SECONDS = 2.0  # how long a memory that is closed waits for a ledger that cannot be written
REASON_CHARS_MAX = 500
WEIGHT_MAX = 1_000.0  # weight of a term of salience: the sum of three terms stays finite and readable

# Appending and reading.
APPEND_EVENTS_MAX = 10_000
APPEND_CHECK_SECONDS = 10.0  # how often a process compares the ledger with the views before it appends
READ_BATCH_RECORDS = 16_000
READ_BATCH_BYTES = 32 * 1024 * 1024
CLUSTER_BATCH_RECORDS = 1_000  # so that a commit blocks Redis, which executes one command at a time, for under 20 ms
PARTITIONS_AT_ONCE = 4  # partitions that one process builds at a time: it folds one while others wait for I/O
LOCK_WAIT_SECONDS = 10.0
SYNC_CLOSE_SECONDS = 20.0  # how long closing a synchronous memory waits: longer than for a lock
CANCELLED_CALL_SECONDS = 5.0  # how long a cancelled call of a synchronous memory may take to end
DEADLINE_SECONDS = 2.0  # how long a question waits for another process or server that says nothing
PATIENT_SECONDS = 10.0  # how long a worker and an operator's long work wait at least: a late answer saves work

# Views. Logs retain the newest events of an agent; rows are bounded so that a commit is bounded.
LOG_EVENTS_KEPT = 2_000
LOG_EVENTS_MAX = 10_000
STORED_TEXT_CHARS_MAX = 8_000  # a longer text is not stored beside its event; each query derives it from the event
DECLARED_TEXT_CHARS_MAX = STORED_TEXT_CHARS_MAX  # a declared text is always stored: no later reader could derive it
ROW_BYTES_MAX = EVENT_BYTES_MAX + 4 * STORED_TEXT_CHARS_MAX + 1024
WINDOW_EVENTS = 8
SALIENT_EVENTS = 8
BELIEFS_KEPT = 64
VISITOR_EVENTS = 3
PAGE_ITEMS = 50
PAGE_ITEMS_MAX = 1_000
SCAN_ITEMS = 1_000
ANSWER_BYTES_MAX = 4 * 1024 * 1024  # of the list in one answer, but for its first item: some 20 ms of encoding
ANSWER_EVENTS_LEAST = 8  # events that every answer has room for: each has at most 256 KiB, and its text as much again
VERIFY_DAMAGED_MAX = 1_000  # damaged records that `verify` reads past; each costs a read
OUTLINE_PARTICIPANTS = 256  # of a space, the earliest: one row, which every recall reads
DEAD_LETTER_DETAIL_CHARS_MAX = 500
# A batch is folded again with the rows that it lacked, so often at most; after that its records are folded one by one.
FOLD_PASSES_MAX = 32
RECORD_PASSES_MAX = 1_000
ROWS_WANTED_MAX = (
    200_000  # rows that are not loaded, or do not exist, and are read by one run: more are read without end
)

# Entries: what an agent keeps on purpose. A nearest text beyond its similarity is a duplicate.
SIMILARITY_OF_FACTS = 0.92  # above it two facts may say the same
SIMILARITY_OF_ENTRIES = 0.85  # likewise two other entries
ENTRY_PINS_MAX = 5  # of an agent
ENTRY_TWINS_MAX = 256  # live entries whose texts differ in capitals or line breaks alone: more are never duplicates
ENTRY_COST = 1.0  # of an entry whose event states none, for an agent with a balance
LESSONS = 5  # that fit a question
RETRIEVED = 5  # entries with a tier that answer a question
RETRIEVED_SIMILARITY = 0.3  # the least one of them
MOVES_KEPT = 1_000  # of an agent: the newest records that moved or archived entries
SUMMARY_CHARS_MAX = 400  # of a summary that is made without a model
ENTRY_FORMS_ENDED = 16  # of an entry, in the semantic index: former texts, owners and types, for time travel
ENTRY_DEPENDENTS_MAX = 1_000  # live entries that name one source: an erasure of it retracts them in one step

# The entity graph: of one entry, of one entity, and what a query looks at.
GRAPH_ENTITIES_MAX = 16  # of one text: the first ones
GRAPH_TEXT_CHARS_MAX = STORED_TEXT_CHARS_MAX  # that are searched for entities
GRAPH_KEY_CHARS_MAX = NAME_CHARS_MAX
GRAPH_FACTS_KEPT = 256  # of an entity, the newest: one row
GRAPH_LINKS_KEPT = 64
GRAPH_HOP_ENTITIES = 64  # that a query follows at each hop
GRAPH_HOP_FACTS = 50  # of an entity, the newest
GRAPH_SAME_WORD = 256  # entities with one word that a query compares

# Rows of recent batches that the projector caches; beyond this number it drops them.
CACHED_ROWS_MAX = 20_000
WORKERS_MAX = 64
PARALLEL_RECORDS_MIN = 50_000  # with fewer records, starting workers takes longer than what they save
CACHED_PLANS_MAX = 1_024  # settings of spaces, and kinds of one of them, whose plans a process keeps
# The cache of texts split into words for salience, and the distinct words in it: usually a few MB, at most 50.
CACHED_TEXTS_MAX = 4_096
CACHED_TEXT_CHARS_MAX = 400
CACHED_WORDS_MAX = 32_768

# Time travel folds the records of a space up to a moment at query time; this bounds them.
AS_OF_RECORDS_MAX = 2_000_000
FOLDS_IN_MEMORY_MAX = 4  # kept where the views cannot be written: of spaces, and of what all spaces lack

# Reflection and prompts. The numbers are those of the ledger-view memory document and of its code.
REFLECTION_EVENTS = 20
PROMPT_BELIEFS = 8
PROMPT_ACTIONS = 15
PROMPT_RECALLED = 7
PROMPT_RECALLED_EVENTS = 500  # the newest own and the newest shared ones, whose words are compared without an index
PROMPT_COMPONENTS_MAX = 32  # sections of the caller's own, which no budget leaves out
PROMPT_TOKENS_MAX = 1_048_576  # of a prompt for which no smaller budget is given: one answer has room for it
PROMPT_HEADING_CHARS_MAX = 80
EVIDENCE_CHARS_MAX = 200
# A budget cuts the texts of a prompt no further before it leaves out lines. A visitor's newest message is always shown:
# its first 500 characters, unless nothing else is left to give way.
PROMPT_LINE_CHARS_MIN = 120
PROMPT_MESSAGE_CHARS_MIN = 500
PROMPT_MESSAGE_CHARS_LEAST = 40
SCENE_KINDS_MAX = SHARED_KINDS_MAX
UNREFLECTED_TURNS = 30
FAULT_PARTITIONS = 8  # partitions that one sentence names
STATUS_ITEMS = 100

# Reflectors and the other models that are asked: the size of prompts and answers, and the wait between attempts.
REFLECTOR_TEXT_CHARS_MAX = 2_000  # per text in a prompt: 20 events of 256 KiB exceed the context of any model
REFLECTOR_REPLY_BYTES_MAX = 1024 * 1024
REFLECTOR_REASON_CHARS_MAX = 500
REFLECTOR_WAIT_SECONDS_MAX = 60.0
REACTION_SECONDS = 300.0  # for the answer of any reactor
REACTIONS_AT_ONCE = 8  # of one reactor that asks a model
LOCAL_REACTIONS_AT_ONCE = 16  # of all other reactors: more do not answer faster, and leave the fold less of a core
DATED_TRIGGERS = 100  # of those that are due by a count, `pending` shows since when
REACTIONS_LEFT_MAX = 8  # calls of one reactor that go on after their deadline; then it is asked no more
REACTORS_CLOSE_SECONDS = 5.0  # for all reactors of a memory, and for their calls, to end when it is closed
REACTION_FAILURES_KEPT = 10_000  # triggers that a process could not answer, with the reason
BELIEF_CHARS_MAX = 2_000

# The daily log of an agent. The numbers are those of the memory model, section 1.4, rows 3, 5 and 7.
DAILY_MESSAGES = 6  # of a session since its last lines, before a turn that ends adds some
DAILY_SCANNED = 20  # the newest of them
DAILY_LINES_MAX = 8
DAILY_LINE_CHARS_MAX = 200  # of the message that a line quotes
DAILY_REQUEST_CHARS = 30  # a request is longer
MEMORY_LINES_MAX = 4

# Facts: what one extraction reads and writes, and the hits that one answer of `reflect` rests on.
EXTRACTED_EVENTS = 64  # the newest of a turn
EXTRACTED_CHARS = 32_000  # of their texts, the newest first, or of the text of a call
EXTRACTED_FACTS_MAX = 32
FACT_CHARS_MAX = 500
SYNTHESIS_HITS = 10
SYNTHESIS_CHARS_MAX = 4_000  # of an answer

# The semantic index: the preceding text of the session in a document's embedding, the messages with restricted readers
# that a session remembers for it, and the records and bytes of one commit.
INDEX_BEFORE_CHARS = 400
INDEX_OTHERS_KEPT = 8
INDEX_BATCH_RECORDS = 256
INDEX_BATCH_BYTES = 128 * 1024  # about 256 turns of people chatting, or 40 long replies: embedded in some seconds
INDEX_DETAIL_TERMS_MAX = 256  # of the details of one memory, 8 bytes each

# Recall.
RECALL_HITS = 5
RECALL_HITS_MAX = 1_000
RECALL_QUERY_CHARS_MAX = 4_000
RECALL_CANDIDATES = 30  # per channel, before their neighbours are added
RECALL_ENTRIES = 1_000  # of the newest entries, whose words are compared where the index is off or behind
PRESET_CANDIDATES = 50  # entries that each channel of a preset ranks, or twice as many as are wanted
SIMILAR_ENTRIES = 32  # of the newest entries, which are embedded to be compared if the index has not processed them
RECALL_TERMS_MAX = 32  # words of a query, or twice as many parts of words: more do not improve the result
RERANKED_MEMORIES = 20  # candidates passed to the reranker, if one is configured
RECALL_INDEX_LAG_MAX = 100  # positions that the index may be behind before the answer is marked as degraded
CACHED_TERMS_BYTES = 64 * 1024 * 1024  # the cache of term weights: about 20,000 memories of 20 terms

# Progressive disclosure: previews, the events around one of them, whole events. The numbers are those of the memory
# model, section 1.2, rows 19 to 21.
SEARCH_HITS = 20
SEARCH_HITS_MAX = 100
SEARCH_QUERY_CHARS_MAX = 500
PREVIEW_CHARS = 220
PREVIEW_ANCHOR_CHARS = 260
AROUND_EVENTS = 3
AROUND_EVENTS_MAX = 50
ENTRIES_IDS_MAX = 200

# Conversations. The numbers of compaction are those of the memory model, section 1.4, rows 16 and 18.
MESSAGE_BYTES_MAX = 16 * 1024 * 1024  # of one message as JSON; beyond the size of an event it is kept in parts
MESSAGE_PART_CHARS = 60_000  # of the JSON of a message: at most 4 bytes each, so that a part fits an event
MESSAGES_MAX = 5_000  # of one call
MESSAGE_CALLS_SEARCHED = 256  # newest messages in which the call of a tool's result is looked for
COMPACT_MESSAGES = 20  # a conversation of more messages is compacted
COMPACT_CHARS = 48_000  # or one of more characters
COMPACT_KEPT = 8  # newest messages that stay
COMPACT_MESSAGES_LEAST = 8
COMPACT_CHARS_LEAST = 4_000
COMPACT_KEPT_LEAST = 4
COMPACT_SNIPPETS = 12  # newest compacted messages in a summary without a model
COMPACT_SNIPPET_CHARS = 160
COMPACT_SUMMARY_CHARS = 700
COMPACT_MODEL_CHARS = 2_000  # of a model's summary, which is asked for 400 tokens
COMPACT_VERBATIM = 12  # sentences that follow a summary word for word
COMPACT_VERBATIM_CHARS = 4_000  # of them and of a question that has no answer yet
COMPACT_FAILURES = 3  # in a row, then compaction rests
COMPACT_REST_SECONDS = 600
AUTO_RECALL_MESSAGES = 5  # newest messages of the user that are the query of automatic recall
AUTO_RECALL_MESSAGE_CHARS = 200
AUTO_RECALL_QUERY_CHARS = 500
AUTO_RECALL_HITS = 5
AUTO_RECALL_CHARS = 500  # of the snippets in a prompt

# Entries and items.
ENTRY_TYPE_CHARS_MAX = 64
ENTRY_SOURCES_MAX = 64
SOURCE_CHARS_MAX = 1_000
MODEL_CHARS_MAX = 256  # the name of a model
ITEM_VALUE_BYTES_MAX = 64 * 1024
ITEM_NAME_CHARS_MAX = 256
ITEM_NAMESPACE_NAMES_MAX = 8
WORKING_BLOCKS_MAX = 64  # of an agent
WORKING_BLOCK_CHARS_MAX = 2_000  # that a rendered block shows
WORKING_DOCUMENT_BYTES = 4_000
SCRATCHPAD_KEYS_MAX = 50  # of a session
SCRATCHPAD_CHARS_MAX = 10_000  # of a value in a scratchpad
QUEUE_VALUES_MAX = 50  # the newest elements of a list in a scratchpad

# Documents of the workspace.
WORKSPACE_FILES_MAX = 10_000  # of a folder that is imported
WORKSPACE_HITS = 5
DAILY_CHARS_MAX = 8_000  # in characters, of a daily document with a further block of facts
DAILY_CHARS_UNCOMPACTED = 2_000  # a longer daily document loses repeated bullets
DAILY_BULLET_CHARS = 80  # by which two bullets are the same
MEMORY_DOCUMENT_CHARS = 4_000  # from which on MEMORY.md gets no more facts
DOCUMENT_CHUNK_LINES = 60
DOCUMENT_CHUNK_CHARS = 4_000  # of several lines; one line is never cut
DOCUMENT_HEADINGS_MAX = 256  # of a document whose chunks begin at headings
DOCUMENT_CHUNKS_ENDED = 64  # of a document, in the semantic index: former chunks, for time travel
DOCUMENT_CHUNKS_COMPARED = 2_000  # of the newest documents, whose words are compared where the index is off or behind
MIGRATED_PATH_CHARS_MAX = 500
MIGRATED_BYTES_MAX = 128 * 1024  # of the texts in one row of due work
CAPTURE_TOOLS_MAX = 256
CAPTURED_PER_MINUTE_MAX = 1_000  # calls of tools that become entries, whatever an agent is set to: one row
CAPTURED_MINUTES = 61  # of an agent; a prime: no difference of time zones is a multiple of it
PRICES_MAX = 64
CONSENSUS_AGENTS_MAX = 256
CONSENSUS_CLAIMS_MAX = 20
CONSENSUS_CRUXES_MAX = 5
CONSENSUS_TAGS_MAX = 20
CONSENSUS_WORDS_MAX = 64  # of a topic that are compared: each is a row, which has all of them
CONSENSUS_SUPERSEDED_MAX = 64  # by one consensus
CONSENSUS_COMPARED = 1_000  # of the newest consensuses that have a word of a topic
SIMILAR_CONSENSUSES = 5
INSIGHTS_MAX = 64
INSIGHTS_KEPT = 64
STREAM_MEMORIES = 10
