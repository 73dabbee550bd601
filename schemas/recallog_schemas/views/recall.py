"""Answers of recall: whole memories with their scores."""

from recallog_schemas.event import Position
from recallog_schemas.views.base import ComputedAt, Remembered, lines


class RecallHit(Remembered):
    """A memory that answers a question, and why it stands where it does."""

    score: float
    """The sum of `parts`; comparable within one answer only."""
    parts: dict[str, float]
    """What each channel, and each term of conversation structure, adds to the score."""
    similarity: float | None
    """Cosine of the question and the memory in its context; None where no vector was compared."""
    source: str
    """"index", or "views" where only its words were compared."""


class Recalled(ComputedAt):
    """What every answer to a question about memories says of how it was found."""

    space: str
    agent: str
    query: str
    channels: tuple[str, ...]
    """The channels that were used."""
    fusion: str
    considered: int
    """How many memories were scored."""
    index: str | None
    """The index's generation; None where it was not asked."""
    index_checkpoint: Position | None
    """The last position that the index had decided."""
    index_behind: int
    """How many positions the views had decided that the index had not: of these only words were compared."""
    degraded: str | None
    """Why the answer is not as good as it could be; None where it is."""


class RecallView(Recalled):
    """What an agent remembers about a question, best first."""

    top_k: int
    hits: tuple[RecallHit, ...]

    def format(self) -> str:
        """The memories as a prompt shows them, best first, one a line; "" where there are none."""
        return lines(self.hits)
