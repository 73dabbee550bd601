"""The handler of agents: what becomes of a message, of errors, and of repeats."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from recallog.reactors.reactor import DueTrigger, Reactor
from recallog_schemas import Position, limits, triggers
from recallog_schemas.errors import (
    LedgerMismatch,
    ModelMisconfigured,
    Rebuilding,
    RecallogError,
    StorageCorrupt,
    StorageUnavailable,
    ViewsTooNew,
)
from recallog_schemas.models.beliefs.triggers import REFLECTION
from recallog_schemas.models.facts.triggers import EXTRACTION
from recallog_schemas.models.long_term.triggers import RETRACTION
from recallog_schemas.views import Reaction
from recallog_service.reacting import handler as handlers
from recallog_service.reacting.handler import (
    ANSWERED,
    FAILED,
    LEFT,
    OTHER_KIND,
    POSTPONED,
    REPEATED,
    REST_SECONDS,
    SHOWN_SECONDS,
    TRIES,
    Handler,
)
from recallog_service.reacting.publisher import AGAIN_SECONDS
from recallog_streams.ledgers.kafka.doorbells import decode
from recallog_streams.ledgers.trigger_queue import Doorbell
from recallog_streams.stop_signal import StopSignal
from support.events import event
from support.virtual_time import run_in_virtual_time

pytestmark = pytest.mark.models("beliefs", "facts")

TRIGGER = triggers.caused_by(RETRACTION, "village", "baker", "e-1")
OTHER = triggers.caused_by(EXTRACTION, "village", "baker", "e-1")


def message(trigger: triggers.Trigger = TRIGGER, agent: str = "baker") -> Doorbell:
    return Doorbell("village", agent, trigger.id)


def reaction(kind: str) -> Reaction:
    closing = event(kind, id=TRIGGER.answer_id, causation_id=TRIGGER.id, payload=payload_of(kind))
    found = Reaction.of(closing, Position(0, 7))
    assert found is not None
    return found


def payload_of(kind: str) -> dict[str, object]:
    more: dict[str, object] = {"events": 1} if kind == triggers.DONE else {"reason": "no"}
    return {"trigger": TRIGGER.id, **more}


class Named(Reactor):
    """A reactor of one kind."""

    def __init__(self, kind: str, *, pure: bool) -> None:
        self.kinds, self.pure = frozenset({kind}), pure  # type: ignore[misc]

    async def answer(self, trigger: DueTrigger) -> None:
        raise AssertionError("the memory asks it")


class Answering:
    """A memory whose answers are scripted."""

    def __init__(
        self, *answers: Reaction | Exception | None, seconds: float = 0.0, pure: tuple[str, ...] = (TRIGGER.kind,)
    ) -> None:
        self.answers = list(answers)
        self.seconds = seconds
        self.asked: list[str] = []
        self.now = self.most = 0
        kinds = (TRIGGER.kind, OTHER.kind, REFLECTION)
        self.reactors = {kind: Named(kind, pure=kind in pure) for kind in kinds}

    def reactor_of(self, kind: str) -> Reactor | None:
        return self.reactors.get(kind)

    async def answer_due(self, space: str, agent: str, trigger: str) -> Reaction | None:
        assert space == "village"
        self.asked.append(trigger)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.seconds)
        self.now -= 1
        if isinstance(answer, Exception):
            raise answer
        return answer


Work = Callable[[Handler], Awaitable[None]]


def handled(memory: Answering, work: Work) -> list[str]:
    """The outcomes that `work` brings about."""
    outcomes: list[str] = []

    async def run() -> None:
        handler = Handler(memory, StopSignal(), lambda kind, outcome, seconds: outcomes.append(outcome))
        await work(handler)
        await handler.wait_until_settled()

    run_in_virtual_time(run())
    return outcomes


async def one(handler: Handler) -> None:
    handler.handle(message())
    await handler.wait_until_settled()


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [(reaction(triggers.DONE), ANSWERED), (reaction(triggers.FAILED), FAILED), (None, LEFT)],
)
def test_the_outcome_is_that_of_the_answer(answer: Reaction | None, outcome: str) -> None:
    assert handled(Answering(answer), one) == [outcome]


def test_a_kind_that_no_reactor_answers_is_not_observed_by_its_name() -> None:
    """A message may name any text, and each kind that is observed is a label of metrics for ever."""
    observed: set[tuple[str, str]] = set()
    memory = Answering(None)

    async def run() -> None:
        handler = Handler(memory, StopSignal(), lambda kind, outcome, seconds: observed.add((kind, outcome)))
        for letter in "abcdefgh":
            handler.handle(message(triggers.caused_by(f"unknown_{letter}.due", "village", "baker", "e-1")))

    run_in_virtual_time(run())
    assert (observed, memory.asked) == ({(OTHER_KIND, LEFT)}, [])


def test_a_trigger_that_is_being_answered_is_not_answered_again() -> None:
    async def twice(handler: Handler) -> None:
        for _ in range(3):
            handler.handle(message())
        await handler.wait_until_settled()
        assert handler.answering == 0
        handler.handle(message())

    memory = Answering(reaction(triggers.DONE), seconds=1.0)
    assert sorted(handled(memory, twice)) == sorted([REPEATED, REPEATED, ANSWERED, ANSWERED])
    assert len(memory.asked) == 2


def test_a_service_that_is_away_is_tried_again_and_then_the_trigger_waits_for_its_repeat() -> None:
    async def reported(handler: Handler) -> None:
        await one(handler)
        assert handler.problems == ["retraction.due: Redis is away"]
        await one(handler)
        assert handler.problems == []

    away = StorageUnavailable("Redis is away")
    memory = Answering(*[away] * (TRIES + 2), reaction(triggers.DONE))
    assert handled(memory, reported) == [POSTPONED, ANSWERED]
    assert len(memory.asked) == TRIES + 3


@pytest.mark.parametrize("error", [StorageCorrupt("damaged"), RuntimeError("a defect")])
def test_an_error_that_a_repeat_does_not_help_ends_no_agent(error: RecallogError) -> None:
    memory = Answering(error, reaction(triggers.DONE))

    async def work(handler: Handler) -> None:
        await one(handler)
        assert len(handler.problems) == 1
        await one(handler)

    assert handled(memory, work) == [POSTPONED, ANSWERED]
    assert len(memory.asked) == 2


@pytest.mark.parametrize("error", [ViewsTooNew("newer"), Rebuilding("an older version has built the views")])
def test_triggers_in_views_of_another_version_are_left_to_its_workers_and_are_no_problem(error: RecallogError) -> None:
    memory = Answering(error, reaction(triggers.DONE))

    async def work(handler: Handler) -> None:
        await one(handler)
        assert handler.problems == []
        await one(handler)

    assert handled(memory, work) == [POSTPONED, ANSWERED]
    assert len(memory.asked) == 2


def test_a_problem_with_a_trigger_that_another_process_answers_is_shown_no_longer() -> None:
    async def work(handler: Handler) -> None:
        await one(handler)
        await asyncio.sleep(AGAIN_SECONDS)
        assert len(handler.problems) == 1
        await asyncio.sleep(SHOWN_SECONDS - AGAIN_SECONDS)
        assert handler.problems == []

    assert handled(Answering(StorageUnavailable("Redis is away")), work) == [POSTPONED]


def test_another_ledger_in_the_place_of_its_own_is_noticed() -> None:
    async def work(handler: Handler) -> None:
        await one(handler)
        assert handler.replaced == "another topic"

    assert handled(Answering(LedgerMismatch("another topic")), work) == [POSTPONED]


def test_a_misconfigured_model_rests_its_kind_alone() -> None:
    memory = Answering(ModelMisconfigured("no such model"), reaction(triggers.DONE))

    async def work(handler: Handler) -> None:
        await one(handler)
        await one(handler)
        handler.handle(message(OTHER))
        await handler.wait_until_settled()
        assert handler.problems == ["retraction.due: no such model"]
        await asyncio.sleep(REST_SECONDS + 1)
        await one(handler)
        assert handler.problems == []

    assert handled(memory, work) == [POSTPONED, POSTPONED, ANSWERED, ANSWERED]
    assert memory.asked == [TRIGGER.id, OTHER.id, TRIGGER.id]


@pytest.mark.parametrize("named", [None, Doorbell("a", "b", "no trigger")], ids=["null", "id"])
def test_what_names_no_trigger_is_skipped(named: Doorbell | None) -> None:
    memory = Answering(reaction(triggers.DONE))

    async def work(handler: Handler) -> None:
        handler.handle(named)

    assert handled(memory, work) == []
    assert memory.asked == []


NESTED = b'{"more": %b%b}' % (b"[" * 100_000, b"]" * 100_000)


@pytest.mark.parametrize(
    "data", [None, b"", b"\xff", b"[]", b"{}", NESTED], ids=["null", "", "bytes", "[]", "{}", "deep"]
)
def test_what_is_no_message_is_not_decoded(data: bytes | None) -> None:
    assert decode(data) is None


def test_a_reactor_that_takes_time_delays_neither_others_nor_messages_behind_its_own() -> None:
    memory = Answering(reaction(triggers.DONE), seconds=100.0)

    async def work(handler: Handler) -> None:
        began = asyncio.get_running_loop().time()
        for number in range(30):
            slow = triggers.caused_by(EXTRACTION, "village", f"agent-{number}", "e-1")
            handler.handle(message(slow, f"agent-{number}"))
        assert asyncio.get_running_loop().time() == began
        await asyncio.sleep(1.0)
        memory.seconds = 1.0
        handler.handle(message())
        await asyncio.sleep(0.5)
        assert handler.answering == limits.REACTIONS_AT_ONCE + 1
        await asyncio.sleep(1.0)
        assert memory.asked[-1] == TRIGGER.id
        assert handler.answering == limits.REACTIONS_AT_ONCE

    assert handled(memory, work) == [ANSWERED] * 31
    assert memory.most == limits.REACTIONS_AT_ONCE + 1


def test_a_kind_with_many_triggers_that_follow_a_rule_does_not_hold_up_another_one() -> None:
    rules = (TRIGGER.kind, OTHER.kind)
    memory = Answering(reaction(triggers.DONE), seconds=1.0, pure=rules)

    async def work(handler: Handler) -> None:
        for number in range(1_000):
            handler.handle(message(triggers.caused_by(TRIGGER.kind, "village", "baker", f"e-{number}")))
        handler.handle(message(OTHER))
        await asyncio.sleep(3.0)
        assert OTHER.id in memory.asked

    assert handled(memory, work) == [ANSWERED] * 1_001
    assert memory.most == limits.LOCAL_REACTIONS_AT_ONCE


def test_triggers_of_one_agent_that_follow_a_rule_are_answered_side_by_side() -> None:
    memory = Answering(reaction(triggers.DONE), seconds=1.0)

    async def work(handler: Handler) -> None:
        for number in range(4):
            handler.handle(message(triggers.caused_by(TRIGGER.kind, "village", "baker", f"e-{number}")))

    handled(memory, work)
    assert memory.most == 4


def test_a_message_that_repeats_a_waiting_trigger_costs_nothing() -> None:
    memory = Answering(reaction(triggers.DONE), seconds=1.0)

    async def work(handler: Handler) -> None:
        for _ in range(3):
            for number in range(100):
                handler.handle(message(triggers.caused_by(TRIGGER.kind, "village", "baker", f"e-{number}")))

    assert sorted(handled(memory, work)) == [ANSWERED] * 100 + [REPEATED] * 200
    assert len(memory.asked) == 100


def test_more_triggers_than_may_wait_are_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "WAITING_MAX", 3)

    async def work(handler: Handler) -> None:
        for number in range(5):
            slow = triggers.caused_by(EXTRACTION, "village", "baker", f"e-{number}")
            handler.handle(message(slow))
            handler.handle(message(slow))

    outcomes = handled(Answering(reaction(triggers.DONE), seconds=1.0), work)
    assert outcomes == [REPEATED] * 3 + [POSTPONED] * 4 + [ANSWERED] * 3


def test_a_handler_that_is_closed_leaves_nothing_behind() -> None:
    async def work(handler: Handler) -> None:
        before = asyncio.all_tasks()
        handler.handle(message(OTHER))
        await asyncio.sleep(1)
        assert handler.answering == 1
        await handler.close()
        assert asyncio.all_tasks() == before

    async def run() -> None:
        await work(Handler(Answering(reaction(triggers.DONE), seconds=100.0), StopSignal(), lambda *_: None))

    run_in_virtual_time(run())


def test_what_ends_the_lanes_is_shown_so_that_the_agents_begin_anew() -> None:
    class Cancelled(Answering):
        async def answer_due(self, space: str, agent: str, trigger: str) -> Reaction | None:
            raise asyncio.CancelledError

    async def run() -> None:
        handler = Handler(Cancelled(None), StopSignal(), lambda *_: None)
        assert handler.failure == ""
        handler.handle(message(OTHER))
        await asyncio.sleep(1)
        assert handler.failure == "CancelledError()"

    run_in_virtual_time(run())
