"""Dead letters: records that the fold could not apply."""

from recallog_schemas.event import Position
from recallog_schemas.views.base import ListView, View


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

    def format(self) -> str:
        return (
            f"{self.position}  {self.space or '?'}  {self.kind or '?'}  {self.id or '?'}  {self.reason}: {self.detail}"
        )


class DeadLettersView(ListView[DeadLetter]):
    """All records that the views could not apply, in order."""


class RetryReport(ListView[DeadLetter]):
    """The dead letters that remain after a retry."""

    applied: int
    """The number of dead letters that were applied."""

    @property
    def ok(self) -> bool:
        return not self.items

    def format(self) -> str:
        applied = f"{self.applied:,} of {self.applied + len(self):,} applied"
        return "\n".join((applied, *(letter.format() for letter in self)))


class DeadLetterDetail(View):
    """A dead letter with the record's bytes (as text, with undecodable bytes escaped)."""

    letter: DeadLetter
    content: str

    def format(self) -> str:
        return f"{self.letter.format()}\n{self.content}"
