"""The settings of an agent."""

from recallog_schemas.kinds import Dates, SalienceWeights
from recallog_schemas.views.base import OfAgent


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
