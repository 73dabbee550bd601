"""The settings of an agent."""

from recallog_schemas.kinds import SalienceWeights
from recallog_schemas.views.base import OfAgent


class AgentSettingsView(OfAgent):
    """The settings of an agent, with defaults filled in. `agent.configured` events change them."""

    window: int
    use_salience: bool
    salience_weights: SalienceWeights
    salience_top_k: int
    reflection_threshold: int | None
    """The number of events that makes a reflection due; None: reflection is off."""
    persona: str | None
    goal: str | None
