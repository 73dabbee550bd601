"""Every limit of Recallog. Names end in the unit."""

# Events. A larger event is rejected when it is published; a larger record in the ledger becomes a dead letter.
EVENT_BYTES_MAX = 256 * 1024
RECORD_BYTES_MAX = EVENT_BYTES_MAX * 4 // 3 + 32 * 1024  # of a sealed event: in base64, with the ids of its keys
ID_CHARS_MAX = 128
NAME_BYTES_MAX = 256  # of a space or an agent
NAME_CHARS_MAX = 128  # of other names: of an entity, a category, a tool
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
TOOL_NAME_CHARS_MAX = 100  # the part of it for the name
TOOL_ARGUMENTS_CHARS = 400  # the part for the arguments; arguments and outcome may use what the other one leaves
TOOL_DETAILS_CHARS_MAX = 8_000  # of a tool call, whose exact strings are indexed
ERASED_KEYS_MAX = 1_000  # keys that one event erases
EVENT_IDS_MAX = 200  # ids of entries that one event names, and moves of one part of a plan
REASON_CHARS_MAX = 500
WEIGHT_MAX = 1_000.0  # weight of a term of salience: the sum of three terms stays finite and readable

# Appending and reading.
APPEND_EVENTS_MAX = 10_000
AHEAD_SECONDS_MAX = 86_400  # how far `at` of an event may be ahead of its record: a day, for wrong time zones
APPEND_CHECK_SECONDS = 10.0  # how often a process compares the ledger with the views before it appends
AHEAD_NOTED = 200  # events of a space that are ahead, so that recall does not measure age by them
READ_BATCH_RECORDS = 16_000
READ_BATCH_BYTES = 32 * 1024 * 1024
CLUSTER_BATCH_RECORDS = 4_000  # of each partition that is built; those that are built at once take some 100 MB
PARTITIONS_AT_ONCE = 4  # partitions that one process builds at a time: it folds one while others wait for I/O
LOCK_WAIT_SECONDS = 10.0
SYNC_CLOSE_SECONDS = 20.0  # how long closing a synchronous memory waits: longer than for a lock
CANCELLED_CALL_SECONDS = 5.0  # how long a cancelled call of a synchronous memory may take to end
DEADLINE_SECONDS = 2.0  # how long a question waits for another process or server that does not answer
PATIENT_SECONDS = 10.0  # how long a worker or a long command waits at least: a late answer is better than repeated work

# Views. Logs retain the newest events of an agent; rows are bounded so that a commit is bounded.
LOG_EVENTS_KEPT = 2_000
LOG_EVENTS_MAX = 10_000
STORED_TEXT_CHARS_MAX = 8_000  # a longer text is not stored beside its event; each query derives it from the event
DECLARED_TEXT_CHARS_MAX = STORED_TEXT_CHARS_MAX  # a declared text is always stored: no later reader could derive it
ROW_BYTES_MAX = EVENT_BYTES_MAX + 4 * STORED_TEXT_CHARS_MAX + 1024
WINDOW_EVENTS = 8
SALIENT_EVENTS = 8
VISITOR_EVENTS = 3
ACTIVITY_MINUTES_MAX = 1_440
ACTIVITY_RECORDS = 10_000  # the newest records of each partition, which are counted by minutes
PAGE_ITEMS = 50
PAGE_ITEMS_MAX = 1_000
SCAN_ITEMS = 1_000
HISTORY_RECORDS = 5_000  # records that are searched for one page of a history: some 0.2 s
ANSWER_BYTES_MAX = 4 * 1024 * 1024  # of the list in one answer, without its first item: some 20 ms of encoding
ANSWER_EVENTS_LEAST = 8  # events that fit into every answer: each has at most 256 KiB, and its text as much again
VERIFY_DAMAGED_MAX = 1_000  # damaged records that `verify` reads past; each costs a read
OUTLINE_PARTICIPANTS = 256  # the earliest ones of a space, in one row that every recall reads
DEAD_LETTER_DETAIL_CHARS_MAX = 500
# How often a batch is folded again with the rows that it lacked. After that its records are folded one by one.
FOLD_PASSES_MAX = 32
RECORD_PASSES_MAX = 1_000
ROWS_WANTED_MAX = (
    200_000  # rows that are not loaded, or do not exist, and are read by one run: more are read without end
)

# Rows of recent batches that the projector caches; beyond this number it drops them.
CACHED_ROWS_MAX = 20_000
WORKERS_MAX = 64
PARALLEL_RECORDS_MIN = 50_000  # with fewer records, starting workers takes more time than they save
CACHED_PLANS_MAX = 1_024  # settings of spaces, and kinds of one of them, whose plans a process keeps
# The cache of texts split into words for salience, and the distinct words in it: usually a few MB, at most 50.
CACHED_TEXTS_MAX = 4_096
CACHED_TEXT_CHARS_MAX = 400
CACHED_WORDS_MAX = 32_768

# Time travel folds the records of a space up to a moment at query time. Without snapshots, this is their maximum.
AS_OF_RECORDS_MAX = 2_000_000
SNAPSHOT_RECORDS = 2_000  # of a space, after which a query of the past saves a snapshot: a query folds twice as many
# A process keeps the pasts that it has folded, one for each step on the way. A later question folds one step at most.
PAST_STEP_RECORDS = 4_000  # records that a move through the past folds at most: some 150 ms
PAST_ITEMS_MAX = 1_000_000  # rows and log entries of all kept pasts: about 100 MB, since pasts share their bytes
PAST_ITEMS_LEAST = 250  # what each past counts in addition: that of a small or unknown space takes some 25 kB
FOLDS_IN_MEMORY_MAX = 4  # kept if the views cannot be written: of spaces, and of the records that all spaces lack

# Prompts. The numbers are those of the ledger-view memory document and of its code.
PROMPT_ACTIONS = 15
PROMPT_RECALLED = 7
SCENE_KINDS_MAX = SHARED_KINDS_MAX
UNREFLECTED_TURNS = 30
FAULT_PARTITIONS = 8  # partitions that one sentence names
STATUS_ITEMS = 100

# Models that are asked: the size of prompts and answers, and the wait between attempts.
ASKED_TEXT_CHARS_MAX = 2_000  # per text in a prompt: 20 events of 256 KiB exceed the context of any model
ASKED_REPLY_BYTES_MAX = 1024 * 1024
ASKED_REASON_CHARS_MAX = 500
ASKED_WAIT_SECONDS_MAX = 60.0
REACTION_SECONDS = 300.0  # for the answer of any reactor
REACTIONS_AT_ONCE = 8  # of one reactor that asks a model
LOCAL_REACTIONS_AT_ONCE = 16  # of all other reactors: more would not answer faster, and would slow down the fold
DATED_TRIGGERS = 100  # triggers due by a count for which `pending` shows since when they are due
REACTIONS_LEFT_MAX = 8  # calls of one reactor that run past their deadline; from this number on, it is not called again
REACTORS_CLOSE_SECONDS = 5.0  # how long closing a memory waits for all its reactors and their calls
REACTION_FAILURES_KEPT = 10_000  # triggers that a process could not answer, with the reason

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
RECALL_TERMS_MAX = 32  # words of a query, or twice as many parts of words: more do not improve the result
RERANKED_MEMORIES = 20  # candidates passed to the reranker, if one is configured
RECALL_INDEX_LAG_MAX = 100  # positions that the index may be behind before the answer is marked as degraded
FILTER_BYTES_MAX = 16 * 1024  # of a filter as JSON: it fits into the first line of a request
FILTER_DEPTH_MAX = 16
FILTERED_POINTS = 5_000  # read from the index at a time, with their events: about 500 bytes each
CACHED_TERMS_BYTES = 64 * 1024 * 1024  # the cache of term weights: about 20,000 memories of 20 terms
KEPT_POINTS_BYTES = 24 * 1024 * 1024  # fields and terms of points of an embedded index: about 8,000 memories

# Progressive disclosure: previews, the events around one of them, whole events. The numbers are those of the memory
# model, section 1.2, rows 19 to 21.
SEARCH_HITS = 20
SEARCH_HITS_MAX = 100
SEARCH_QUERY_CHARS_MAX = 500
PREVIEW_CHARS = 220
PREVIEW_ANCHOR_CHARS = 260
AROUND_EVENTS = 3
AROUND_EVENTS_MAX = 50
LINEAGE_ITEMS = 100  # sources, and as many products, of one event
LINEAGE_NODES = 200  # of the graph of a lineage, which also bounds its steps
LINEAGE_IDS = 1_000  # that one step of a lineage follows in one direction
ENTRIES_IDS_MAX = 200

# Entries and items.
ENTRY_TYPE_CHARS_MAX = 64
ITEM_VALUE_BYTES_MAX = 64 * 1024
ITEM_NAME_CHARS_MAX = 256
ITEM_NAMESPACE_NAMES_MAX = 8
WORKING_BLOCKS_MAX = 64  # of an agent
WORKING_DOCUMENT_BYTES = 4_000

# Settings of agents.
CAPTURE_TOOLS_MAX = 256
SCENE_NOTES_MAX = 32

# A scan for words.
MARKER_CHARS_MIN = 4  # shorter words are found by chance in any large file
MARKER_CHARS_MAX = 1_000
MARKERS_MAX = 100
