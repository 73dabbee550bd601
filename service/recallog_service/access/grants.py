"""Grants: the spaces, the agent and the verbs that a caller of a door may use."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_serializer

from recallog_schemas import names
from recallog_schemas.errors import Forbidden, RecallogError
from recallog_service.access.concealing import FOR_OPERATORS, conceal_error

ANY = "*"
"""All spaces, or any agent."""

_BELOW = "/*"


def _name_or_any(text: str) -> str:
    return text if text == ANY else names.check_name(text)


def _spaces(pattern: str) -> str:
    if pattern == ANY:
        return pattern
    below = _BELOW if pattern.endswith(_BELOW) else ""
    return f"{names.check_name(pattern.removesuffix(below))}{below}"


class Verb(StrEnum):
    """An action that a grant allows."""

    READ = "read"
    """Queries."""
    PUBLISH = "publish"
    """Commands, and the agent's own events."""
    FORGET = "forget"
    """Removing something that cannot be restored."""
    TAIL = "tail"
    """Following the events of a space as they are published, including those private to other agents."""
    OPERATE = "operate"
    """Operations of operators, settings of spaces, and granting units to agents."""


class Grant(BaseModel):
    """What the holder of a key may do. Every field is required, so that nothing is allowed by omission."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    spaces: Annotated[tuple[Annotated[str, AfterValidator(_spaces)], ...], Field(min_length=1, max_length=64)]
    """Names of spaces, `acme/*` for every space under `acme/`, or `*` for all spaces."""
    agent: Annotated[str, AfterValidator(_name_or_any)]
    """The agent that the holder acts as: it sees what this agent may see, and publishes as this agent. `*`: any agent,
    and operations on a space as a whole."""
    verbs: Annotated[frozenset[Verb], Field(min_length=1)]
    """What the holder may do."""

    @classmethod
    def everything(cls) -> Self:
        """The grant of a caller who needs no key."""
        return cls(spaces=(ANY,), agent=ANY, verbs=frozenset(Verb))

    @property
    def is_of_all_spaces(self) -> bool:
        return ANY in self.spaces

    @property
    def is_of_one_agent(self) -> bool:
        return self.agent != ANY

    @property
    def only_space(self) -> str | None:
        """The space, if the grant is for exactly one; otherwise None."""
        (first, *others) = self.spaces
        return None if others or first.endswith(ANY) else first

    def covers(self, space: str) -> bool:
        """Whether the grant is for this space."""
        return any(_matches(pattern, space) for pattern in self.spaces)

    def check(self, verb: Verb, space: str | None = None, agent: str | None = None) -> None:
        """Raise `Forbidden` unless the grant allows `verb` in `space` (None: in all spaces) as `agent` (None: as any).

        The work and the error are the same whether there is such a space or agent.
        """
        may = self.is_of_all_spaces if space is None else self.covers(space)
        if verb not in self.verbs or not may or self.agent not in (ANY, agent):
            raise Forbidden

    @property
    def is_of_operators(self) -> bool:
        """Whether the holder may operate the whole memory."""
        return Verb.OPERATE in self.verbs and self.is_of_all_spaces and not self.is_of_one_agent

    def translate_error(self, error: RecallogError) -> RecallogError:
        """An error as the holder sees it: only operators see hosts, folders and records."""
        return error if self.is_of_operators or not isinstance(error, FOR_OPERATORS) else conceal_error(error)

    def cells(self) -> Sequence[str]:
        """The grant as the cells of a table: spaces, agent, verbs."""
        return " ".join(self.spaces), self.agent, ",".join(self._in_order(self.verbs))

    def format(self) -> str:
        """The grant on one line."""
        return "  ".join(self.cells())

    @field_serializer("verbs")
    def _in_order(self, verbs: frozenset[Verb]) -> list[Verb]:
        return [verb for verb in Verb if verb in verbs]


def _matches(pattern: str, space: str) -> bool:
    if pattern.endswith(_BELOW):
        return space.startswith(pattern.removesuffix(ANY))
    return pattern in (ANY, space)
