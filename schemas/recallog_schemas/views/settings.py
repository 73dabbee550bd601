"""The settings of an agent, and of a space."""

from collections.abc import Mapping

from recallog_schemas.kinds import (
    CaptureSettings,
    DailySettings,
    Dates,
    People,
    QualitySettings,
    RagSettings,
    SalienceWeights,
    SpaceTiers,
    TierSettings,
    TrustSettings,
    WorkingSettings,
)
from recallog_schemas.views.base import OfAgent, OfSpace, one_line
from recallog_schemas.views.kinds import KindView


class AgentSettingsView(OfAgent):
    """The settings of an agent, with defaults filled in. `agent.configured` events change them."""

    window: int
    """The number of events in the agent's episodic view and in its prompt."""
    use_salience: bool
    """Whether the agent's prompt shows the most salient events instead of the newest ones."""
    salience_weights: SalienceWeights
    """The weights of relevance, recency and importance."""
    salience_top_k: int
    """The number of events in the agent's salient view."""
    reflection_threshold: int | None
    """The number of events that makes a reflection due; None: reflection is off."""
    persona: str | None
    """Who the agent is, as its prompt says; None if it is not set."""
    goal: str | None
    """What the agent wants, as its prompt says; None if it is not set."""
    dates: Dates
    """Whether lines of events carry dates: "automatic" (where the events of one answer span more than 24 hours),
    "always" or "never"."""
    people: People
    """What prompts call the people who speak to the agent: "visitors" or "users"."""
    working: WorkingSettings
    """Its working memory."""
    rag: RagSettings
    """The section RECALLED of its prompts."""
    quality: QualitySettings
    """The gate before what it retains, and whether near-duplicates are merged."""
    tiers: TierSettings
    """How its entries age."""
    capture: CaptureSettings
    """Which of its tool calls become entries."""
    extract_facts: bool
    """Whether facts are extracted from its turns."""
    daily: DailySettings
    """Its daily log."""
    auto_recall: bool
    """Whether the newest messages of a session are the query of its section RECALLED."""


class SpaceSettingsView(OfSpace):
    """The settings of a space, with defaults filled in. `space.configured` events change them."""

    shared_kinds: tuple[str, ...]
    """The kinds that all its agents see, by name."""
    scene_kinds: tuple[str, ...]
    """The kinds whose newest shared events are the scene of prompts."""
    kinds: tuple[KindView, ...]
    """The kinds that it declares, by name."""
    scene_notes: Mapping[str, int]
    """The notes in the scene: the number of newest shared events, by kind."""
    trust: TrustSettings
    """Which sources it trusts, and for what."""
    tiers: SpaceTiers
    """The tiers of its entries."""

    def format(self) -> str:
        """Shared kinds, scene kinds, notes, tiers and trust if they are set, and one line for each declared kind."""
        lines = [f"shared_kinds: {', '.join(self.shared_kinds)}", f"scene_kinds: {', '.join(self.scene_kinds)}"]
        if self.scene_notes:
            lines.append(f"scene_notes: {', '.join(f'{kind} {count}' for kind, count in self.scene_notes.items())}")
        if self.tiers.default is not None:
            lines.append(f"tiers: {self.tiers.default} by default")
        if self.trust != TrustSettings():
            lines.append(f"trust: {one_line(self.trust.model_dump_json(exclude_defaults=True))}")
        return "\n".join([*lines, *(kind.format() for kind in self.kinds)])
