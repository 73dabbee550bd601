"""Kinds that a space declares: visibility, importance and text of their events, and their section in prompts.

A declaration holds for later events, so every answer shows an event with the meaning that it had when it was published.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from recallog import Event, Memory, Position
from recallog_projections.index import points
from recallog_projections.index.documents import DOCUMENTS, Document, Index
from recallog_projections.views import builtin
from recallog_projections.views.settings import SPACES
from recallog_schemas import codec, limits
from recallog_schemas.errors import DeadLettered, InvalidEvent
from recallog_schemas.views import KindsView, KindView
from support.cli import recallog
from support.events import after, event
from support.folding import folded, ledger_at, rows_of

if TYPE_CHECKING:
    from recallog_schemas.models.prompt.views import ContextView

ORDERED = {"importance": 0.8, "shared": True, "text": "{customer} ordered {item.name}"}


def declared(declarations: Any = None, **more: Any) -> Event:
    payload = {"kinds": {"order.placed": ORDERED} if declarations is None else declarations, **more}
    return event("space.configured", agent="narrator", payload=payload)


def order(customer: str = "Ada", turn: int = 1, agent: str = "baker", **fields: Any) -> Event:
    payload = {"customer": customer, "item": {"name": "rye bread"}}
    return event("order.placed", agent=agent, turn=turn, **{"payload": payload, **fields})


def texts(home: Path, events: Sequence[Event], agent: str = "miller", **question: Any) -> list[str]:
    view = after(home, events, lambda memory: memory.episodic("village", agent, **question))
    return [memory.text for memory in view.memories]


def test_explicit_defaults_give_the_same_row_before_and_after_it_was_stored() -> None:
    defaults = {"importance": 0.5, "shared": False, "text": None, "role": "memory"}
    projector, generation = folded(ledger_at([codec.encode(declared({"order.placed": defaults}))], unique_ids=True))
    (data,) = rows_of(projector.store, generation, SPACES.name).values()
    assert SPACES.encode(SPACES.decode(data)) == data


# Valid declarations.


@pytest.mark.parametrize(
    ("declarations", "path", "rule"),
    [
        ({"agent.spoke": {}}, "payload.kinds.agent.spoke", "known_kind"),
        ({"agent.spoke": None}, "payload.kinds.agent.spoke", "known_kind"),
        ({"clock.ticked": {"importance": 1}}, "payload.kinds.clock.ticked", "known_kind"),
        ({"Bad.Kind": {}}, "payload.kinds.Bad.Kind", "string_pattern_mismatch"),
        ({"order": {}}, "payload.kinds.order", "string_pattern_mismatch"),
        ({"order.placed": {"importance": 1.1}}, "payload.kinds.order.placed.importance", "less_than_equal"),
        ({"order.placed": {"importance": "high"}}, "payload.kinds.order.placed.importance", "float_type"),
        ({"order.placed": {"shared": 1}}, "payload.kinds.order.placed.shared", "bool_type"),
        ({"order.placed": {"role": "king"}}, "payload.kinds.order.placed.role", "literal_error"),
        ({"order.placed": {"role": "entry"}}, "payload.kinds.order.placed.role", "literal_error"),
        ({"order.placed": {"role": "bookkeeping"}}, "payload.kinds.order.placed.role", "literal_error"),
        ({"order.placed": {"text": "{customer"}}, "payload.kinds.order.placed.text", "text_rule"),
        ({"order.placed": {"text": "{a}" * 167}}, "payload.kinds.order.placed.text", "string_too_long"),
        ({"order.placed": {"importnce": 1}}, "payload.kinds.order.placed.importnce", "extra_forbidden"),
        ({"order.placed": []}, "payload.kinds.order.placed", "model_type"),
        ([], "payload.kinds", "dict_type"),
        ({f"order.n{n}": {} for n in range(65)}, "payload.kinds", "too_long"),
    ],
)
def test_an_invalid_declaration_is_refused_with_its_path(declarations: Any, path: str, rule: str) -> None:
    fields = {"space": "village", "agent": "narrator", "kind": "space.configured", "payload": {"kinds": declarations}}
    with pytest.raises(InvalidEvent) as raised:
        codec.make(fields)
    assert (raised.value.path, raised.value.rule) == (path, rule)


def test_a_declaration_of_more_than_64_kinds_in_a_space_is_a_dead_letter(tmp_path: Path) -> None:
    first, second = ({f"order.{name}{n}": {"shared": True} for n in range(40)} for name in "ab")
    swap = second | dict.fromkeys(sorted(first)[:16])

    async def ask(memory: Memory) -> tuple[str, KindsView]:
        position = await memory.publish(declared(second))
        with pytest.raises(DeadLettered) as raised:
            await memory.episodic("village", "miller", after=position)
        await memory.publish(declared(swap))
        return str(raised.value), await memory.kinds("village")

    said, view = after(tmp_path, [declared(first)], ask)
    assert "the space would declare 80 kinds, the limit is 64" in said
    assert [kind.name for kind in view.kinds if kind.space] == [*sorted(first)[16:], *sorted(second)]


# Visibility, importance and text.


def test_an_undeclared_unknown_kind_is_private_and_has_no_text(tmp_path: Path) -> None:
    assert texts(tmp_path, [order()]) == []
    assert texts(tmp_path, [], agent="baker") == [""]


def test_a_declared_kind_has_the_visibility_importance_and_text_of_its_declaration(tmp_path: Path) -> None:
    view = after(tmp_path, [declared(), order()], lambda memory: memory.salient("village", "miller", "who ordered"))
    (found,) = view.memories
    assert (found.text, found.importance) == ("Ada ordered rye bread", 0.8)
    assert found.relevance == pytest.approx(1 / 5)


def test_a_declaration_without_a_text_leaves_the_text_of_unknown_kinds(tmp_path: Path) -> None:
    said = event("order.placed", payload={"summary": "Rye for Ada."})
    assert texts(tmp_path, [declared({"order.placed": {"shared": True}}), said]) == ["Rye for Ada."]


def test_a_declaration_does_not_affect_other_spaces(tmp_path: Path) -> None:
    elsewhere = order(space="city")
    view = after(tmp_path, [declared(), elsewhere], lambda memory: memory.episodic("city", "baker"))
    assert [memory.text for memory in view.memories] == [""]


def test_an_addressed_event_of_a_shared_kind_stays_with_those_it_is_addressed_to(tmp_path: Path) -> None:
    assert texts(tmp_path, [declared(), order(audience=["smith"])]) == []
    assert texts(tmp_path, [], agent="smith") == ["Ada ordered rye bread"]


@pytest.mark.parametrize("shared_kinds", [[], ["agent.spoke"], ["order.placed"], None])
def test_a_kind_declared_as_shared_is_shared_besides_the_shared_kinds(
    tmp_path: Path, shared_kinds: list[str] | None
) -> None:
    spoken, ordered = event(turn=1), order()
    found = texts(tmp_path, [declared(shared_kinds=shared_kinds), spoken, ordered])
    assert found == ([spoken.text] if shared_kinds == ["agent.spoke"] else []) + ["Ada ordered rye bread"]


def test_a_kind_in_shared_kinds_is_shared_despite_its_declaration(tmp_path: Path) -> None:
    private = {"order.placed": ORDERED | {"shared": False}}
    assert texts(tmp_path, [declared(private, shared_kinds=["order.placed"]), order()]) == ["Ada ordered rye bread"]


# Declarations over time.


def test_a_declaration_applies_to_later_events_and_earlier_private_events_stay_private(tmp_path: Path) -> None:
    events = [order("Ada"), declared(), order("Bea"), declared({"order.placed": {"text": "item.name"}}), order("Cid")]
    assert texts(tmp_path, events) == ["Bea ordered rye bread"]
    assert texts(tmp_path, [], agent="baker") == ["", "Bea ordered rye bread", "rye bread"]
    importances = after(tmp_path, [], lambda memory: memory.salient("village", "baker")).memories
    assert [memory.importance for memory in importances] == [0.5, 0.8, 0.5]


@pytest.mark.parametrize("back", [{"order.placed": None}, {"order.placed": None, "order.paid": {}}])
def test_null_revokes_one_declaration_and_leaves_the_others(tmp_path: Path, back: Any) -> None:
    both = {"order.placed": ORDERED, "shop.opened": {"shared": True}}
    opened = event("shop.opened", payload={"text": "Open!"})
    assert texts(tmp_path, [declared(both), declared(back), order(), opened]) == ["Open!"]


def test_null_instead_of_kinds_revokes_all_declarations(tmp_path: Path) -> None:
    forgotten = event("space.configured", payload={"kinds": None})
    assert texts(tmp_path, [declared(), forgotten, order()]) == []


def test_settings_without_kinds_leave_the_declarations(tmp_path: Path) -> None:
    other = event("space.configured", payload={"scene_kinds": ["order.placed"]})
    assert texts(tmp_path, [declared(), other, order()]) == ["Ada ordered rye bread"]


@pytest.mark.models("prompt")
def test_live_rebuilt_and_past_views_agree_on_declared_kinds(tmp_path: Path) -> None:
    changed = declared({"order.placed": {"shared": True, "text": "{item.name} for {customer}", "role": "visitor"}})
    events = [declared(), order("Ada"), changed, order("Bea"), declared({"order.placed": None}), order("Cid")]

    async def ask(memory: Memory) -> None:
        lines = (await memory.episodic("village", "miller")).format()
        prompt = str(await memory.context("village", "miller"))
        assert lines == (
            "[turn 001][order.placed][baker] Ada ordered rye bread\n[turn 001][order.placed][baker] rye bread for Bea"
        )
        assert (await memory.admin.verify()).clean
        await memory.admin.rebuild()
        assert (await memory.episodic("village", "miller")).format() == lines
        assert str(await memory.context("village", "miller")) == prompt
        then = await memory.episodic("village", "miller", as_of=Position(0, len(events) - 1))
        assert then.format() == lines
        first = await memory.episodic("village", "miller", as_of=Position(0, 2))
        assert first.format() == lines.splitlines()[0]

    after(tmp_path, events, ask)


# Roles in prompts.


def sections(prompt: "ContextView") -> dict[str, list[str]]:
    return {heading: lines for heading, *lines in (section.split("\n") for section in prompt.text.split("\n\n"))}


@pytest.mark.models("prompt")
@pytest.mark.parametrize("shared", [True, False])
def test_a_kind_with_the_role_action_is_in_the_action_history_of_its_agent(tmp_path: Path, shared: bool) -> None:
    action = {"order.placed": ORDERED | {"shared": shared, "role": "action"}}
    used = event("tool.used", turn=2, payload={"tool": "oven"})

    async def ask(memory: Memory) -> list[dict[str, list[str]]]:
        return [sections(await memory.context("village", agent)) for agent in ("baker", "miller")]

    own, other = after(tmp_path, [declared(action), order(), used], ask)
    line = "[turn 001][order.placed][tool] «Ada ordered rye bread»"
    assert own["ACTION HISTORY"] == [line, "[turn 002][tool.used][tool] «oven»"]
    assert own["YOUR MEMORY"] == ["(no prior memory)"]
    assert "ACTION HISTORY" not in other
    assert other["YOUR MEMORY"] == (
        ["[turn 001][order.placed][baker][tool] «Ada ordered rye bread»"] if shared else ["(no prior memory)"]
    )


@pytest.mark.models("prompt")
@pytest.mark.parametrize("shared", [True, False])
def test_a_kind_with_the_role_visitor_is_in_the_prompts_of_all_who_may_see_the_event(
    tmp_path: Path, shared: bool
) -> None:
    visitor = {"order.placed": ORDERED | {"shared": shared, "role": "visitor"}}
    chatter = [event(turn=turn, agent=agent) for turn in range(2, 20) for agent in ("baker", "miller")]

    async def ask(memory: Memory) -> list[list[str]]:
        return [sections(await memory.context("village", agent))["VISITOR"] for agent in ("baker", "miller")]

    own, other = after(tmp_path, [declared(visitor), order(), *chatter], ask)
    assert own == ["[turn 001][order.placed] Ada ordered rye bread"]
    assert other == (["[turn 001][order.placed][baker] Ada ordered rye bread"] if shared else ["(quiet)"])


@pytest.mark.models("prompt")
def test_a_role_applies_to_later_events(tmp_path: Path) -> None:
    roles = [declared({"order.placed": {"text": "customer", "role": role}}) for role in ("action", "visitor", None)]
    events = [order("Ann"), roles[0], order("Ada"), roles[1], order("Bea"), roles[2], order("Cid")]
    prompt = sections(after(tmp_path, events, lambda memory: memory.context("village", "baker")))
    assert prompt["ACTION HISTORY"] == ["[turn 001][order.placed] Ada"]
    assert prompt["VISITOR"] == ["[turn 001][order.placed] Bea"]
    assert prompt["YOUR MEMORY"] == ["[turn 001][order.placed] ", "[turn 001][order.placed] Cid"]


def test_a_scene_of_declared_kinds_has_their_texts(tmp_path: Path) -> None:
    events = [declared(scene_kinds=["order.placed"]), order()]
    assert after(tmp_path, events, lambda memory: memory.scene("village")).format() == "Ada ordered rye bread"
    assert texts(tmp_path, [declared({"order.placed": None})]) == ["Ada ordered rye bread"]
    assert after(tmp_path, [], lambda memory: memory.scene("village")).format() == "Ada ordered rye bread"


# Other answers.


@pytest.mark.models("prompt")
def test_recall_previews_pages_and_reasons_show_the_declared_text(tmp_path: Path) -> None:
    chatter = [event(turn=turn, agent="miller", payload={"text": f"word {turn}"}) for turn in range(3)]

    async def ask(memory: Memory) -> list[str]:
        recalled = await memory.recall("village", "miller", "who ordered rye?", channels=["keyword", "salience"])
        searched = await memory.search("village", "miller", "who ordered rye?")
        around = await memory.around("village", "miller", "o-1")
        whole = await memory.entries("village", "miller", ["o-1"])
        explained = await memory.explain("village", "miller", "o-1")
        page = await memory.timeline("village", "miller")
        assert explained.memory is not None
        assert explained.memory.importance == 0.8
        return [
            recalled.hits[0].text,
            searched.hits[0].preview,
            around.anchor.preview,
            whole.entries[0].text,
            explained.memory.text,
            page.items[0].text,
        ]

    assert after(tmp_path, [declared(), order(id="o-1"), *chatter], ask) == ["Ada ordered rye bread"] * 6


def test_the_importance_of_a_declared_kind_counts_in_recall(tmp_path: Path) -> None:
    light = {"order.placed": {"shared": True, "text": "{customer} ordered {item.name}", "importance": 0}}
    heavy = {"order.placed": {"shared": True, "text": "{customer} ordered {item.name}", "importance": 1}}
    events = [declared(heavy), order("Ada"), declared(light), order("Bea")]
    view = after(
        tmp_path, events, lambda memory: memory.recall("village", "miller", "rye", channels=["keyword", "salience"])
    )
    assert [hit.event.payload["customer"] for hit in view.hits] == ["Ada", "Bea"]


def test_the_terms_of_an_event_follow_the_declaration_of_its_own_space(tmp_path: Path) -> None:
    """Two memories of one process hold the same bytes with different declarations."""
    same = order(id="o-1", at="2026-03-01T12:00:00Z")
    for home, text in (("a", "customer"), ("b", "item.name")):
        events = [declared({"order.placed": {"text": text}}), same]
        view = after(tmp_path / home, events, lambda memory: memory.recall("village", "baker", "rye bread"))
        assert [hit.text for hit in view.hits] == (["rye bread"] if home == "b" else [])


@pytest.mark.models("beliefs")
def test_evidence_of_a_reflection_has_the_declared_importance_and_text(tmp_path: Path) -> None:
    settings = event("agent.configured", agent="miller", payload={"reflection_threshold": 4})
    seen = [event("world.observed", payload={"text": f"It rained {n}."}) for n in range(3)]

    async def ask(memory: Memory) -> str:
        due = await memory.reflection("village", "miller")
        assert [shown.importance for shown in due.on] == [0.8, 0.7, 0.7, 0.7]
        (reaction,) = await memory.react()
        return reaction.text

    assert '"Ada ordered rye bread"' in after(tmp_path, [settings, declared(), order(), *seen], ask)


def test_a_text_longer_than_the_views_keep_is_cut_once_for_all_answers(tmp_path: Path) -> None:
    body = "".join(f"word{number} " for number in range(3_000))
    events = [declared({"note.taken": {"text": "body"}}), event("note.taken", payload={"body": body})]

    async def ask(memory: Memory) -> list[str]:
        salient = await memory.salient("village", "baker", "word7")
        recalled = await memory.recall("village", "baker", "word7")
        return [salient.memories[0].text, recalled.hits[0].text]

    assert after(tmp_path, events, ask) == [body[: limits.STORED_TEXT_CHARS_MAX]] * 2


# The index.


def documents_of(*events: Event) -> list[Document]:
    made_with = {"embedder": "toy", "model": "toy model", "token_vectors": True, "points": 1}
    ledger = ledger_at([codec.encode(each) for each in events])
    projector, generation = folded(ledger, builtin.with_settings(Index(made_with)))
    rows = rows_of(projector.store, generation, DOCUMENTS.name).values()
    return sorted(map(DOCUMENTS.decode, rows), key=lambda document: document.offset)


def test_a_document_has_the_declared_text_importance_and_readers() -> None:
    ordered, spoken = documents_of(order(), declared(), order(), event(payload={"text": "Done?"}))
    assert (ordered.offset, ordered.readers, ordered.importance) == (2, ("*",), 0.8)
    assert points.text_of(ordered) == "Ada ordered rye bread"
    assert spoken.before == "baker: Ada ordered rye bread"
    assert (points.text_of(spoken), spoken.importance, spoken.is_question) == ("Done?", 0.5, True)


# The list of kinds.


def kind_of(view: KindsView, name: str) -> KindView:
    (found,) = [kind for kind in view.kinds if kind.name == name]
    return found


def test_the_kinds_of_a_space_are_the_catalogue_and_its_own_as_it_shares_them(tmp_path: Path) -> None:
    events = [declared({"order.placed": ORDERED | {"role": "action"}, "note.taken": {}}, shared_kinds=["agent.spoke"])]
    view = after(tmp_path, events, lambda memory: memory.kinds("village"))
    assert kind_of(view, "order.placed") == KindView(
        name="order.placed",
        space="village",
        importance=0.8,
        shared=True,
        recalled=True,
        role="action",
        text="{customer} ordered {item.name}",
        schema_version=1,
        fields=(),
        content=(),
    )
    assert [kind.name for kind in view.kinds if kind.space] == ["note.taken", "order.placed"]
    assert kind_of(view, "note.taken").text == "{text} or {belief} or {summary} or {goal}"
    assert [kind.name for kind in view.kinds if kind.shared] == ["agent.spoke", "order.placed"]
    assert kind_of(view, "clock.ticked").role == "bookkeeping"
    before = after(tmp_path, [declared({"order.placed": None})], lambda m: m.kinds("village", as_of=Position(0, 0)))
    assert before.kinds == view.kinds


# The command line.


@pytest.mark.models("prompt")
def test_events_of_a_declared_kind_are_published_queried_rebuilt_and_verified(tmp_path: Path) -> None:
    lines = "\n".join(codec.encode(each).decode() for each in (declared(), order(id="o-1")))
    environment = {"RECALLOG_HOME": str(tmp_path / "home"), "RECALLOG_INDEX": "off"}
    assert recallog("ingest", "-", stdin=lines, **environment).code == 0
    line = "[order.placed][baker] Ada ordered rye bread"
    for command in (("episodic", "village", "miller"), ("context", "village", "miller")):
        assert line in recallog(*command, **environment).out
    assert "Ada ordered rye bread" in recallog("recall", "village", "miller", "who ordered rye?", **environment).out
    (salient,) = recallog("salient", "village", "miller", "--json", **environment).json["memories"]
    assert (salient["text"], salient["importance"]) == ("Ada ordered rye bread", 0.8)
    assert recallog("explain", "village", "miller", "o-1", "--json", **environment).json["memory"]["importance"] == 0.8
    for command in ("verify", "rebuild", "verify"):
        assert recallog(command, **environment).code == 0
    assert line in recallog("episodic", "village", "miller", **environment).out


def test_publishing_a_declaration_of_a_known_kind_is_refused(tmp_path: Path) -> None:
    payload = '{"kinds": {"agent.spoke": {"shared": true}}}'
    refused = recallog(
        "publish", "village", "narrator", "space.configured", "--payload", payload, "--home", tmp_path / "home"
    )
    assert refused.code != 0
    assert "payload.kinds.agent.spoke" in refused.err


def test_the_command_lists_the_catalogue_and_all_declared_kinds_or_those_of_a_space(tmp_path: Path) -> None:
    home, fresh = ("--home", tmp_path / "home"), ("--home", tmp_path / "fresh")
    events = [
        declared({"order.placed": ORDERED, "note.taken": {}}),
        declared({"order.placed": {"importance": 0.1}}).model_copy(update={"space": "city"}),
    ]
    after(tmp_path / "home", events, lambda memory: memory.kinds("village"))
    catalogue = recallog("schema", "kinds", *fresh)
    assert catalogue.code == 0
    assert re.search("user.injected +0.95 +yes +visitor ", catalogue.out)
    assert "order.placed" not in catalogue.out

    last = recallog("schema", "kinds", *home).out.splitlines()[-1].split()
    template = ["{customer}", "ordered", "{item.name}"]
    assert last == ["order.placed", "0.80", "yes", "memory", "1", *template, "space", "village"]
    known = recallog("schema", "kinds", "--json", *fresh).json["kinds"]
    every = recallog("schema", "kinds", "--json", *home).json["kinds"]
    assert every[: len(known)] == known
    assert [(kind["space"], kind["name"], kind["importance"]) for kind in every[len(known) :]] == [
        ("city", "order.placed", 0.1),
        ("village", "note.taken", 0.5),
        ("village", "order.placed", 0.8),
    ]
    of_space = recallog("schema", "kinds", "--space", "village", "--json", *home).json
    assert of_space["space"] == "village"
    assert of_space["kinds"] == [kind for kind in every if kind["space"] in (None, "village")]
