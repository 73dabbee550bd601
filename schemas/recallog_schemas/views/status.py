"""The state of a ledger and its views."""

from typing import Literal

from recallog_schemas.views.base import View, count_noun
from recallog_schemas.views.reactions import PendingTrigger


class PartitionStatus(View):
    """The progress of the views of one partition."""

    views: str
    """The group of views: the built-in ones, a projection of the user, or the index."""
    partition: int
    """The number of the partition."""
    end: int
    """The next offset of the partition."""
    checkpoint: int
    """The last offset that was processed; -1: nothing yet."""
    lag: int
    """The number of records not processed yet."""
    generation: str | None
    """The generation that readers use; None before the first one."""
    building: str | None
    """The generation that a rebuild computes now; None if there is none."""
    building_checkpoint: int | None
    """The last offset that it has processed."""
    dead_letters: int
    """The number of records that the views could not apply."""
    incomplete: bool
    """Whether some dead letters have a future schema: newer code can read them."""
    problem: str = ""
    """Why the views cannot be read, or that the ledger lacks records which they have processed; "" otherwise. Queries
    in a folder fold the ledger in memory while its views cannot be read."""

    def format(self) -> str:
        """Views, partition, progress, dead letters and generation in one line."""
        return (
            f"{self.views}, partition {self.partition}: {self.checkpoint + 1:,} of {self.end:,} records processed, "
            f"{count_noun(self.dead_letters, 'dead letter')}, generation {self.generation or 'none yet'}"
            + (f"; {self.problem}" if self.problem else "")
        )


class IndexStatus(View):
    """The state of the semantic index."""

    state: Literal["none", "building", "behind", "current", "failing", "unavailable"]
    """none: not built yet. building: the first generation, or one in place of a lost one. behind, current: how far it
    follows the ledger. failing: it answers, but does not follow the ledger. unavailable: it cannot answer."""
    problem: str
    """Why it does not follow the ledger or cannot answer, in one sentence; "" if it does."""

    def format(self) -> str:
        """The state and the problem in one line."""
        return f"index: {self.state}" + (f": {self.problem}" if self.problem else "")


class LedgerFault(View):
    """Something that is wrong with the ledger although it answers, such as a setting by which events get lost."""

    problem: str
    """What is wrong, and what follows."""
    remedy: str
    """What to do."""
    severe: bool
    """Whether the guarantees do not hold any more: then `/health` of workers and `/readyz` of servers are 503. If not,
    it is a warning."""

    def format(self) -> str:
        """The problem and the remedy in one line."""
        return f"{'ledger' if self.severe else 'warning'}: {self.problem}. {self.remedy}"


class Unreflected(View):
    """An agent without reflection whose window no longer holds all the events that it has seen."""

    space: str
    """The name of the space."""
    agent: str
    """The name of the agent."""
    turn: int
    """The highest turn in which it acted."""


class Status(View):
    """The state of the ledger and its views. Computing it folds no records."""

    ledger: str
    """The id of the ledger."""
    folded_by_workers: bool = False
    """Whether workers maintain its views and answer its triggers; if not, each question folds what they lack."""
    records: int
    """The number of records in the ledger."""
    spaces: int
    """The number of spaces."""
    agents: int
    """The number of agents that have acted, counted in each space."""
    sessions: int
    """The number of sessions, counted in each space."""
    partitions: tuple[PartitionStatus, ...]
    """The progress of each group of views in each partition."""
    pending: tuple[PendingTrigger, ...]
    """The triggers that are due, by space and agent: the first 100 of `pending_total`."""
    pending_total: int
    """The number of triggers that are due."""
    unreflected: tuple[Unreflected, ...]
    """Agents past turn 30 whose reflection is off: the first 100 of `unreflected_total`."""
    unreflected_total: int
    """The number of such agents."""
    ledger_bytes: int
    """The size of the ledger."""
    views_bytes: int
    """The size of the views, including those of projections of the user."""
    index_bytes: int
    """The size of the semantic index."""
    index: IndexStatus | None = None
    """The state of the semantic index; None if it is off."""
    oldest_pending: PendingTrigger | None = None
    """The due trigger that has waited longest, by the time of the event that made it due. None if only reflections are
    due: `recallog pending` computes their times."""
    faults: tuple[LedgerFault, ...] = ()
    """What is wrong with the ledger: settings of its topic that delete events, events that are dated ahead."""

    def format(self) -> str:
        """The counts, then the progress of each group of views and what is wrong, one per line."""
        numbers = {"record": self.records, "space": self.spaces, "agent": self.agents, "session": self.sessions}
        counts = ", ".join(count_noun(number, noun) for noun, number in numbers.items())
        index = [self.index.format()] if self.index is not None and self.index.problem else []
        faults = [fault.format() for fault in self.faults]
        return "\n".join((counts, *(row.format() for row in self.partitions), *index, *faults))
