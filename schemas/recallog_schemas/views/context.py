"""The prompt of an agent."""

from typing import Self

from recallog_schemas.views.base import OfAgent
from recallog_schemas.views.reflection import ReflectionView


class ContextView(OfAgent):
    """The prompt of an agent, and what it was composed of."""

    text: str
    """The prompt."""
    tokens: int
    """Its estimated number of model tokens: its characters divided by four, rounded up."""
    budget_tokens: int | None
    """The requested budget, which `tokens` never exceeds; None if none was requested."""
    dropped: int
    """Number of lines that the budget removed."""
    shortened: int
    """Number of lines that the budget cut. The text of a cut line ends in "…"; of a due reflection's evidence only the
    id is left."""
    entries: tuple[str, ...]
    """The ids of the entries under RECALLED, best first."""
    degraded: str | None
    """Why the RECALLED section, or the choice of memories by an index that the program gave, is worse than it could be;
    None if it is not."""
    reflection: ReflectionView
    """Whether a reflection is due: the prompt then requests it, and `reflection.answer(...)` returns the answer's
    event."""

    def fitted(self) -> Self:
        """The answer with the items of its list that have room."""
        reflection = self.reflection.fitted()
        return self if reflection is self.reflection else self.model_copy(update={"reflection": reflection})

    @property
    def empty(self) -> bool:
        """Whether the agent sees no event: the prompt then has only headings and what the caller gave."""
        return self.reflection.events == 0

    def format(self) -> str:
        """The prompt."""
        return self.text

    def __str__(self) -> str:
        return self.text
