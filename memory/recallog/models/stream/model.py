"""The memory model of streams: what happened to an agent in particular."""

from recallog.model import Model
from recallog.models.stream.operations import Stream

MODEL = Model(name="stream", after=("beliefs", "long_term", "tiers"), operations=Stream)
