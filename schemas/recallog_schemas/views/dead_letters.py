"""Dead letters: records that the fold could not apply."""

from recallog_schemas.event import Position
from recallog_schemas.views.base import View


class DeadLetter(View):
    """A record that the fold could not apply. Its bytes stay in the ledger."""

    views: str
    """The group of views that lacks the record: the built-in ones, or a projection of the user."""
    position: Position
    reason: str
    detail: str
    space: str
    id: str
    kind: str


class DeadLetterDetail(View):
    """A dead letter with the record's bytes (as text, with undecodable bytes escaped)."""

    letter: DeadLetter
    content: str
