"""The extractive reflector, and the checks and retries that apply to every reflector."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from recallog.models.beliefs.extractive import QUOTE_CHARS_MAX, Extractive
from recallog.models.beliefs.reflector import (
    Evidence,
    ReflectionAnswer,
    ReflectionRequest,
    Reflector,
    ask,
    check_answer,
    cut,
)
from recallog_schemas import limits
from recallog_schemas.errors import ModelFailed, ModelMisconfigured, StorageUnavailable
from recallog_schemas.models.beliefs import limits as beliefs_limits
from support.events import run

pytestmark = pytest.mark.models("beliefs")


def seen(id_: str, text: str, *, importance: float = 0.5, **fields: Any) -> Evidence:
    fields = {"turn": 1, "agent": "baker", "kind": "agent.spoke"} | fields
    return Evidence(id=id_, text=text, importance=importance, **fields)


def question(*evidence: Evidence) -> ReflectionRequest:
    return ReflectionRequest("trigger", "village", "baker", None, None, (), evidence)


def reflection(*evidence: Evidence) -> ReflectionAnswer:
    return run(ask(Extractive(), question(*evidence)))


class Scripted(Reflector):
    """A custom reflector with a script of answers and exceptions."""

    def __init__(self, *turns: Any) -> None:
        self.turns = list(turns)

    async def reflect(self, question: ReflectionRequest) -> ReflectionAnswer:
        turn = self.turns.pop(0)
        if isinstance(turn, BaseException):
            raise turn
        return turn  # type: ignore[no-any-return]

    async def close(self) -> None:
        pass


def outcome_of(reflector: Reflector, **settings: Any) -> tuple[ReflectionAnswer | BaseException, list[float]]:
    """The outcome of a request about one event, and the waits between the attempts."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def outcome() -> ReflectionAnswer | BaseException:
        try:
            return await ask(reflector, question(seen("e1", "Bread!")), sleep=sleep, **settings)
        except BaseException as error:  # noqa: BLE001 - the exception is the outcome
            return error

    return run(outcome()), waits


RIGHT = ReflectionAnswer("I sell bread.", ("e1",))


# The extractive reflector.


def test_it_quotes_the_most_important_events_oldest_first_with_their_agents() -> None:
    answer = reflection(
        seen("e1", "The cupboard was locked.", importance=0.7, turn=12, kind="world.observed", agent="world"),
        seen("e2", "Fresh bread!", turn=13),
        seen("e3", "I owe the miller three coins.", importance=0.8, turn=14, kind="clue.found"),
        seen("e4", "Rain again.", importance=0.4, turn=15, kind="agent.thought"),
        seen("e5", "Pay by Friday,\nor else.", turn=16, agent="miller"),
    )
    assert answer == ReflectionAnswer(
        "What is notable in the last 5 things I know: "
        '"The cupboard was locked." (world, world.observed, turn 12); '
        '"I owe the miller three coins." (clue.found, turn 14); '
        '"Pay by Friday, or else." (miller, agent.spoke, turn 16).',
        ("e1", "e3", "e5"),
        ("world", "miller"),
    )


def test_of_equally_important_events_it_quotes_those_that_say_most() -> None:
    said = (
        "Hello!",
        "My sister bought a grey horse.",
        "Wow.",
        "She rides it to the market.",
        "A red mill burned.",
        "Bye.",
    )
    assert reflection(*(seen(f"e{number}", text) for number, text in enumerate(said))).based_on == ("e1", "e3", "e4")


def test_a_quote_has_the_date_of_its_event_if_it_is_given() -> None:
    answer = reflection(seen("e1", "Bread!", date="2023-05-08"), seen("e2", "Rain.", agent="miller", date="2023-05-10"))
    assert answer.belief == (
        'What is notable in the last 2 things I know: "Bread!" (agent.spoke, turn 1, 2023-05-08); '
        '"Rain." (miller, agent.spoke, turn 1, 2023-05-10).'
    )


def test_one_event_is_described_in_the_singular() -> None:
    assert reflection(seen("e1", "Bread!")).belief == (
        'What is notable in the last thing I know: "Bread!" (agent.spoke, turn 1).'
    )


def test_a_repeated_text_is_quoted_once_from_its_last_event() -> None:
    answer = reflection(seen("e1", "Bread!"), seen("e2", "Rain.", importance=0.4), seen("e3", " Bread! ", turn=3))
    assert answer.based_on == ("e2", "e3")


def test_earlier_beliefs_are_not_quoted_beside_other_events() -> None:
    answer = reflection(
        seen("e1", "I am a good baker.", importance=0.85, kind="agent.reflected"), seen("e2", "The bread burned.")
    )
    assert answer.based_on == ("e2",)


def test_beliefs_are_quoted_if_there_are_no_other_events() -> None:
    answer = reflection(seen("e1", "The mill is safe.", kind="agent.reflected", agent="miller"), seen("e2", ""))
    assert answer.based_on == ("e1",)
    assert '"The mill is safe." (miller, agent.reflected, turn 1)' in answer.belief


def test_without_any_text_the_belief_states_it_and_cites_the_newest_events() -> None:
    answer = reflection(*(seen(f"e{n}", " \t\n") for n in range(5)))
    assert answer == ReflectionAnswer("Nothing of the last 5 things I know can be put into words.", ("e2", "e3", "e4"))


def test_the_same_request_has_the_same_answer() -> None:
    evidence = [seen(f"e{n}", f"Thing {n}", importance=n % 3 / 10) for n in range(20)]
    assert reflection(*evidence) == reflection(*evidence)


def test_a_quote_is_cut_at_a_word() -> None:
    belief = reflection(seen("e1", "loaves and " * 100)).belief
    quote = belief.split('"')[1]
    assert len(quote) <= QUOTE_CHARS_MAX
    assert quote.endswith(("loaves…", "and…"))


@pytest.mark.parametrize("text", ["word " * 50_000, "語" * 50_000, '"' * 50_000])
def test_a_belief_is_bounded_whatever_its_evidence_is(text: str) -> None:
    name, kind = "a" * limits.NAME_CHARS_MAX, "k" * limits.KIND_CHARS_MAX
    evidence = [seen(f"e{n}", f"{n}{text}", agent=name, kind=kind, turn=limits.TURN_MAX) for n in range(20)]
    belief = reflection(*evidence).belief
    assert len(belief) < beliefs_limits.BELIEF_CHARS_MAX
    assert belief.endswith(").")


def test_beliefs_about_beliefs_stay_bounded() -> None:
    beliefs = ["The mill burned down. " * 10] * 3
    for generation in range(10):
        answer = reflection(*(seen(f"e{n}", f"{n} {text}", kind="agent.reflected") for n, text in enumerate(beliefs)))
        beliefs = [*beliefs[1:], answer.belief]
        assert len(answer.belief) < 4 * QUOTE_CHARS_MAX, generation


# Checks of every answer.


def checked_answer(belief: str, *based_on: str, evidence: Sequence[str] = ("e1", "e2", "e3")) -> ReflectionAnswer:
    return check_answer(ReflectionAnswer(belief, based_on), question(*(seen(id_, "Bread!") for id_ in evidence)))


def test_a_belief_is_one_line_without_control_characters() -> None:
    answer = checked_answer("  Pay\r\n\tthe \x00 mil\x1b\x07ler\u2028on\x85Friday.\x9f ", "e1")
    assert answer.belief == "Pay the miller on Friday."


def test_half_a_surrogate_pair_is_replaced() -> None:
    belief = checked_answer("Bread \ud83d and 🍞", "e1").belief
    assert belief.encode() == "Bread ? and 🍞".encode()


def test_a_belief_that_is_too_long_is_cut_at_a_word() -> None:
    belief = checked_answer("bread " * 1_000, "e1").belief
    assert beliefs_limits.BELIEF_CHARS_MAX - len("bread ") <= len(belief) <= beliefs_limits.BELIEF_CHARS_MAX
    assert belief.endswith("bread…")


def test_a_belief_of_the_maximum_length_is_not_cut() -> None:
    assert checked_answer("b" * beliefs_limits.BELIEF_CHARS_MAX, "e1").belief == "b" * beliefs_limits.BELIEF_CHARS_MAX


def test_text_without_blanks_is_cut_at_the_limit() -> None:
    assert cut("a bcdefghijkl", 8) == "a bcdef…"
    assert cut("abcd efghijkl", 8) == "abcd…"


def test_an_answer_cites_only_offered_events_once_and_in_their_order() -> None:
    assert checked_answer("Yes.", "e3", "e9", "e1", "e3", "").based_on == ("e1", "e3")


@pytest.mark.parametrize("belief", ["", " \n\t", "\x00\x1b"])
def test_an_answer_without_a_belief_is_invalid(belief: str) -> None:
    with pytest.raises(ModelFailed, match="contains no belief") as failed:
        checked_answer(belief, "e1")
    assert failed.value.retryable


@pytest.mark.parametrize("based_on", [(), ("e9",), ("E1", " e1")])
def test_a_belief_without_valid_evidence_is_invalid(based_on: tuple[str, ...]) -> None:
    with pytest.raises(ModelFailed, match="names none of the events") as failed:
        checked_answer("Yes.", *based_on)
    assert failed.value.retryable


# Retries.


def test_a_transient_failure_is_retried_with_growing_waits() -> None:
    busy = ModelFailed("busy", retryable=True)
    assert outcome_of(Scripted(busy, busy, busy, RIGHT), attempts=4) == (RIGHT, [0.5, 1.0, 2.0])


def test_the_last_failure_is_raised_when_the_attempts_are_used_up() -> None:
    failures = [ModelFailed(str(n), retryable=True) for n in range(3)]
    assert outcome_of(Scripted(*failures)) == (failures[2], [0.5, 1.0])


def test_an_invalid_answer_is_retried() -> None:
    assert outcome_of(Scripted(ReflectionAnswer("", ("e1",)), ReflectionAnswer("Yes.", ()), RIGHT)) == (
        RIGHT,
        [0.5, 1.0],
    )


def test_a_permanent_failure_is_raised_at_once() -> None:
    refused = ModelFailed("too long", retryable=False)
    assert outcome_of(Scripted(refused, RIGHT)) == (refused, [])


@pytest.mark.parametrize(("asked_seconds", "waited"), [(7.0, 7.0), (0.0, 0.5), (-1.0, 0.5), (3600.0, 60.0)])
def test_it_waits_for_the_requested_time_within_bounds(asked_seconds: float, waited: float) -> None:
    busy = ModelFailed("busy", retryable=True, retry_after_seconds=asked_seconds)
    assert outcome_of(Scripted(busy, RIGHT)) == (RIGHT, [waited])


@pytest.mark.parametrize("error", [ModelMisconfigured("no key"), StorageUnavailable("locked")])
def test_errors_that_do_not_concern_the_request_are_raised_at_once(error: Exception) -> None:
    assert outcome_of(Scripted(error, RIGHT)) == (error, [])


def test_an_exception_of_a_custom_reflector_is_a_transient_failure() -> None:
    failed, waits = outcome_of(Scripted(*[ValueError("no\nsuch \ud800 thing" + "!" * 10_000)] * 3))
    assert isinstance(failed, ModelFailed)
    assert failed.reason.startswith("ValueError: no such ? thing!!!")
    assert len(failed.reason) <= limits.ASKED_REASON_CHARS_MAX
    assert isinstance(failed.__cause__, ValueError)
    assert len(waits) == 2


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


@pytest.mark.parametrize("error", [TimeoutError(), Mute()])
def test_an_exception_without_a_message_is_named_by_its_type(error: Exception) -> None:
    failed, _ = outcome_of(Scripted(error), attempts=1)
    assert isinstance(failed, ModelFailed)
    assert failed.reason == f"{type(error).__name__}: no message"


@pytest.mark.parametrize(
    "answer", [None, "I sell bread.", ReflectionAnswer(None, ("e1",)), ReflectionAnswer("Yes.", None)]
)  # type: ignore[arg-type]
def test_an_answer_of_the_wrong_type_is_a_failure(answer: Any) -> None:
    failed, _ = outcome_of(Scripted(answer), attempts=1)
    assert isinstance(failed, ModelFailed)
    assert failed.retryable


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
def test_an_interrupt_is_not_caught(error: BaseException) -> None:
    assert outcome_of(Scripted(error, RIGHT)) == (error, [])


def test_a_cancellation_is_not_caught() -> None:
    class Slow(Scripted):
        async def reflect(self, question: ReflectionRequest) -> ReflectionAnswer:
            started.set()
            await asyncio.Event().wait()
            raise AssertionError

    started = asyncio.Event()

    async def cancelled() -> bool:
        task = asyncio.create_task(ask(Slow(), question(seen("e1", "Bread!"))))
        await started.wait()
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert run(cancelled())
