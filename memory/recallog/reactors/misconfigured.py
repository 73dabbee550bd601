"""A reactor whose model cannot be asked until its settings change."""

from collections.abc import Sequence

from recallog.reactors.reactor import DueTrigger, Reactor
from recallog_schemas import Event
from recallog_schemas.errors import ModelMisconfigured


class Misconfigured(Reactor):
    """Answers nothing: it raises what is wrong with the settings of the reactor in whose place it stands."""

    immediate = True

    def __init__(self, kinds: frozenset[str], error: ModelMisconfigured) -> None:
        self.kinds = kinds  # type: ignore[misc]  # those of the other one
        self.error = error

    async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
        raise self.error
