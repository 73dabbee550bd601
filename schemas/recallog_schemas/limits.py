"""Every limit of Recallog, in one place. Units come last in the names."""

# Events. An event is refused at a door, and parked as a dead letter in the ledger, beyond these.
EVENT_BYTES_MAX = 256 * 1024
ID_CHARS_MAX = 128
NAME_CHARS_MAX = 128
KIND_CHARS_MAX = 128
AUDIENCE_NAMES_MAX = 64
SHARED_KINDS_MAX = 64
DECLARED_KINDS_MAX = 64  # of a space: its settings are one row, which every fold of an event reads
TEXT_RULE_CHARS_MAX = 500
TURN_MAX = 2**53 - 1  # the largest integer that every JSON reader keeps exact (RFC 8259, section 6)
INTEGER_MAX = 2**63 - 1  # payload integers: what a signed 64-bit reader can hold
PAYLOAD_DEPTH_MAX = 64
TOOL_TEXT_CHARS_MAX = 800
WEIGHT_MAX = 1_000.0  # of a term of salience: sums of three stay finite and readable

# Appending and reading.
APPEND_EVENTS_MAX = 10_000
READ_BATCH_RECORDS = 4_000
READ_BATCH_BYTES = 8 * 1024 * 1024
CLUSTER_BATCH_RECORDS = 1_000  # so that a commit holds Redis, which does one thing at a time, for less than 20 ms
PARTITIONS_AT_ONCE = 4  # whose views one process builds, so that it folds one while the others wait for services
LOCK_WAIT_SECONDS = 10.0

# Views. Logs keep the newest events an agent may need; a row is bounded so that one commit is.
LOG_EVENTS_KEPT = 2_000
LOG_EVENTS_MAX = 10_000
TEXT_KEPT_CHARS_MAX = 8_000  # a longer text is not kept a second time, and read from its event for each query
DECLARED_TEXT_CHARS_MAX = TEXT_KEPT_CHARS_MAX  # so that views keep it whole: nothing else says later how it was made
ROW_BYTES_MAX = EVENT_BYTES_MAX + 4 * TEXT_KEPT_CHARS_MAX + 1024
WINDOW_EVENTS = 8
SALIENT_EVENTS = 8
BELIEFS_KEPT = 64
VISITOR_EVENTS = 3
PAGE_ITEMS = 50
PAGE_ITEMS_MAX = 1_000
SCAN_ITEMS = 1_000
DEAD_LETTER_DETAIL_CHARS_MAX = 500
PROJECTION_RERUNS_MAX = 1_000  # rows that one record may read beyond those its projections declared

# The projector keeps the rows of its last batches; beyond this many it starts afresh.
CACHED_ROWS_MAX = 20_000
# Texts whose words salience keeps split, and the different words in them: some MB in ordinary talk, 50 at most.
CACHED_TEXTS_MAX = 4_096
CACHED_TEXT_CHARS_MAX = 400
CACHED_WORDS_MAX = 32_768

# Time travel folds the space's prefix at query time.
AS_OF_RECORDS_MAX = 2_000_000

# Reflection and the prompt. Counts are those of the ledger-view memory document and of its code.
REFLECTION_EVENTS = 20
PROMPT_BELIEFS = 8
PROMPT_ACTIONS = 15
PROMPT_RECALLED = 7
EVIDENCE_CHARS_MAX = 200
SCENE_KINDS_MAX = SHARED_KINDS_MAX
UNREFLECTED_TURNS = 30
STATUS_ITEMS = 100

# Reflectors: what one is shown, what it may answer, and how long it is waited for between attempts.
REFLECTOR_TEXT_CHARS_MAX = 2_000  # of each text in a prompt: 20 events of 256 KiB would fit no model's context
REFLECTOR_REPLY_BYTES_MAX = 1024 * 1024
REFLECTOR_REASON_CHARS_MAX = 500
REFLECTOR_WAIT_SECONDS_MAX = 60.0
BELIEF_CHARS_MAX = 2_000

# The semantic index. What stands before a document in its session, as its vector sees it; how much one commit embeds.
INDEX_BEFORE_CHARS = 400
INDEX_OTHERS_KEPT = 8
INDEX_BATCH_RECORDS = 256

# Recall.
RECALL_HITS = 5
RECALL_HITS_MAX = 1_000
RECALL_QUERY_CHARS_MAX = 4_000
RECALL_CANDIDATES = 30  # of each channel, before their neighbours come in
RECALL_TERMS_MAX = 32  # of a question: a page of text is no better a question than its first lines
RERANKED = 20  # memories that a reranker reads, where one is set
RECALL_BEHIND = 100  # positions that the index may be behind before an answer calls itself degraded
CACHED_TURNS_MAX = 20_000  # memories whose words recall keeps split

# Progressive disclosure: previews, what is around one of them, whole events. The figures are those
# of the memory model, section 1.2, rows 19 to 21.
SEARCH_HITS = 20
SEARCH_HITS_MAX = 100
SEARCH_QUERY_CHARS_MAX = 500
PREVIEW_CHARS = 220
PREVIEW_ANCHOR_CHARS = 260
AROUND_EVENTS = 3
AROUND_EVENTS_MAX = 50
ENTRIES_IDS_MAX = 200
