"""The kinds of reflections."""

from recallog_schemas.kinds.kind import bookkeeping, episode
from recallog_schemas.models.beliefs.payloads import Reflected, ReflectionFailed
from recallog_schemas.text_rules import first_of

KINDS = (
    episode(
        "agent.reflected",
        "An agent came to a belief.",
        Reflected,
        first_of("belief", "text"),
        0.85,
        "belief text insights about",
        shared=True,
        sources="based_on",
        version=3,
        later=frozenset({"about", "stance", "supersedes"}),
        directs=None,
    ),
    bookkeeping("reflection.failed", "A due reflection was not written.", ReflectionFailed, "reason"),
)
