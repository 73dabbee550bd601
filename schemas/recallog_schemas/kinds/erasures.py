"""The payload of the event that says that units were erased."""

from typing import Annotated, Literal

from pydantic import Field

from recallog_schemas import limits
from recallog_schemas.kinds.payload import Count, Id, Payload, Reason


class UnitErased(Payload):
    """What was sealed with these keys is erased. Every process that folds the event destroys remaining keys."""

    unit: Literal["subject", "entry", "space"]
    """What was erased as a whole."""
    names: Annotated[list[Id], Field(max_length=limits.EVENT_IDS_MAX)]
    """The subjects, or the ids of the entries; none for the space."""
    keys: Annotated[list[str], Field(max_length=limits.ERASED_KEYS_MAX)]
    """The ids of the keys."""
    events: Count = 0
    """How many events the call has erased, including those made from others."""
    reason: Reason | None = None
    """Why."""
