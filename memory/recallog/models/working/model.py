"""The memory model of working memory: blocks and scratchpads, which are items."""

from recallog.model import Model
from recallog.models.working.operations import Working

MODEL = Model(name="working", after=("items", "long_term"), operations=Working)
