"""The limits of this model; see `recallog_schemas.limits`. Names end in the unit."""

# The daily log of an agent. The numbers are those of the memory model, section 1.4, rows 3, 5 and 7.
DAILY_MESSAGES = 6  # of a session since its last lines, before a turn that ends adds some
DAILY_SCANNED = 20  # the newest of them
DAILY_LINES_MAX = 8
DAILY_LINE_CHARS_MAX = 200  # of the message that a line quotes
DAILY_REQUEST_CHARS = 30  # a request is longer
MEMORY_LINES_MAX = 4
WORKSPACE_FILES_MAX = 10_000  # of a folder that is imported
WORKSPACE_HITS = 5
DOCUMENT_CHUNK_LINES = 60
DOCUMENT_CHUNK_CHARS = 4_000  # of several lines; a single line is never cut
DOCUMENT_HEADINGS_MAX = 256  # of a document whose chunks begin at headings
DOCUMENT_CHUNKS_ENDED = 64  # of a document, in the semantic index: former chunks, for time travel
DOCUMENT_CHUNKS_COMPARED = 2_000  # of the newest documents, whose words are compared where the index is off or behind
