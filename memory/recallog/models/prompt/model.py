"""The memory model of prompts: what an agent is, knows and remembers, as text for a model."""

from recallog.model import Model
from recallog.models.prompt.operations import Prompts

MODEL = Model(name="prompt", after=("beliefs", "conversations", "long_term", "working"), operations=Prompts)
