"""A reactor whose model cannot be called until its settings change."""

from collections.abc import Callable, Sequence

from recallog.reactors.reactor import DueTrigger, Reactor
from recallog_schemas import Event
from recallog_schemas.errors import ModelMisconfigured


class Misconfigured(Reactor):
    """Raises the error of a reactor's settings. It takes the place of that reactor."""

    immediate = True

    def __init__(self, kinds: frozenset[str], error: ModelMisconfigured) -> None:
        self.kinds = kinds  # type: ignore[misc]  # those of the other one
        self.error = error

    async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
        raise self.error


def unless_misconfigured(kinds: frozenset[str], make: Callable[[], Reactor]) -> Reactor:
    """The reactor for triggers of `kinds`. While the settings of its model are wrong, a reactor that does not answer
    them: they stay due, and other triggers are answered."""
    try:
        return make()
    except ModelMisconfigured as error:
        return Misconfigured(kinds, error)
