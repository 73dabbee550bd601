"""Dead letters: records that the fold could not apply."""

from typing import ClassVar

from recallog_schemas.event import Position
from recallog_schemas.views.base import Bounded, ListView, PageView, View, indent_lines, one_line


class DeadLetter(View):
    """A record that the fold could not apply. Its bytes stay in the ledger."""

    views: str
    """The group of views that lacks the record: the built-in ones, or a projection of the user."""
    position: Position
    """The position of the record."""
    reason: str
    """One stable word: unparsable, future_schema, too_large, invalid, wrong_partition, wrong_key, conflict or
    projection_failed."""
    detail: str
    """What is wrong with the record, in a sentence."""
    space: str
    """The name of its space; "" if it is not known."""
    id: str
    """The id of its event; "" if it is not known."""
    kind: str
    """The kind of its event; "" if it is not known."""

    def format(self) -> str:
        """Position, space, kind, id and reason in one line; `?` for what is not known."""
        named = f"{self.space or '?'}  {self.kind or '?'}  {self.id or '?'}"
        return one_line(f"{self.position}  {named}  {self.reason}: {self.detail}")


class DeadLettersView(PageView[DeadLetter]):
    """A page of the dead letters, by position."""

    @classmethod
    def cursor_of(cls, item: DeadLetter) -> str:
        """The cursor of the page after an item."""
        return f"{item.position}/{item.views}"


class RetryReport(ListView[DeadLetter], Bounded):
    """The dead letters that remain after a retry."""

    list_field: ClassVar[str] = "items"

    applied: int
    """The number of dead letters that were applied."""

    @property
    def ok(self) -> bool:
        return not self.items

    def format(self) -> str:
        """How many dead letters were applied, then those that remain, one per line."""
        applied = f"{self.applied:,} of {self.applied + len(self):,} applied"
        return "\n".join((applied, *(letter.format() for letter in self)))


class FirstOfId(View):
    """The event whose id another record has, with other content."""

    position: Position
    """The position of the event."""
    differs_in: str
    """The first field in which the record differs from it, for example `payload.text`. `at` is not compared."""
    content: str
    """The bytes of the event as text."""

    def format(self) -> str:
        """The field that differs and the position, then the content of the event."""
        differs = f"differs in {self.differs_in} from the event that has its id, at {self.position}:"
        return f"{differs}\n{indent_lines(self.content)}"


class DeadLetterDetail(View):
    """A dead letter with the record's bytes (as text, with undecodable bytes escaped)."""

    letter: DeadLetter
    """The dead letter."""
    content: str
    """The bytes of the record as text."""
    first: FirstOfId | None = None
    """For a conflict: the event that has the record's id. None for other reasons."""

    def format(self) -> str:
        """The dead letter in one line, then the content of the record; for a conflict also that of the other event."""
        lines = [self.letter.format(), indent_lines(self.content)]
        return "\n".join([*lines, self.first.format()] if self.first else lines)
