"""The shapes of answers: what consumers and operators read. Every answer says what it was computed at."""

from collections.abc import Iterable
from datetime import datetime
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from recallog_schemas import triggers
from recallog_schemas.errors import NothingDue
from recallog_schemas.event import Event, Position
from recallog_schemas.kinds import SalienceWeights


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
        return f"[turn {self.event.turn:03d}][{self.event.kind}] {one_line(self.text)}"


class EpisodicView(ComputedAt):
    """The newest events that an agent may see, oldest first."""

    space: str
    agent: str
    window: int
    memories: tuple[Remembered, ...]

    def format(self) -> str:
        """The memories as a prompt shows them, one a line; `(no prior memory)` where there are none."""
        return lines(self.memories) or "(no prior memory)"


class AgentSettingsView(ComputedAt):
    """What an agent is set to, defaults filled in. `agent.configured` events set it."""

    space: str
    agent: str
    window: int
    use_salience: bool
    salience_weights: SalienceWeights
    salience_top_k: int
    reflection_threshold: int | None
    """How many events make a reflection due; None: none ever is."""
    persona: str | None
    goal: str | None


class Salient(Remembered):
    """One event with its salience: score = w_rel * relevance + w_rec * recency + w_imp * importance."""

    score: float
    relevance: float
    """0 to 1: by the index, (n - i)/n for the i-th of n events found; else Jaccard similarity of its words with the
    query's."""
    recency: float
    """0 to 1: exp(-0.1 * turns ago)."""
    importance: float
    """0 to 1: its kind's, by the catalogue."""

    def line(self) -> str:
        return f"[turn {self.event.turn:03d}][{self.event.kind}][sal={self.score:.2f}] {one_line(self.text)}"


class SalientView(ComputedAt):
    """Of the newest events that an agent may see, those that matter most now, oldest first."""

    space: str
    agent: str
    query: str
    turn: int
    """The turn that recency was measured from."""
    top_k: int
    weights: SalienceWeights
    considered: int
    """How many events were scored."""
    relevance_by: str | None = Field(default=None, exclude_if=lambda by: by is None)
    """"meaning", by the semantic index; or "words", with the reason why. None, and left out, where the index is off."""
    memories: tuple[Salient, ...]

    def format(self) -> str:
        """The memories as a prompt shows them, one a line; `(no salient memories)` where there are none."""
        return lines(self.memories) or "(no salient memories)"


class Belief(Remembered):
    """One reflection of an agent. `text` is the belief."""

    based_on: tuple[str, ...]
    """Ids of the events it rests on, as the agent named them."""


class BeliefsView(ComputedAt):
    """What an agent has come to believe, oldest first; only what `reader` may see of it, where one is named."""

    space: str
    agent: str
    reader: str | None
    beliefs: tuple[Belief, ...]

    def format(self) -> str:
        """The beliefs, one a line; `(no beliefs)` where there are none."""
        return lines(self.beliefs) or "(no beliefs)"


class SceneView(ComputedAt):
    """What all agents of a space have before their eyes: the newest event of each of its scene kinds, oldest first."""

    space: str
    kinds: tuple[str, ...]
    events: tuple[Remembered, ...]

    def format(self) -> str:
        """The scene in words, one event a line; `(no scene)` where there is none."""
        return "\n".join(one_line(shown.text) for shown in self.events if shown.text) or "(no scene)"


class ReflectionView(ComputedAt):
    """Whether an agent owes a reflection, since when, and on what."""

    space: str
    agent: str
    due: bool
    threshold: int | None
    """How many events make one due; None: none ever is."""
    events: int
    """Those that the agent could see since its last reflection."""
    since: Position | None
    """From this record on it is due. None where it is not, or where that is further back than the views keep."""
    last: Position | None
    """The agent's last reflection (or failed one), from which the count starts; None before the first."""
    turn: int
    """The space's turn."""
    trigger: str | None
    """What an answer names as its cause; None where none is due."""
    on: tuple[Remembered, ...]
    """The newest of the events that are counted, at most 20, oldest first."""

    def answer(
        self,
        belief: str,
        based_on: Iterable[str] | None = None,
        *,
        turn: int | None = None,
        session: str | None = None,
    ) -> Event:
        """The `agent.reflected` that answers the trigger, ready to be published: of several answers the first counts.

        `based_on` are ids of events, by default those of `on`; `turn` is the space's by default. Raises `NothingDue`,
        or pydantic's `ValidationError`.
        """
        trigger = triggers.parse(self.trigger)
        if trigger is None:
            raise NothingDue(
                f"{self.agent!r} owes no reflection in {self.space!r}: {self.events} of {self.threshold} events. "
                "Publish an agent.reflected of your own, or wait until one is due"
            )
        ids = [shown.event.id for shown in self.on] if based_on is None else list(based_on)
        return Event(
            id=trigger.answer_id,
            space=self.space,
            session=session,
            agent=self.agent,
            kind="agent.reflected",
            turn=self.turn if turn is None else turn,
            payload={"belief": belief, "based_on": ids},
            causation_id=trigger.id,
        )


class StandingTrigger(View):
    """A reflection that is due and not answered yet."""

    space: str
    agent: str
    trigger: str
    events: int
    threshold: int


class Reaction(View):
    """What a reactor did about one trigger."""

    space: str
    agent: str
    trigger: str
    kind: str
    """agent.reflected, or reflection.failed."""
    text: str
    """The belief, or why there is none."""
    based_on: tuple[str, ...]
    position: Position
    """Of the answer that counts: an earlier one, where somebody else was faster."""

    @classmethod
    def of(cls, event: Event, position: Position) -> Self | None:
        """What the event at `position` did about the trigger that it names; None where it names none."""
        trigger = triggers.named_by(event)
        if trigger is None:
            return None
        return cls(
            space=event.space,
            agent=event.agent,
            trigger=trigger.id,
            kind=event.kind,
            text=event.text or str(event.payload.get("reason", "")),
            based_on=tuple(event.payload.get("based_on", ())),
            position=position,
        )


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


class Preview(View):
    """One event that an agent may see, in short. `Memory.entries` gives the whole of it for its `id`."""

    id: str
    position: Position
    at: datetime
    agent: str
    kind: str
    session: str | None
    turn: int
    preview: str
    """How its text begins; "..." at the end where it goes on."""
    tokens: int
    """An estimate of what the whole text costs a model: four characters each, rounded up; 0 where it is empty."""

    def line(self) -> str:
        """The preview as prompts show memories: `[turn 003][kind] text`."""
        return f"[turn {self.turn:03d}][{self.kind}] {one_line(self.preview)}"


class SearchHit(Preview):
    """A memory that answers a question, in short."""

    score: float
    """Rounded to four decimals; comparable within one answer only."""


class SearchPage(Recalled):
    """What an agent remembers about a question, in short, best first."""

    limit: int
    """How many hits were asked for, within 1 to 100."""
    hits: tuple[SearchHit, ...]

    def format(self) -> str:
        """The previews, best first, one a line; "" where there are none."""
        return "\n".join(hit.line() for hit in self.hits)


class AroundView(ComputedAt):
    """One event in short, and what the agent may see just before and after it, oldest first."""

    space: str
    agent: str
    before: tuple[Preview, ...]
    anchor: Preview
    after: tuple[Preview, ...]

    @property
    def events(self) -> tuple[Preview, ...]:
        """All of them, in order."""
        return (*self.before, self.anchor, *self.after)

    def format(self) -> str:
        """The previews, one a line."""
        return "\n".join(event.line() for event in self.events)


class EntriesView(ComputedAt):
    """The events of some ids that an agent may see, in the order in which they were asked for."""

    space: str
    agent: str
    entries: tuple[Remembered, ...]

    def format(self) -> str:
        """The events as a prompt shows them, one a line; "" where there are none."""
        return lines(self.entries)


class Explanation(ComputedAt):
    """Whether an agent has an event before its eyes, and why."""

    space: str
    agent: str
    event_id: str
    verdict: str
    """remembered, outscored, out_of_window, not_kept, not_visible, bookkeeping, dead_letter, or unknown."""
    why: str
    """The verdict in a sentence."""
    position: Position | None
    """Where the event lies; None where it is unknown."""
    in_episodic: bool
    newer: int | None
    """How many newer events the agent may see."""
    window: int
    in_salient: bool
    rank: int | None
    """Among all scored events, from 1."""
    top_k: int
    considered: int
    query: str
    turn: int
    weights: SalienceWeights
    memory: Salient | None
    """The event with each term of its score; None where the agent may not see it, or the views no longer keep it."""

    def sum(self) -> str:
        """The score as a sum of its weighted terms, for people; "" where there is none."""
        if self.memory is None:
            return ""
        terms = (
            (self.weights.relevance, "relevance", self.memory.relevance),
            (self.weights.recency, "recency", self.memory.recency),
            (self.weights.importance, "importance", self.memory.importance),
        )
        written = " + ".join(f"{weight:.2f} x {name} {value:.3f}" for weight, name, value in terms)
        return f"{written} = {self.memory.score:.3f}"


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


class Unreflected(View):
    """An agent with a memory of its own that does not reflect: its window no longer holds what it has seen."""

    space: str
    agent: str
    turn: int
    """The highest turn in which it acted."""


class Status(View):
    """The whole at a glance, as it is: asking folds nothing."""

    ledger: str
    records: int
    """Decided: applied, skipped as repeats, or dead letters."""
    spaces: int
    agents: int
    sessions: int
    partitions: tuple[PartitionStatus, ...]
    standing: tuple[StandingTrigger, ...]
    """Reflections that are due; the first 100 of `standing_total`."""
    standing_total: int
    unreflected: tuple[Unreflected, ...]
    """Agents past turn 30 for which reflection is off; the first 100 of `unreflected_total`."""
    unreflected_total: int
    ledger_bytes: int
    views_bytes: int
    index_bytes: int


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


class CopyReport(View):
    """What a copy of a ledger did: records in the source, events that are in the target now, records left out."""

    records: int
    copied: int
    left_out: int


class RebuildPlan(View):
    """What a rebuild would do for one partition."""

    views: str
    partition: int
    records: int
    replaces: str | None
    """The generation that readers are served from now."""
    joins: str | None
    """The generation under way, which it would complete."""


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


def one_line(text: str) -> str:
    """`text` without line breaks: in a prompt, what somebody said must not look like a section of its own."""
    return " ".join(text.splitlines())
