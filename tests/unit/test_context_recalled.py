"""RECALLED without an index, as the setting `rag` says, and the sections that a caller adds to a prompt."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from recallog import Event
from recallog.views import ContextView
from recallog_schemas import codec
from recallog_schemas.errors import InvalidArgument, InvalidEvent
from support.events import after, event
from unit.test_context import configured, context, event_of, sections

pytestmark = pytest.mark.models("prompt")


def retained(number: int, text: str, **payload: Any) -> Event:
    return event("memory.retained", id=f"m-{number}", turn=number, payload={"text": text, **payload})


def recalled(home: Path, events: Sequence[Event], **wanted: Any) -> list[str]:
    """The lines of RECALLED."""
    return sections(context(home, events, **wanted)).get("RECALLED", [])


QUALITIES = ("good", "dear", "old", "wet", "dry", "red", "new", "sour", "ripe")

RYE = [
    configured(window=1),
    retained(1, "The miller pays for rye in May.", type="lesson", priority="critical"),
    retained(2, "Rye keeps longer than wheat."),
    event_of(3, "agent.spoke", "No rye today.", session="s-3"),
    *(
        event_of(number, "agent.spoke", f"Good morning, number {number}.", session=f"s-{number}")
        for number in range(4, 14)
    ),
]


def test_entries_and_events_beyond_the_window_are_recalled_by_their_words(tmp_path: Path) -> None:
    assert recalled(tmp_path, RYE, query="How is the rye?") == [
        "[turn 001][memory.retained][critical] The miller pays for rye in May.",
        "[turn 002][memory.retained] Rye keeps longer than wheat.",
        "[turn 003][agent.spoke] No rye today.",
    ]


def test_what_shares_no_word_with_the_query_is_not_recalled(tmp_path: Path) -> None:
    assert recalled(tmp_path, RYE, query="harbours of Genoa") == []


def test_without_a_query_the_scene_recalls(tmp_path: Path) -> None:
    scene = event_of(20, "world.observed", "Wheat is short this year.", agent="narrator")
    assert "[turn 002][memory.retained] Rye keeps longer than wheat." in recalled(tmp_path, [*RYE, scene])


def test_an_entry_is_shown_in_its_present_form_until_it_is_erased(tmp_path: Path) -> None:
    corrected = event("memory.updated", payload={"entry": "m-1", "text": "The miller pays for rye in June."})
    pinned = event("memory.updated", payload={"entry": "m-1", "priority": "pinned"})
    first = recalled(tmp_path, [*RYE, corrected, pinned], query="How is the rye?")[0]
    assert first == "[turn 001][memory.retained][pinned] The miller pays for rye in June."
    erased = event("memory.erased", payload={"entries": ["m-1"], "reason": "asked"})
    assert "The miller pays" not in context(tmp_path, [erased], query="How is the rye?").text


def test_another_agent_s_entries_are_not_recalled(tmp_path: Path) -> None:
    assert recalled(tmp_path, RYE, agent="miller", query="How is the rye?") == []


def test_the_past_recalls_what_was_kept_then(tmp_path: Path) -> None:
    assert len(recalled(tmp_path, RYE, query="How is the rye?", as_of="0:1")) == 1


def test_an_entry_is_recalled_however_many_events_are_newer_and_old_events_are_not(tmp_path: Path) -> None:
    """The words of all events that the views keep would take longer than the rest of the prompt."""
    newer = [event_of(number, "agent.spoke", "Good morning.", session=f"s-{number}") for number in range(20, 530)]
    assert [line.split("]")[1] for line in recalled(tmp_path, [*RYE, *newer], query="How is the rye?")] == [
        "[memory.retained",
        "[memory.retained",
    ]


# The setting rag.


@pytest.mark.parametrize(("rag", "shown"), [(None, 7), ({}, 7), ({"limit": 2}, 2), ({"limit": 9}, 9)])
def test_the_section_has_at_most_the_limit_of_the_agent(tmp_path: Path, rag: dict[str, Any] | None, shown: int) -> None:
    notes = [retained(number, f"Rye is {word}.") for number, word in enumerate(QUALITIES)]
    assert len(recalled(tmp_path, [configured(rag=rag), *notes], query="rye?")) == shown


def test_the_section_is_absent_where_it_is_disabled(tmp_path: Path) -> None:
    found = context(tmp_path, [*RYE, configured(rag={"enabled": False})], query="How is the rye?")
    assert "RECALLED" not in sections(found)


def test_a_template_makes_the_query_from_the_last_action(tmp_path: Path) -> None:
    oven = event("tool.used", turn=20, payload={"tool": "oven", "result": "the stone is cracked"})
    entry = retained(21, "A cracked stone ruins the crust.")
    template = configured(rag={"query_template": "{current_state} {last_action}"})
    assert recalled(tmp_path, [*RYE, oven, entry], query="What now?") == []
    assert recalled(tmp_path, [template], query="What now?") == [
        "[turn 021][memory.retained] A cracked stone ruins the crust."
    ]


@pytest.mark.parametrize(
    ("template", "entry"),
    [
        ("tally{balance}", "m-2"),  # 40 were granted
        ("count{event_number}", "m-3"),  # of the events below, with the grant and the setting
        ("role{agent}x", "m-4"),
        ("{current_state}", "m-5"),
    ],
)
def test_a_template_knows_the_balance_the_number_of_events_and_the_agent(
    tmp_path: Path, template: str, entry: str
) -> None:
    notes = ["tally40", "count6", "rolebakerx", "flour"]
    events = [event("memory.metered", payload={"units": 44, "reason": "grant"})]
    events += [retained(number, text) for number, text in enumerate(notes, start=2)]
    events.append(configured(rag={"query_template": template}))
    number = entry.removeprefix("m-")
    assert recalled(tmp_path, events, query="flour") == [f"[turn 00{number}][memory.retained] {notes[int(number) - 2]}"]


def test_an_agent_without_an_account_has_an_empty_balance(tmp_path: Path) -> None:
    events = [retained(1, "tally"), configured(rag={"query_template": "tally{balance}"})]
    assert recalled(tmp_path, events, query="?") == ["[turn 001][memory.retained] tally"]


@pytest.mark.parametrize("template", ["{weather}", "{agent", "agent}", "{}", "{{agent}}", "{agent.name}"])
def test_a_template_with_an_unknown_variable_is_refused(template: str) -> None:
    with pytest.raises(InvalidEvent) as refused:
        codec.make(
            {"space": "village", "agent": "baker", "kind": "agent.configured"}
            | {"payload": {"rag": {"query_template": template}}}
        )
    assert refused.value.path == "payload.rag.query_template"


# Sections of the caller.


def with_sections(home: Path, events: Sequence[Event], **wanted: Any) -> ContextView:
    components = [{"heading": "PRICES", "text": "Flour: 3 crowns.\nRye: 2 crowns."}, "WEATHER: rain"]
    return context(home, events, components=components, step="Answer the miller.", **wanted)


def test_components_and_the_step_stand_around_the_extra_text(tmp_path: Path) -> None:
    prompt = with_sections(
        tmp_path, [event_of(1, "agent.spoke", "Bread!")], extra="It is night.", output_format="A line."
    )
    assert prompt.text.endswith(
        """\
VISITOR
(quiet)

PRICES
Flour: 3 crowns.
Rye: 2 crowns.

WEATHER
rain

It is night.

STEP
Answer the miller.

OUTPUT FORMAT
A line."""
    )


def test_a_component_without_text_is_omitted(tmp_path: Path) -> None:
    prompt = context(tmp_path, [], components=[{"heading": "PRICES", "text": ""}], step="")
    assert prompt.text == context(tmp_path, []).text


def test_a_budget_removes_actions_then_what_was_asked_for_and_never_components_and_the_step(tmp_path: Path) -> None:
    oven = event("tool.used", turn=20, payload={"tool": "oven", "result": "hot"})
    with_sections(tmp_path, [*RYE, oven], query="How is the rye?")
    whole = with_sections(tmp_path, [], query="How is the rye?")
    with pytest.raises(InvalidArgument, match="components, the step") as refused:
        with_sections(tmp_path, [], budget_tokens=1)
    least = int(str(refused.value).split("at least ")[1].split(",")[0])
    left = []
    for budget in range(whole.tokens, least - 1, -1):
        prompt = sections(with_sections(tmp_path, [], query="How is the rye?", budget_tokens=budget))
        assert prompt["PRICES"] == ["Flour: 3 crowns.", "Rye: 2 crowns."]
        assert (prompt["WEATHER"], prompt["STEP"]) == (["rain"], ["Answer the miller."])
        left.append((len(prompt.get("RECALLED", [])), len(prompt.get("ACTION HISTORY", []))))
    assert left == sorted(left, reverse=True)
    assert {(3, 1), (3, 0), (0, 0)} <= set(left)


def test_each_section_keeps_a_line_until_only_the_best_answers_are_left(tmp_path: Path) -> None:
    notes = [retained(number, f"Rye is {word}.") for number, word in enumerate(QUALITIES[:6], 30)]
    oven = event("tool.used", turn=20, payload={"tool": "oven", "result": "hot"})
    baked = event("tool.used", turn=21, payload={"tool": "oven", "result": "baked"})
    events = [configured(window=3), *RYE[3:], *notes, oven, baked]
    whole = context(tmp_path, events, query="How is the rye?")
    left: list[tuple[int, ...]] = []
    for budget in range(whole.tokens, 24, -1):
        found = sections(context(tmp_path, [], query="How is the rye?", budget_tokens=budget))
        left.append(tuple(len(found.get(each, [])) for each in ("RECALLED", "YOUR MEMORY", "ACTION HISTORY")))
    order = list(dict.fromkeys(left))
    assert order.index((6, 1, 1)) < order.index((4, 1, 1)) < order.index((4, 0, 0)) < order.index((3, 0, 0))


def test_what_repeats_the_query_is_not_recalled(tmp_path: Path) -> None:
    asked = event_of(2, "agent.spoke", "how is  the RYE?", session="s-1")
    lines = recalled(tmp_path, [*RYE[:1], asked, *RYE[1:]], query="How is the rye?")
    assert len(lines) == 3
    assert not any("how is" in line for line in lines)


@pytest.mark.parametrize("given", [{"step": "Answer: How is the rye?"}, {"components": ["ASKED: How is the rye?"]}])
@pytest.mark.parametrize("kind", ["agent.spoke", "user.injected"])
def test_a_message_that_the_caller_shows_is_in_the_prompt_once(
    tmp_path: Path, kind: str, given: dict[str, Any]
) -> None:
    asked = event_of(20, kind, "How is the rye?", agent="baker")
    assert context(tmp_path, [*RYE, asked], query="How is the rye?").text.count("How is the rye?") == 1
    prompt = context(tmp_path, [], query="How is the rye?", **given)
    assert prompt.text.count("How is the rye?") == 1
    assert "[turn 013][agent.spoke] Good morning, number 13." in prompt.text


def test_without_a_query_what_is_recalled_is_removed_first(tmp_path: Path) -> None:
    oven = event("tool.used", turn=20, payload={"tool": "oven", "result": "hot"})
    with_sections(tmp_path, [*RYE, oven], scene="How is the rye?")
    whole = with_sections(tmp_path, [], scene="How is the rye?")
    assert {"RECALLED", "ACTION HISTORY"} <= sections(whole).keys()
    prompt = sections(with_sections(tmp_path, [], scene="How is the rye?", budget_tokens=whole.tokens - 1))
    assert len(prompt.get("RECALLED", [])) < len(sections(whole)["RECALLED"])
    assert prompt["ACTION HISTORY"] == sections(whole)["ACTION HISTORY"]


@pytest.mark.parametrize(
    "components",
    ["PRICES: 3", ["no colon"], [{"heading": "A"}], [{"heading": "", "text": "x"}], [{"heading": "A\nB", "text": "x"}],
     [{"heading": "A", "text": "x", "more": 1}], [{"heading": "A", "text": 3}], ["A: x"] * 33, [": x"], None],
)  # fmt: skip
def test_wrong_components_are_refused(tmp_path: Path, components: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        after(tmp_path, [], lambda memory: memory.context("village", "baker", components=components))
    assert refused.value.path.startswith("components")
