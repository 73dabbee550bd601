"""The memory model of consensus: what agents agreed on, and who disagreed."""

from recallog.model import Model
from recallog.models.consensus.operations import Consensus

MODEL = Model(name="consensus", operations=Consensus)
