"""The memory model of items: values under a namespace and a key."""

from recallog.model import Model
from recallog.models.items.operations import Items

MODEL = Model(name="items", operations=Items)
