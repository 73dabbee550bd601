"""The limits of this model; see `recallog_schemas.limits`. Names end in the unit."""

PROMPT_RECALLED_EVENTS = 500  # the newest own and the newest shared ones, whose words are compared without an index
PROMPT_COMPONENTS_MAX = 32  # sections of the caller's own, which no budget leaves out
PROMPT_CHARS_MAX = 4_194_304  # of a prompt, whatever its budget is: one answer has room for it
PROMPT_HEADING_CHARS_MAX = 80
EVIDENCE_CHARS_MAX = 200
IDENTITY_CHARS_MAX = 4_000  # of a document of the workspace in IDENTITY
# Before a budget leaves out lines of a prompt, it cuts their texts to no less than this. A visitor's newest message is
# always shown: its first 500 characters, unless nothing else is left to cut.
PROMPT_LINE_CHARS_MIN = 120
PROMPT_ASKED_CHARS_MIN = 240  # of what a query has asked for: a shorter line would often lose the answer
PROMPT_ASKED_LINES_LEAST = (
    4  # the best lines of what a query has asked for: they are left out after the last line of each section
)
PROMPT_MESSAGE_CHARS_MIN = 500
PROMPT_MESSAGE_CHARS_LEAST = 40
AUTO_RECALL_MESSAGES = 5  # newest messages of the user that are the query of automatic recall
AUTO_RECALL_MESSAGE_CHARS = 200
AUTO_RECALL_QUERY_CHARS = 500
AUTO_RECALL_HITS = 5
AUTO_RECALL_CHARS = 500  # of the snippets in a prompt
