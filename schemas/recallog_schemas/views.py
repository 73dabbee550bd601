"""The shapes of answers: what consumers and operators read. Every answer says what it was computed at."""

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from recallog_schemas.event import Event, Position


class View(BaseModel):
    """Base of all answers: immutable, and JSON by `model_dump_json()`."""

    model_config = ConfigDict(frozen=True)


class ComputedAt(View):
    """Which copy of the views answered, and the last position it had decided (None: nothing yet)."""

    generation: str
    checkpoint: Position | None


class Remembered(View):
    """One event that an agent may see, where it lies, and what it says."""

    position: Position
    event: Event
    text: str

    def line(self) -> str:
        """The event as prompts show it, in the form of the ledger-view memory document: `[turn 003][kind] text`."""
        return f"[turn {self.event.turn:03d}][{self.event.kind}] {self.text}"


class EpisodicView(ComputedAt):
    """The newest events that an agent may see, oldest first."""

    space: str
    agent: str
    window: int
    memories: tuple[Remembered, ...]

    def format(self) -> str:
        """The memories as a prompt shows them, one a line; `(no prior memory)` where there are none."""
        return lines(self.memories) or "(no prior memory)"


class TimelinePage(ComputedAt):
    """A page of the events that an agent may see, oldest first. Pages lead from the newest events to older ones."""

    space: str
    agent: str
    items: tuple[Remembered, ...]
    older: Position | None
    """Pass it as `before` for the next page; None on the last one."""
    kept_from: Position | None
    """On the last page: the views keep what the agent may see from here on, older events are in the ledger alone.
    None where nothing was dropped, and on other pages."""


class SpaceView(ComputedAt):
    """Activity in one space. `events` counts every event, bookkeeping too."""

    space: str
    events: int
    agents: int
    sessions: int
    first: Position
    last: Position


class AgentView(View):
    """Activity of one agent (or session, or kind) of a space: how many events, the first and the last."""

    name: str
    events: int
    first: Position
    last: Position


class SpaceDetail(ComputedAt):
    """One space by agents, sessions and kinds. `space` is None where nothing was ever said there."""

    space: SpaceView | None
    agents: tuple[AgentView, ...]
    sessions: tuple[AgentView, ...]
    kinds: tuple[AgentView, ...]


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


class PartitionStatus(View):
    """How far the views of one partition are."""

    views: str
    partition: int
    end: int
    checkpoint: int
    lag: int
    """Records not decided yet."""
    generation: str | None
    building: str | None
    building_checkpoint: int | None
    dead_letters: int
    incomplete: bool
    """Some dead letters are of a future schema: newer code can read them."""


class Status(View):
    """The whole at a glance, as it is: asking folds nothing."""

    ledger: str
    records: int
    """Decided: applied, skipped as repeats, or dead letters."""
    spaces: int
    agents: int
    sessions: int
    partitions: tuple[PartitionStatus, ...]
    ledger_bytes: int
    views_bytes: int


class Difference(View):
    """The first row in which a view differs from a fresh fold; None where one of them has no such row."""

    table: str
    space: str
    owner: str
    key: str
    found: str | None
    expected: str | None

    def address(self) -> str:
        return " / ".join(part for part in (self.table, self.space, self.owner, self.key) if part)


class TableCheck(ComputedAt):
    """One table of the views compared with a fresh fold: its rows, its canonical digest, and what differs first."""

    views: str
    table: str
    rows: int
    digest: str
    expected_digest: str
    difference: Difference | None


class VerifyReport(View):
    """What verification found."""

    records: int
    tables: tuple[TableCheck, ...]
    digest: str
    """Of all tables together: equal views have equal digests."""

    @property
    def clean(self) -> bool:
        return all(table.difference is None for table in self.tables)


class RebuildReport(View):
    """What a rebuild did for one partition."""

    views: str
    partition: int
    replaced: str | None
    generation: str
    joined: bool
    records: int
    seconds: float


def lines(memories: Iterable[Remembered]) -> str:
    return "\n".join(memory.line() for memory in memories)
