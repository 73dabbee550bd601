"""Failures of this process: triggers that could not be answered and stay due, and the times of the next attempts."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from recallog.reactors.reactor import DueTrigger
from recallog_schemas import limits
from recallog_schemas.errors import ModelMisconfigured, RecallogError

_WAIT_SECONDS_MAX = 600.0
"""The longest wait before the next attempt."""


@dataclass(frozen=True, slots=True)
class TriggerFailure:
    """Why a trigger could not be answered."""

    count: int
    """How many attempts have failed in a row."""
    error: RecallogError
    """The error of the last attempt."""
    again_at: float
    """The time of the next attempt, on the clock of `Failures`."""


class Failures:
    """The failures of triggers, and of all triggers of a kind whose model is misconfigured."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._by_id: dict[str, TriggerFailure] = {}
        self._looked_at = float("-inf")

    def note_failure(self, trigger: DueTrigger, error: RecallogError, wait_seconds: float) -> None:
        """Note a failed attempt. The next attempt is after `wait_seconds`, and the wait doubles after each further
        failure."""
        id_ = trigger.kind if isinstance(error, ModelMisconfigured) else trigger.id
        before = self._by_id.get(id_)
        if before is not None and id_ == trigger.kind and before.again_at > self._clock():
            return  # another one of several triggers of the kind, tried at the same time
        self._by_id.pop(id_, None)
        count = 1 if before is None else before.count + 1
        again_at = self._clock() + min(wait_seconds * 2.0 ** min(count - 1, 30), _WAIT_SECONDS_MAX)
        self._by_id[id_] = TriggerFailure(count, error, again_at)
        while len(self._by_id) > limits.REACTION_FAILURES_KEPT:
            del self._by_id[next(iter(self._by_id))]

    def note_answer(self, trigger: DueTrigger) -> None:
        """Note that the trigger was answered, or left by its reactor."""
        self._by_id.pop(trigger.id, None)
        self._by_id.pop(trigger.kind, None)

    def waits(self, trigger: DueTrigger) -> bool:
        """Whether the next attempt is later than now."""
        now = self._clock()
        return any(found.again_at > now for id_ in (trigger.id, trigger.kind) if (found := self._by_id.get(id_)))

    def of(self, trigger: str, kind: str) -> TriggerFailure | None:
        """The failure of a trigger, or of its kind."""
        return self._by_id.get(trigger) or self._by_id.get(kind)

    def take_passed(self) -> bool:
        """Whether the time of an attempt has passed since the last call."""
        before, self._looked_at = self._looked_at, self._clock()
        return any(before < failure.again_at <= self._looked_at for failure in self._by_id.values())
