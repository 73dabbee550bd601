"""The view of items, rule by rule: what a change does to an item, and what refuses it."""

import hashlib
from typing import Any

import pytest

from recallog_projections.models.items import projection as items
from recallog_projections.models.items.projection import ItemsProjection
from recallog_schemas import Event, limits
from recallog_schemas.models.items import limits as items_limits
from recallog_testing import ProjectionDriver
from support.events import MOMENT, event

pytestmark = pytest.mark.models("items")

NOTES = ["notes"]
PAD = ["session", "x1"]


def changed(change: str, key: str, namespace: list[str] | None = None, *, agent: str = "baker", **fields: Any) -> Event:
    """An event that changes an item; its id may be given."""
    envelope = {name: fields.pop(name) for name in ("id", "at") if name in fields}
    payload = {"namespace": NOTES if namespace is None else namespace, "key": key, **fields}
    return event(f"item.{change}", agent=agent, payload=payload, **envelope)


class Kept(ProjectionDriver):
    """What a driver holds, by item."""

    def __init__(self) -> None:
        super().__init__(ItemsProjection())

    def row(self, *address: Any) -> Any:  # type: ignore[override]
        if len(address) == 4:
            return super().row(*address)
        key, namespace = (*address, NOTES)[:2]
        return super().row(items.ROWS, "village", "baker", items.path_of(namespace, key))

    def value(self, key: str, namespace: list[str] = NOTES) -> Any:
        row = self.row(key, namespace)
        return None if row is None else items.value_of(row)

    def version(self, key: str, namespace: list[str] = NOTES) -> int:
        row = self.row(key, namespace)
        return 0 if row is None else row.version

    def keys(self, namespace: list[str]) -> tuple[str, ...]:
        row = self.row(items.NAMESPACES, "village", "baker", items.prefix_of(namespace))
        return () if row is None else row.keys

    def refused(self) -> list[str]:
        return [each.why for each in self.log_entries(items.REFUSALS, "village", "baker")]


@pytest.fixture
def kept() -> Kept:
    return Kept()


# The value and its versions.


def test_a_put_makes_an_item_and_each_further_one_the_next_version(kept: Kept) -> None:
    kept.given(changed("put", "miller", value={"owes": 9}, at=MOMENT))
    row = kept.row("miller")
    assert (items.value_of(row), row.version, row.offset) == ({"owes": 9}, 1, 0)
    assert row.sha256 == hashlib.sha256(b'{"owes":9}').hexdigest()
    kept.given(changed("put", "miller", value="nothing"), changed("put", "miller", value="nothing"))
    assert (kept.value("miller"), kept.version("miller")) == ("nothing", 3)
    assert kept.row("miller").sha256 == hashlib.sha256(b"nothing").hexdigest()


def test_the_digest_of_an_object_does_not_depend_on_the_order_of_its_keys() -> None:
    assert items.sha256_of({"a": 1, "b": [1.5, None]}) == items.sha256_of({"b": [1.5, None], "a": 1})
    assert items.sha256_of("é") == hashlib.sha256("é".encode()).hexdigest()


def test_the_items_of_agents_and_of_namespaces_are_separate(kept: Kept) -> None:
    kept.given(
        changed("put", "miller", value=1),
        changed("put", "miller", ["notes", "old"], value=2),
        changed("put", "miller", ["notes/old"], value=3),
        changed("deleted", "miller", agent="smith"),
    )
    assert [kept.value("miller", each) for each in (NOTES, ["notes", "old"], ["notes/old"])] == [1, 2, 3]
    assert [each.why for each in kept.log_entries(items.REFUSALS, "village", "smith")] == ["unknown"]


@pytest.mark.parametrize("names", [["a", "b"], ["a/b"], ["a%2Fb"], ["%"], ["a", "%25", "/"], ["ä 🥖", "\n"]])
def test_a_path_has_the_names_that_it_was_made_of(names: list[str]) -> None:
    assert items.names_of(items.path_of(names, "k/%")) == (names, "k/%")


def test_a_text_is_appended_to_a_text_or_begins_one(kept: Kept) -> None:
    kept.given(changed("appended", "log", text="one"), changed("appended", "log", text=" two"))
    assert (kept.value("log"), kept.version("log")) == ("one two", 2)
    kept.given(changed("put", "number", value=1), changed("appended", "number", text="2"))
    assert (kept.value("number"), kept.refused()) == (1, ["not_text"])


def test_a_deleted_item_is_gone_and_begins_again(kept: Kept) -> None:
    kept.given(changed("put", "miller", value=1), changed("deleted", "miller"), changed("deleted", "miller"))
    assert (kept.row("miller"), kept.refused()) == (None, ["unknown"])
    kept.given(changed("put", "miller", value=2, base=0))
    assert kept.version("miller") == 1


def test_a_moved_item_replaces_the_other_with_a_version_above_both(kept: Kept) -> None:
    kept.given(
        *(changed("put", "new", value=n) for n in range(5)),
        changed("put", "old", value="kept"),
        changed("moved", "old", to="new", base=1),
    )
    assert (kept.row("old"), kept.value("new"), kept.version("new")) == (None, "kept", 6)
    kept.given(changed("put", "new", value="lost", base=5), changed("moved", "old", to="new"))
    assert (kept.value("new"), kept.refused()) == ("kept", ["conflict", "unknown"])
    kept.given(changed("moved", "new", to="new"))
    assert (kept.value("new"), kept.version("new")) == ("kept", 7)


# The base.


@pytest.mark.parametrize("base", [0, 2, "0" * 64])
def test_a_change_whose_base_has_moved_on_is_refused(kept: Kept, base: int | str) -> None:
    kept.given(changed("put", "miller", value="first"))
    kept.given(
        changed("put", "miller", value="x", base=base),
        changed("appended", "miller", text="x", base=base),
        changed("deleted", "miller", base=base),
        changed("moved", "miller", to="smith", base=base),
    )
    assert (kept.value("miller"), kept.version("miller"), kept.refused()) == ("first", 1, ["conflict"] * 4)
    assert kept.value("smith") is None


def test_a_base_is_a_version_a_digest_or_zero_for_no_item(kept: Kept) -> None:
    kept.given(
        changed("put", "miller", value="first", base=0),
        changed("put", "miller", value="second", base=1),
        changed("put", "miller", value="third", base=hashlib.sha256(b"second").hexdigest()),
        changed("appended", "other", text="x", base=0),
        changed("put", "none", value="x", base=1),
        changed("put", "none", value="x", base="0" * 64),
    )
    assert (kept.value("miller"), kept.value("other"), kept.value("none")) == ("third", "x", None)
    assert kept.refused() == ["conflict", "conflict"]


def test_of_two_changes_with_one_base_the_first_in_the_ledger_counts(kept: Kept) -> None:
    kept.given(
        changed("put", "miller", value="ours", base=0), changed("put", "miller", value="theirs", base=0, id="e-2")
    )
    assert (kept.value("miller"), kept.version("miller")) == ("ours", 1)
    (refusal,) = kept.log_entries(items.REFUSALS, "village", "baker")
    assert (refusal.event, refusal.why) == ("e-2", "conflict")


# Blocks and scratchpads.


@pytest.mark.parametrize(
    ("namespace", "most"), [(["working"], limits.WORKING_BLOCKS_MAX), (PAD, items_limits.SCRATCHPAD_KEYS_MAX)]
)
def test_a_namespace_with_few_keys_refuses_one_more(kept: Kept, namespace: list[str], most: int) -> None:
    kept.given(*(changed("put", f"k-{n:02}", namespace, value=n) for n in range(most + 1)))
    assert (len(kept.keys(namespace)), kept.refused()) == (most, ["full"])
    assert kept.row(f"k-{most:02}", namespace) is None
    kept.given(changed("put", "k-00", namespace, value="again"), changed("deleted", "k-01", namespace))
    kept.given(changed("moved", "k-00", namespace, to="z"), changed("appended", "a", namespace, text="x"))
    assert kept.keys(namespace) == ("a", *(f"k-{n:02}" for n in range(2, most)), "z")
    assert kept.refused() == ["full"]


def test_other_namespaces_have_any_number_of_keys_and_no_list(kept: Kept) -> None:
    kept.given(*(changed("put", f"{n}", ["working", "deep"], value=n) for n in range(100)))
    assert (kept.keys(["working", "deep"]), kept.refused()) == ((), [])
    assert kept.keys(["working"]) == ()


def test_a_text_in_a_scratchpad_is_cut_with_a_note(kept: Kept) -> None:
    kept.given(changed("put", "long", PAD, value="x" * 10_001), changed("put", "whole", PAD, value="x" * 10_000))
    text = kept.value("long", PAD)
    assert (len(text), text[-16:]) == (10_000, "x\n[...truncated]")
    assert kept.value("whole", PAD) == "x" * 10_000
    kept.given(changed("appended", "long", PAD, text="more"), changed("appended", "whole", PAD, text="y"))
    assert kept.value("long", PAD) == kept.value("whole", PAD) == text
    kept.given(changed("put", "object", PAD, value={"x": "x" * 10_000}))
    assert (kept.value("object", PAD), kept.refused()) == (None, ["too_large"])


def test_an_appended_text_makes_no_value_above_64_kib(kept: Kept) -> None:
    kept.given(changed("put", "long", value="x" * 65_000), changed("appended", "long", text="x" * 1_000))
    assert (len(kept.value("long")), kept.version("long"), kept.refused()) == (65_000, 1, ["too_large"])


# Queues.


def test_a_queue_keeps_its_newest_elements_and_is_drained_up_to_a_version(kept: Kept) -> None:
    kept.given(*(changed("appended", items.PENDING, PAD, text=f"{n}") for n in range(53)))
    assert kept.value(items.PENDING, PAD) == [f"{n}" for n in range(3, 53)]
    kept.given(changed("appended", items.PENDING, PAD, text="later"), changed("drained", items.PENDING, PAD, upto=53))
    assert kept.value(items.PENDING, PAD) == ["later"]
    kept.given(changed("drained", items.PENDING, PAD, upto=53))
    assert (kept.value(items.PENDING, PAD), kept.version(items.PENDING, PAD)) == (["later"], 55)
    kept.given(changed("appended", items.PENDING, PAD, text="last"), changed("drained", items.PENDING, PAD, upto=55))
    assert kept.value(items.PENDING, PAD) == ["last"]
    assert kept.refused() == ["conflict"]


def test_a_list_in_a_scratchpad_is_a_queue(kept: Kept) -> None:
    kept.given(changed("put", "todo", PAD, value=[*range(60)]), changed("appended", "todo", PAD, text="x" * 10_001))
    value = kept.value("todo", PAD)
    assert (len(value), value[:2], len(value[-1])) == (50, [11, 12], 10_000)
    kept.given(*(changed("appended", "todo", PAD, text="🥖" * 10_000) for _ in range(5)))
    assert len(kept.value("todo", PAD)) < 5
    kept.given(changed("drained", "todo", PAD, upto=7))
    assert kept.value("todo", PAD) == []


def test_only_queues_are_drained(kept: Kept) -> None:
    kept.given(changed("put", "hint", PAD, value="left"), changed("drained", "hint", PAD, upto=1))
    kept.given(changed("put", "list", value=[1]), changed("drained", "list", upto=1))
    kept.given(changed("drained", "nothing", PAD, upto=1))
    assert (kept.value("hint", PAD), kept.value("list")) == ("left", [1])
    assert kept.refused() == ["not_queue", "not_queue", "unknown"]


def test_of_two_readers_of_a_queue_the_first_in_the_ledger_takes_what_both_saw(kept: Kept) -> None:
    kept.given(*(changed("appended", items.PENDING, PAD, text=f"{n}") for n in range(3)))
    kept.given(changed("drained", items.PENDING, PAD, upto=2), changed("drained", items.PENDING, PAD, upto=3))
    assert (kept.value(items.PENDING, PAD), kept.refused()) == (["2"], ["conflict"])
    kept.given(changed("drained", items.PENDING, PAD, upto=5), changed("drained", items.PENDING, PAD, upto=4))
    assert (kept.value(items.PENDING, PAD), kept.refused()) == ([], ["conflict", "conflict"])


def test_the_rows_do_not_depend_on_the_boundaries_of_batches(kept: Kept) -> None:
    kept.given(
        *(changed("put", f"{n % 7}", [["working"], PAD, NOTES][n % 3], value=n, base=n % 4) for n in range(100)),
        *(changed("moved", f"{n % 7}", [["working"], PAD, NOTES][n % 3], to=f"{n % 5}") for n in range(50)),
    )
    assert "conflict" in kept.refused()
    kept.check()
