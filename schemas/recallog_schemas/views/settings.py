"""The settings of an agent."""

from recallog_schemas.kinds import SalienceWeights
from recallog_schemas.views.base import ComputedAt


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
