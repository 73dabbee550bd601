"""Records that could not be applied."""

from recallog_schemas.event import Position
from recallog_schemas.views.base import View


class DeadLetter(View):
    """A record that the fold could not apply. Its bytes stay in the ledger."""

    views: str
    """Which views lack it: the built-in ones, or a projection of the user's own."""
    position: Position
    reason: str
    detail: str
    space: str
    id: str
    kind: str


class DeadLetterDetail(View):
    """A dead letter with its bytes as they stand in the ledger (as text, undecodable bytes escaped)."""

    letter: DeadLetter
    content: str
