"""Kinds that a model of a program registers: in the catalogue, in validation, in the fold, and in what is rebuilt."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from recallog import MODELS, Event, Memory, Model, mistakes
from recallog_projections.rows import Rows
from recallog_projections.tables import Table
from recallog_projections.views import settings
from recallog_schemas import Record, codec, kinds, models, rules
from recallog_schemas.errors import InvalidEvent, NewDeadLetters, SettingsError, ViewsTooNew
from recallog_schemas.kinds import Kind, Payload
from recallog_schemas.kinds.kind import bookkeeping, entry, episode
from recallog_schemas.repeats import first_difference
from recallog_schemas.text_rules import first_of
from recallog_streams.fold import Fold
from support.events import event
from support.registering import registered

GREETED = "toy.greeted"


class Greeting(Payload):
    """A greeting."""

    whom: str
    """Whom it is for."""
    words: str
    """What was said."""


TOY = (
    episode(GREETED, "An agent greeted another one.", Greeting, first_of("words"), 0.9, "words", shared=True),
    entry("toy.noted", "An agent keeps a note.", Greeting, first_of("words"), "words"),
    bookkeeping("toy.counted", "Greetings were counted.", Payload),
)


@pytest.fixture(autouse=True)
def _forget_registrations() -> Iterator[None]:
    with registered():
        yield


def greeting(words: str = "Hello.", kind: str = GREETED, **fields: Any) -> Event:
    return event(kind, **{"payload": {"whom": "miller", "words": words}, **fields})


# The catalogue


def test_each_built_in_kind_has_one_definition_and_one_model() -> None:
    names = [kind.name for module in models.import_parts("recallog_schemas", "kinds") for kind in module.KINDS]
    assert len(names) == len(set(names))
    assert {name for name in kinds.BUILT_IN_KINDS if kinds.model_of(name)} == set(names)
    assert {kinds.model_of(name) for name in names} <= set(models.BUILT_IN)


def test_a_registered_kind_is_in_the_catalogue_as_its_model_defines_it() -> None:
    kinds.register("toy", TOY)
    assert kinds.kind_of(GREETED) is TOY[0]
    assert [*kinds.CATALOGUE][-3:] == kinds.list_registered() == [each.name for each in TOY]
    assert kinds.model_of(GREETED) == "toy"
    assert GREETED not in kinds.BUILT_IN_KINDS


def test_to_register_the_same_kinds_again_changes_nothing() -> None:
    kinds.register("toy", TOY)
    kinds.register("toy", TOY[1:])
    assert kinds.list_registered() == [each.name for each in TOY]


@pytest.mark.models("consensus")
def test_the_kinds_of_a_built_in_model_may_be_registered_by_its_name() -> None:
    before = dict(kinds.CATALOGUE)
    kinds.register("consensus", [kinds.kind_of("consensus.recorded")])
    assert before == kinds.CATALOGUE
    assert kinds.list_registered() == []


@pytest.mark.models("prompt")
@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (replace(TOY[0], name="Toy.Greeted"), "is not a kind: words of a-z"),
        (replace(TOY[0], name="greeted"), "is not a kind: words of a-z"),
        (replace(TOY[0], name=f"toy.{'x' * 200}"), "is not a kind: words of a-z"),
        (replace(TOY[0], name="agent.spoke"), "the kind agent.spoke belongs to Recallog itself; choose another name"),
        (replace(TOY[0], name="item.put"), "the kind item.put belongs to the model 'items'; choose another name"),
        (replace(TOY[0], name="other.met"), "the kind other.met belongs to the model 'other'; choose another name"),
        (replace(TOY[0], importance=0.1), "the kind toy.greeted has another definition already; define each kind once"),
    ],
)
def test_a_kind_that_cannot_be_registered_is_refused_and_registers_nothing(kind: Kind, why: str) -> None:
    kinds.register("toy", TOY[:1])
    kinds.register("other", [replace(TOY[0], name="other.met")])
    before = dict(kinds.CATALOGUE)
    with pytest.raises(SettingsError, match=f"the model 'toy'.*{why}"):
        kinds.register("toy", [TOY[1], kind])
    assert before == kinds.CATALOGUE


def test_what_was_found_in_the_catalogue_before_is_found_again_after_a_registration() -> None:
    text_only = greeting(payload={"text": "Hello."})
    assert kinds.allows_only_a_text(GREETED)
    assert mistakes.near_kind("toy.greetd") is None
    assert not mistakes.is_plain(greeting())
    kinds.register("toy", TOY)
    assert not kinds.allows_only_a_text(GREETED)
    assert mistakes.near_kind("toy.greetd") == GREETED
    assert mistakes.is_plain(greeting())
    assert settings.shares(None, GREETED)
    assert GREETED in kinds.shared_kinds()
    with pytest.raises(InvalidEvent, match=r"payload.whom: is required"):
        codec.encode(text_only)


def test_what_publishing_adds_and_repeats_leave_out_are_properties_of_the_kind() -> None:
    judged = replace(TOY[1], newest_rule=3, uncompared=frozenset({"rule", "measured"}))
    plain = greeting(kind="toy.noted")
    assert rules.with_newest_rule(plain) is plain
    kinds.register("toy", [judged])
    stated = rules.with_newest_rule(plain)
    assert (stated.payload["rule"], rules.rule_of(stated), rules.rule_of(plain)) == (3, 3, 1)
    assert rules.with_newest_rule(rules.with_own_rule(plain)).payload["rule"] == 1
    measured = plain.model_copy(update={"payload": {**plain.payload, "measured": 0.5}})
    assert first_difference(plain, stated) == first_difference(stated, measured) == ""


def test_the_kinds_of_a_model_that_a_memory_is_given_are_registered() -> None:
    async def work() -> str:
        async with Memory.in_memory(models=[*MODELS, Model(name="toy", kinds=TOY)]) as memory:
            await memory.publish(greeting())
            return (await memory.episodic("village", "miller")).memories[0].text

    assert asyncio.run(work()) == "Hello."
    assert kinds.model_of(GREETED) == "toy"


# Events


def test_an_event_of_a_registered_kind_is_validated_by_its_payload_model() -> None:
    assert greeting(payload={"words": 7}).payload == {"words": 7}
    kinds.register("toy", TOY)
    with pytest.raises(InvalidEvent, match=r"payload.whom: is required") as raised:
        codec.make({"space": "village", "agent": "baker", "kind": GREETED, "payload": {"words": "Hello."}})
    assert raised.value.path == "payload.whom"
    assert codec.decode(codec.encode(greeting())).text == "Hello."


def test_an_event_of_a_registered_kind_is_folded_by_its_definition() -> None:
    async def work() -> tuple[Sequence[str], float, int]:
        async with Memory.in_memory() as memory:
            await memory.publish_many([greeting(), greeting("A note.", kind="toy.noted")])
            seen = await memory.episodic("village", "miller")
            salient = (await memory.salient("village", "miller")).memories
            return [shown.text for shown in seen.memories], salient[0].importance, len(salient)

    kinds.register("toy", TOY)
    assert asyncio.run(work()) == (["Hello."], 0.9, 1)


def test_a_declaration_of_a_space_stays_valid_and_precedes_the_definition_of_a_model() -> None:
    declared = event("space.configured", payload={"kinds": {GREETED: {"text": "{whom} was greeted"}}})

    async def work() -> tuple[Sequence[str], Sequence[str | None]]:
        async with Memory.in_memory() as memory:
            await memory.publish_many([declared, greeting()])
            seen = await memory.episodic("village", "baker")
            found = (await memory.kinds("village")).kinds
            return [shown.text for shown in seen.memories], [each.space for each in found if each.name == GREETED]

    kinds.register("toy", TOY)
    assert asyncio.run(work()) == (["miller was greeted"], ["village"])


# What is rebuilt


class Seen(msgspec.Struct, frozen=True):
    events: int


class Counting:
    """Counts the events of some kinds, or of all."""

    version = 1

    def __init__(self, name: str, *only: str) -> None:
        self.name, self.rows = name, Table(f"{name}.seen", Seen)
        self.tables = (self.rows,)
        if only:
            self.kinds = frozenset(only)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            known = rows.get(self.rows, record.event.space) or Seen(0)
            rows.put(self.rows, Seen(known.events + 1), record.event.space)


OWN = [Counting("speech", "agent.spoke"), Counting("greetings", GREETED)]


def generations(home: Path, *events: Event) -> dict[str, str]:
    """The active generation of each group of views of a folder after publishing `events`, and a clean `verify`."""

    async def work() -> dict[str, str]:
        async with Memory.open(home, projections=OWN) as memory:
            await memory.publish_many(list(events))
            await memory.episodic("village", "baker")
            await memory.catch_up()
            assert (await memory.admin.verify()).findings() == []
            status = await memory.admin.status()
            return {each.views: str(each.generation) for each in status.partitions}

    return asyncio.run(work())


def test_a_registered_kind_without_events_rebuilds_nothing(tmp_path: Path) -> None:
    before = generations(tmp_path, event("agent.spoke", payload={"text": "Bread!"}))
    kinds.register("toy", TOY)
    assert generations(tmp_path) == before
    assert generations(tmp_path, greeting()) == before


def test_a_kind_that_is_registered_after_its_events_were_folded_rebuilds_the_views_once(tmp_path: Path) -> None:
    before = generations(tmp_path, greeting())
    kinds.register("toy", TOY)
    after = generations(tmp_path)
    assert not set(before.values()) & set(after.values())
    assert generations(tmp_path, greeting()) == after


def test_another_definition_of_a_kind_rebuilds_the_views(tmp_path: Path) -> None:
    with registered("toy", TOY):
        before = generations(tmp_path, greeting())
    kinds.register("toy", [replace(TOY[0], version=2)])
    assert not set(before.values()) & set(generations(tmp_path).values())


def test_the_definition_of_another_kind_rebuilds_nothing(tmp_path: Path) -> None:
    with registered("toy", TOY):
        before = generations(tmp_path, greeting())
    kinds.register("toy", [TOY[0], replace(TOY[1], importance=0.1)])
    assert generations(tmp_path) == before


def test_a_kind_that_is_registered_while_the_memory_is_open_rebuilds_the_views_by_the_next_query() -> None:
    async def work() -> list[Sequence[str]]:
        async with Memory.in_memory() as memory:
            await memory.publish(greeting())
            before = await memory.episodic("village", "miller")
            kinds.register("toy", TOY)
            after = await memory.episodic("village", "miller")
            return [[shown.text for shown in each.memories] for each in (before, after)]

    assert asyncio.run(work()) == [[], ["Hello."]]


def test_a_process_without_the_model_reads_on_and_folds_no_event_of_its_kinds(tmp_path: Path) -> None:
    with registered("toy", TOY):
        before = generations(tmp_path, greeting())

    async def work() -> int:
        async with Memory.open(tmp_path, projections=OWN) as memory:
            await memory.publish(event("agent.spoke", payload={"text": "Bread!"}))
            seen = len((await memory.episodic("village", "baker")).memories)
            await memory.publish(greeting())
            with pytest.raises(ViewsTooNew, match="a kind of the model 'toy', which this process does not have"):
                await memory.episodic("village", "baker")
            return seen

    assert asyncio.run(work()) == 2
    kinds.register("toy", TOY)
    assert generations(tmp_path) == before


def test_events_that_do_not_fit_the_kind_that_is_registered_later_are_not_lost_silently(tmp_path: Path) -> None:
    before = generations(tmp_path, greeting(payload={"words": 7}))
    kinds.register("toy", TOY)

    async def work(accept: bool) -> Counter[str]:
        async with Memory.open(tmp_path) as memory:
            if accept:
                await memory.admin.rebuild(accept=True)
            await memory.episodic("village", "baker")
            return Counter(each.reason for each in await memory.admin.dead_letters())

    with pytest.raises(NewDeadLetters, match=r"payload\.whom: missing"):
        asyncio.run(work(accept=False))
    assert asyncio.run(work(accept=True)) == {"invalid": 1}
    assert before


# The digest of the built-in kinds


def code_of(*projections: Counting) -> str:
    return Fold(projections, unique_ids=True).code


@pytest.mark.parametrize("change", [{"version": 2}, {"importance": 0.1}])
def test_the_code_of_a_generation_covers_the_built_in_kinds_that_its_projections_read(
    change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    speech, verdicts, everything = Counting("a", "agent.spoke"), Counting("b", "judge.verdict"), Counting("c")
    groups = [[speech], [verdicts], [speech, verdicts], [everything], [verdicts, everything]]
    before = [code_of(*group) for group in groups]
    with monkeypatch.context() as changed:
        changed.setitem(kinds.CATALOGUE, "agent.spoke", replace(kinds.kind_of("agent.spoke"), **change))
        kinds.digest.cache_clear()
        after = [code_of(*group) for group in groups]
    kinds.digest.cache_clear()
    assert [one != other for one, other in zip(before, after, strict=True)] == [True, False, True, True, True]


def test_the_code_of_a_generation_does_not_cover_registered_kinds() -> None:
    before = [code_of(each) for each in (Counting("a", GREETED), Counting("b"))]
    kinds.register("toy", TOY)
    assert [code_of(each) for each in (Counting("a", GREETED), Counting("b"))] == before


def test_the_version_of_the_kinds_grows_with_each_kind_and_each_change() -> None:
    two, three = frozenset({"agent.spoke", "item.put"}), frozenset({"agent.spoke", "item.put", "tool.used"})
    assert 9 < kinds.version(two) < kinds.version(three) < kinds.version()
