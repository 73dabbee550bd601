"""A prompt on a budget, for random memories, settings and budgets."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog.models.prompt import queries as context
from recallog.models.prompt.queries import ContextRequest
from recallog_schemas import Event, codec
from recallog_schemas.errors import InvalidArgument
from recallog_schemas.models.prompt.views import ContextView
from recallog_schemas.shortening import MARK
from recallog_schemas.token_estimate import estimate_tokens
from support.events import MOMENT, event
from support.folding import about, finish, folded, ledger_at, reading_of

pytestmark = pytest.mark.models("prompt")

WORDS = ("a", "mill", "bread", "the-longest-word-of-the-village", "ß", "面包", "x" * 90)
TEXTS = st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join) | st.sampled_from(("", "面" * 700, "y " * 2_000))
GIVEN = st.none() | TEXTS
KINDS = (
    "agent.spoke",
    "agent.thought",
    "world.observed",
    "user.injected",
    "agent.reflected",
    "tool.used",
    "run.started",
)


@st.composite
def events(draw: st.DrawFn) -> Event:
    kind, text = draw(st.sampled_from(KINDS)), draw(TEXTS)
    payload: dict[str, Any] = {"text": text}
    if kind == "tool.used":
        payload = {"tool": "oven", "result": text}
    elif kind == "run.started":
        payload = {"goal": text}
    agent = draw(st.sampled_from(("baker", "baker", "visitor", "n" * 128)))
    at = draw(st.sampled_from((MOMENT, "2025-01-01T00:00:00Z", "2000-01-01T00:00:07Z")))
    return codec.make({"space": "village", "agent": agent, "kind": kind, "payload": payload, "at": at, "turn": 7})


CONFIGURED = st.fixed_dictionaries(
    {},
    optional={
        "window": st.integers(1, 40),
        "use_salience": st.booleans(),
        "salience_top_k": st.integers(1, 40),
        "reflection_threshold": st.integers(1, 8),
        "persona": TEXTS,
        "goal": TEXTS,
        "dates": st.sampled_from(("always", "never", "automatic")),
        "rag": st.fixed_dictionaries({}, optional={"enabled": st.booleans(), "limit": st.integers(1, 20)}),
    },
).map(lambda payload: event("agent.configured", payload=payload))
COMPONENTS = st.lists(st.tuples(st.sampled_from(("PRICES", "RULES")), TEXTS), max_size=2)
REQUESTS = st.builds(
    ContextRequest, scene=GIVEN, extra=GIVEN, output_format=GIVEN, step=GIVEN, components=COMPONENTS, query=GIVEN
)
BUDGETS = st.integers(1, 3_000) | st.integers(1, 300)


class Prompts:
    """The prompts of one agent of one ledger, on any budget."""

    def __init__(self, ledger: Sequence[Event], request: ContextRequest) -> None:
        self._reading = reading_of(*folded(ledger_at([codec.encode(each) for each in ledger])))
        self._request = request
        self.whole = self.on(None)

    def on(self, budget_tokens: int | None) -> ContextView:
        request = replace(self._request, budget_tokens=budget_tokens)
        answer = context.context(about(self._reading, "village", "baker"), request)
        return finish(answer)

    def on_or_refused(self, budget_tokens: int) -> ContextView | InvalidArgument:
        try:
            return self.on(budget_tokens)
        except InvalidArgument as refused:
            return refused


LEDGERS = st.tuples(CONFIGURED, st.lists(events(), max_size=40)).map(lambda both: [both[0], *both[1]])
PROMPTS = st.builds(Prompts, LEDGERS, REQUESTS)


@settings(max_examples=150, deadline=None)
@given(PROMPTS, st.lists(BUDGETS, min_size=3, max_size=6))
def test_a_prompt_never_exceeds_its_budget_or_says_the_least_one(prompts: Prompts, budgets: list[int]) -> None:
    for budget in budgets:
        prompt = prompts.on_or_refused(budget)
        if isinstance(prompt, InvalidArgument):
            (least,) = re.findall(r"at least ([\d,]+),", str(prompt))
            least_tokens = int(least.replace(",", ""))
            assert prompt.path == "budget_tokens"
            assert budget < least_tokens == prompts.on(least_tokens).tokens
        else:
            assert estimate_tokens(prompt.text) == prompt.tokens <= budget


@settings(max_examples=60, deadline=None)
@given(PROMPTS, st.integers(0, 100))
def test_with_a_budget_in_which_all_fits_nothing_gives_way(prompts: Prompts, more: int) -> None:
    whole = prompts.whole
    prompt = prompts.on(whole.tokens + more)
    assert (prompt.text, prompt.dropped, prompt.shortened) == (whole.text, 0, 0)
    if whole.tokens > 1:
        less = prompts.on_or_refused(whole.tokens - 1)
        assert isinstance(less, InvalidArgument) or less.dropped + less.shortened > 0


@settings(max_examples=100, deadline=None)
@given(PROMPTS, BUDGETS)
def test_what_is_left_are_lines_of_the_whole_prompt_or_cut_at_a_word_with_the_mark(
    prompts: Prompts, budget: int
) -> None:
    prompt = prompts.on_or_refused(budget)
    if isinstance(prompt, InvalidArgument):
        return
    whole = prompts.whole.text.split("\n")
    for line in prompt.text.split("\n"):
        assert line in whole or is_cut(line, whole) or any(each.startswith(f"{line} [turn ") for each in whole)


def is_cut(line: str, whole: Sequence[str]) -> bool:
    """Whether `line` is the beginning of a line of `whole`, up to the end of a word or half a line without blanks."""
    if not line.endswith(MARK):
        return False
    begin = line.removesuffix(MARK)
    ends = [each[len(begin) :] for each in whole if each.startswith(begin)]
    return any(rest.startswith(" ") or " " not in begin[-len(begin) // 3 :] for rest in ends)


@settings(max_examples=100, deadline=None)
@given(LEDGERS, events(), REQUESTS, BUDGETS)
def test_the_beginning_of_the_newest_message_is_always_shown(
    ledger: list[Event], other: Event, request: ContextRequest, budget: int
) -> None:
    message = event(
        "user.injected", agent="guest", payload={"text": f"Who burned the mill, and {other.text or 'when'}?"}
    )
    prompts = Prompts([*ledger, message], request)
    assert "[guest] Who burned the mill, and" in prompts.whole.text
    prompt = prompts.on_or_refused(budget)
    if isinstance(prompt, InvalidArgument):
        return
    assert "[guest] Who burned the mill, and" in prompt.text
