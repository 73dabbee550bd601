"""Circuit breaker: limits how long callers wait for another process or server, and how often they wait in vain.

States: *closed*, calls are made; *open*, since a call failed or got no answer: calls fail at once; *half-open*, some
seconds later: one call is made and decides, while all others still fail at once.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from recallog_projections.patience import OUTAGE_SECONDS, answer_seconds, is_patient
from recallog_schemas import limits
from recallog_schemas.errors import RecallogError

OPEN_SECONDS = 2.0
"""How long calls fail at once after a failure."""
_GRACE_SECONDS = 0.05
"""Added to a deadline that has passed: data that arrived while this process itself was busy is read first."""

_PATIENT_POLL_SECONDS = 0.05
_log = logging.getLogger("recallog.patience")

Result = TypeVar("Result")


class Attempt:
    """One call that is being made, within `timeout`."""

    def __init__(self, deadline_seconds: float) -> None:
        self.deadline_seconds = deadline_seconds
        self.timeout = asyncio.timeout(None)
        self.failed = False
        """Whether the dependency could not be reached, or did not answer."""
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def silent(self) -> bool:
        """Whether the deadline has passed."""
        return self.timeout.expired()

    def progress(self) -> None:
        """Restart the deadline, because the other side has answered something."""
        self.end()
        if self.timeout.when() is not None and not self.silent:
            self.timeout.reschedule(None)
        self._timer = self._loop.call_later(self.deadline_seconds, self._close_breaker)

    def _close_breaker(self) -> None:
        self.timeout.reschedule(self._loop.time() + _GRACE_SECONDS)

    def end(self) -> None:
        """End the deadline."""
        if self._timer is not None:
            self._timer.cancel()


class Breaker:
    """The circuit breaker of one dependency, used in one event loop.

    `unavailable` makes the error that callers get from a reason, the predicate of a sentence such as "said nothing for
    2 s". `failures` are the exceptions which say that the dependency cannot be reached; `reason_of` describes them.
    Any other outcome, even an error, is an answer and closes the breaker. So does an answer to an older call, and a
    failed call counts only if nothing was answered since it began: one slow call beside others that are answered
    says nothing about the dependency.
    """

    def __init__(
        self,
        unavailable: Callable[[str], RecallogError],
        deadline_seconds: float = limits.DEADLINE_SECONDS,
        *,
        failures: tuple[type[Exception], ...] = (OSError,),
        reason_of: Callable[[Exception], str] = lambda error: (
            f"cannot be reached ({str(error) or type(error).__name__})"
        ),
        open_seconds: float = OPEN_SECONDS,
    ) -> None:
        self._unavailable = unavailable
        self.deadline_seconds = deadline_seconds
        self._failures = failures
        self._reason_of = reason_of
        self._open_seconds = open_seconds
        self._answers = 0
        self._reason: str | None = None
        self._open_until = 0.0
        self._probe: Attempt | None = None
        self._outage_is_logged = False

    async def call(
        self,
        work: Callable[[], Awaitable[Result]],
        deadline_seconds: float | None = None,
        *,
        repeatable: bool = True,
    ) -> Result:
        """The result of `work`. Raises as `attempt` does.

        In a patient call, `repeatable` work is done again while a dependency that has answered before fails, for
        `OUTAGE_SECONDS` in all.
        """
        now = asyncio.get_running_loop().time
        give_up = now() + OUTAGE_SECONDS
        while True:
            attempt: Attempt | None = None
            try:
                async with self.attempt(deadline_seconds) as attempt:
                    return await work()
            except RecallogError as error:
                failed = attempt is not None and attempt.failed
                left = give_up - now()
                if not (failed and repeatable and is_patient() and self._answers and left > 0):
                    raise
                if not self._outage_is_logged:
                    self._outage_is_logged = True
                    _log.warning("%s: it is tried for another %.0f s", error, left)

    @asynccontextmanager
    async def attempt(self, deadline_seconds: float | None = None) -> AsyncIterator[Attempt]:
        """Make one call in the block, of one or several messages; call `progress` of what it yields for each of them.

        Raises `unavailable(reason)` for a failure, after a silence of `deadline_seconds` (default: the breaker's), and
        at once while the breaker is open. A patient call waits longer, and until the breaker lets it through.
        """
        attempt = Attempt(answer_seconds(self.deadline_seconds if deadline_seconds is None else deadline_seconds))
        if is_patient() and self._answers:
            await self._until_half_open()
        self._begin(attempt)
        answers = self._answers
        try:
            async with attempt.timeout:
                attempt.progress()
                yield attempt
        except Exception as error:
            attempt.failed = attempt.silent or isinstance(error, self._failures)
            if attempt.silent:
                raise self._note_failure(f"has said nothing for {attempt.deadline_seconds:g} s", answers) from error
            if attempt.failed:
                raise self._note_failure(self._reason_of(error), answers) from error
            self._note_answer()
            raise
        else:
            self._note_answer()
        finally:
            attempt.end()
            if self._probe is attempt:  # also if it was cancelled: the next call is then made
                self._probe = None

    def _begin(self, attempt: Attempt) -> None:
        if self._reason is None:
            return
        left = self._open_until - asyncio.get_running_loop().time()
        if left > 0 or self._probe is not None:
            when = f"in {left:.1f} s" if left > 0 else "by one call now"
            raise self._unavailable(f"{self._reason}; it is tried again {when}")
        self._probe = attempt

    async def _until_half_open(self) -> None:
        now = asyncio.get_running_loop().time
        give_up = now() + OUTAGE_SECONDS
        while self._reason is not None and (now() < self._open_until or self._probe is not None) and now() < give_up:
            await asyncio.sleep(_PATIENT_POLL_SECONDS)

    def _note_answer(self) -> None:
        self._answers += 1
        self._reason = None
        self._outage_is_logged = False

    def _note_failure(self, reason: str, answers_before: int) -> RecallogError:
        if self._answers == answers_before:
            self._reason = reason
            self._open_until = asyncio.get_running_loop().time() + self._open_seconds
        return self._unavailable(reason)
