"""The publisher: sends what is due in the partitions whose views this process maintains to the topic of triggers.

Only the active generation of a partition is looked at, and only once it is live. So a rebuild triggers nothing, and a
partition that another worker takes over, or a cutover, has everything that is due sent again.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import msgspec

from recallog.queries import due
from recallog.reading.query_router import QueryRouter
from recallog_projections.views.due import Scheduled, Work
from recallog_schemas import triggers
from recallog_schemas.errors import Rebuilding, RecallogError, ViewsTooNew
from recallog_schemas.views import PendingTrigger
from recallog_streams.concurrency import gathered
from recallog_streams.ledgers.kafka.doorbells import Doorbell, TriggerTopic
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.live import LiveProjector
from recallog_streams.partition_task import State, backoff
from recallog_streams.stop_signal import StopSignal

LOOK_SECONDS = 0.5
"""How often partitions that became live are looked for. Commits are looked at as they are made."""
REST_SECONDS = 0.1
"""The pause after a look, so that a busy partition is looked at once for several commits: a look takes six requests to
the store, and one or two for each space that has changed."""
AGAIN_SECONDS = 10.0
"""After this time an unanswered trigger is sent again, then after twice as long each time."""
AGAIN_SECONDS_MAX = 600.0
SENT_MAX = 10_000
"""How many unanswered triggers of a partition are remembered. Further ones wait in the views until some are answered.
"""
REPEATS_MAX = 1_000
"""How many triggers of a partition are sent again at a time."""

_CLOSINGS = triggers.ANSWERS | triggers.CLOSINGS

_log = logging.getLogger("recallog.triggers")


class _Seen(msgspec.Struct):
    """What the publisher reads of each event."""

    space: str
    agent: str
    kind: str
    causation_id: str | None = None


_decode = msgspec.json.Decoder(_Seen).decode


@dataclass(slots=True)
class _Sent:
    message: Doorbell
    again_at: float
    pause_seconds: float = AGAIN_SECONDS


@dataclass(slots=True, eq=False)
class _Watched:
    """One live partition."""

    life: tuple[str, int]
    """Its generation, and how often its task has become live."""
    cursor: str | None = None
    """The key of the last row of `due.now` whose trigger was sent."""
    more: bool = True
    """Whether there may be rows behind the cursor."""
    spaces: set[str] | None = None
    """Where agents may have fallen due by count or time since the last look; None: in all spaces."""
    sent: dict[str, _Sent] = field(default_factory=dict)
    """By id: the triggers that were sent and are not answered yet."""
    closed: set[str] = field(default_factory=set)
    """Those of them whose answer has passed since the last look."""


class TriggerPublisher:
    """Publishes the triggers of one group of views: of the built-in ones, or of a user's projection."""

    def __init__(
        self,
        router: QueryRouter,
        live: LiveProjector,
        topic: TriggerTopic,
        published: Callable[[int, bool], None],
        *,
        recurring: bool = True,
    ) -> None:
        """`live` maintains the views that `router` reads; `recurring`: they have plans and reflections too.

        `published` is called with how many messages were sent, and whether they repeat earlier ones.
        """
        self._router = router
        self._recurring = recurring
        self._live = live
        self._topic = topic
        self._published = published
        self._watched: dict[int, _Watched] = {}
        self._changed = asyncio.Event()
        self.problem = ""
        """Why triggers are not published, in one sentence; "" if they are."""
        live.on_commit(self._commit)

    @property
    def unanswered(self) -> dict[int, int]:
        """By partition: how many triggers were sent and are not answered yet."""
        return {partition: len(watched.sent) for partition, watched in self._watched.items()}

    def _commit(self, batch: Batch) -> None:
        """The views of a live partition contain `batch`."""
        watched = self._watched.get(batch.partition)
        if watched is None:
            return  # it is looked at as a whole
        for _, data in batch.records:
            with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                self._note(watched, _decode(data))
        watched.more = True
        self._changed.set()

    def _note(self, watched: _Watched, seen: _Seen) -> None:
        if watched.spaces is not None:
            watched.spaces.add(seen.space)
        if seen.kind in _CLOSINGS and seen.causation_id is not None:
            sent = watched.sent.get(seen.causation_id)
            if sent is not None and (sent.message.space, sent.message.agent) == (seen.space, seen.agent):
                watched.closed.add(seen.causation_id)

    async def run(self, stopping: StopSignal) -> None:
        """Publish what falls due until `stopping` is set. A problem is retried, with increasing pauses."""
        failures = 0
        while not stopping:
            self._changed.clear()
            try:
                await stopping.unless(self._round())
            except RecallogError as error:
                failures += 1
                self._report(str(error))
                await stopping.pause(backoff(failures))
                continue
            failures = 0
            self._report("")
            await stopping.pause(REST_SECONDS)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await stopping.unless(self._waited())

    async def _waited(self) -> None:
        await self._changed.wait()

    def _report(self, problem: str) -> None:
        if problem and problem != self.problem:
            _log.warning("%s", problem)
        self.problem = problem

    async def _round(self) -> None:
        lives = {
            task.partition: (task.generation.id, task.lives)
            for task in self._live.tasks
            if task.state is State.LIVE and task.generation is not None
        }
        for partition in self._watched.keys() - lives.keys():
            del self._watched[partition]
        for partition, life in lives.items():
            if partition not in self._watched or self._watched[partition].life != life:
                self._watched[partition] = _Watched(life)
        await gathered(self._look, sorted(lives))

    async def _look(self, partition: int) -> None:
        watched = self._watched[partition]
        spaces, watched.spaces = watched.spaces, set()
        try:
            await self._settle(partition, watched)
            await self._publish_work(partition, watched)
            if self._recurring and (spaces is None or spaces):
                await self._publish_recurring(partition, watched, None if spaces is None else sorted(spaces))
            await self._repeat(partition, watched)
        except BaseException as error:
            watched.spaces = None if spaces is None or watched.spaces is None else watched.spaces | spaces
            # After a cutover or a loss of the views the projector leaves this partition as soon as it notices, too. A
            # generation of newer code is looked at by workers of that version.
            if not isinstance(error, Rebuilding | ViewsTooNew):
                raise

    async def _settle(self, partition: int, watched: _Watched) -> None:
        """Forget the triggers that were answered. One whose answer does not count stays, and is sent again later."""
        closed, watched.closed = watched.closed, set()
        if not closed:
            return
        asked = [(watched.sent[id_].message.space, id_) for id_ in closed if id_ in watched.sent]
        try:
            still_due = await self._router.of_partition(partition, partial(due.still_due, asked=asked))
        except BaseException:
            watched.closed |= closed
            raise
        for id_ in closed - still_due:
            watched.sent.pop(id_, None)

    async def _publish_work(self, partition: int, watched: _Watched) -> None:
        """Publish the triggers that one event each made due, from the cursor on."""
        while watched.more and len(watched.sent) < SENT_MAX:
            watched.more = False  # a commit meanwhile sets it again
            try:
                page = await self._router.of_partition(partition, partial(due.work, after=watched.cursor))
                await self._publish(watched, [row for _, row in page.items])
            except BaseException:
                watched.more = True
                raise
            if page.items:
                watched.cursor = page.items[-1][0]
            watched.more |= not page.last

    async def _publish_recurring(self, partition: int, watched: _Watched, spaces: Sequence[str] | None) -> None:
        """Publish the plans and reflections that are due in some spaces, or in all."""
        for query in (due.scheduled, due.due_reflections):
            found: Sequence[Scheduled | PendingTrigger] = await self._router.of_partition(
                partition, partial(query, spaces=spaces)
            )
            await self._publish(watched, found)

    async def _publish(self, watched: _Watched, found: Iterable[Work | Scheduled | PendingTrigger]) -> None:
        messages = [Doorbell(row.space, row.agent, row.trigger) for row in found if row.trigger not in watched.sent]
        if not messages:
            return
        again_at = self._now() + AGAIN_SECONDS
        # Noted before they are sent: the answer may be committed before the broker has acknowledged the message.
        watched.sent |= {message.trigger: _Sent(message, again_at) for message in messages}
        try:
            await self._topic.send(messages)
        except BaseException:
            for message in messages:
                watched.sent.pop(message.trigger, None)
            raise
        self._published(len(messages), False)

    async def _repeat(self, partition: int, watched: _Watched) -> None:
        """Send again what has stayed unanswered for a while, if the views still show it as due."""
        now = self._now()
        late = [sent for sent in watched.sent.values() if sent.again_at <= now][:REPEATS_MAX]
        if not late:
            return
        asked = [(sent.message.space, sent.message.trigger) for sent in late]
        still_due = await self._router.of_partition(partition, partial(due.still_due, asked=asked))
        again = [sent for sent in late if sent.message.trigger in still_due]
        for sent in late:
            if sent.message.trigger not in still_due:
                watched.sent.pop(sent.message.trigger, None)
        if again:
            await self._topic.send([sent.message for sent in again])
            self._published(len(again), True)
        for sent in again:
            sent.pause_seconds = min(2 * sent.pause_seconds, AGAIN_SECONDS_MAX)
            sent.again_at = now + sent.pause_seconds

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
