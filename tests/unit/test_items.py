"""`memory.items`: what each change answers, what it refuses, and how pages are read."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from recallog import Conflict, InvalidArgument, Memory, Refused
from recallog_schemas import Event
from support.cli import recallog
from support.events import event, run

pytestmark = pytest.mark.models("items")

NOTES = ("s", "a", "notes")


def ended(work: Any) -> Any:
    """The result of `work(memory)`, and the memory's events, on a memory without files."""

    async def within() -> Any:
        async with Memory.in_memory() as memory:
            result = await work(memory)
            events = [data async for batch in memory.admin.records() for _, data in batch.records]
            assert (await memory.admin.verify("views")).ok
            return result, len(events)

    return run(within())


async def put(memory: Memory, key: str, value: Any, **fields: Any) -> Any:
    return await memory.items.put(*NOTES, key, value, **fields)


# One item.


def test_a_put_answers_the_item_and_a_get_finds_it() -> None:
    async def work(memory: Memory) -> None:
        changed = await put(memory, "miller", {"owes": [9, None]})
        assert (changed.changed, str(changed.position), changed.item.version) == (True, "0:0", 1)
        found = await memory.items.get(*NOTES, "miller")
        assert found.item == changed.item
        assert (found.item.namespace, found.item.key, found.item.path) == (("notes",), "miller", "notes/miller")
        assert found.item.sha256 == hashlib.sha256(b'{"owes":[9,null]}').hexdigest()
        assert (found.known, found.ok, found.format()) == (True, True, '{"owes": [9, null]}')
        assert (await put(memory, "miller", None)).item.version == 2
        assert (await memory.items.get(*NOTES, "miller", as_of="0:0")).item == changed.item
        assert (await memory.items.get(*NOTES, "miller", as_of="2000-01-01T00:00:00Z")).item is None

    ended(work)


def test_an_unknown_item_is_no_error() -> None:
    async def work(memory: Memory) -> None:
        found = await memory.items.get(*NOTES, "miller")
        assert (found.item, found.ok, found.known, found.format()) == (None, False, False, "(nothing)")

    ended(work)


def test_a_namespace_is_a_list_of_names_or_a_text_with_slashes_between_them() -> None:
    async def work(memory: Memory) -> None:
        await memory.items.put("s", "a", "notes/old", "k", 1)
        await memory.items.put("s", "a", ["notes/old"], "k", 2)
        assert (await memory.items.get("s", "a", ["notes", "old"], "k")).item.value == 1  # type: ignore[union-attr]
        assert [item.value for item in (await memory.items.list("s", "a")).items] == [2, 1]

    ended(work)


def test_append_move_and_delete_answer_what_they_did() -> None:
    async def work(memory: Memory) -> None:
        await memory.items.append(*NOTES, "log", "one")
        changed = await memory.items.append(*NOTES, "log", " two", base=1)
        assert (changed.item.value, changed.item.version) == ("one two", 2)  # type: ignore[union-attr]
        moved = await memory.items.move(*NOTES, "log", "diary")
        assert (moved.item.key, moved.item.value) == ("diary", "one two")  # type: ignore[union-attr]
        gone = await memory.items.delete(*NOTES, "diary")
        assert (gone.changed, gone.item, gone.format()) == (True, None, "deleted")

    assert ended(work)[1] == 4


def test_deleting_again_is_false_and_writes_nothing() -> None:
    async def work(memory: Memory) -> None:
        await put(memory, "miller", 1)
        await memory.items.delete(*NOTES, "miller")
        again = await memory.items.delete(*NOTES, "miller")
        assert (again.changed, again.ok, again.id, again.position) == (False, False, None, None)

    assert ended(work)[1] == 2


# Conditions.


@pytest.mark.parametrize("how", ["version", "digest"])
def test_of_two_puts_with_one_base_the_second_raises_and_changes_nothing(how: str) -> None:
    async def work(memory: Memory) -> None:
        first = (await put(memory, "miller", "first")).item
        base = first.version if how == "version" else first.sha256
        assert (await put(memory, "miller", "ours", base=base)).item.version == 2
        with pytest.raises(Conflict, match="has version 2") as caught:
            await put(memory, "miller", "theirs", base=base)
        assert (caught.value.version, caught.value.reason, caught.value.retryable) == (2, "conflict", False)
        assert (await memory.items.get(*NOTES, "miller")).item.value == "ours"  # type: ignore[union-attr]
        with pytest.raises(Conflict, match="relies on its absence"):
            await put(memory, "miller", "theirs", base=0)
        with pytest.raises(Conflict, match="notes/smith does not exist, but the change relies on version 7"):
            await put(memory, "smith", "theirs", base=7)

    assert ended(work)[1] == 2


def test_a_conflict_that_the_door_did_not_see_is_decided_by_the_ledger() -> None:
    async def work(memory: Memory) -> None:
        await put(memory, "miller", "first")
        raw = event("item.put", space="s", agent="a", payload={"namespace": ["notes"], "key": "miller", "value": "raw"})
        await memory.publish(raw)
        with pytest.raises(Conflict, match="has version 2"):
            await put(memory, "miller", "late", base=1, event_id="e-late")
        with pytest.raises(Conflict):
            await put(memory, "miller", "late", base=1, event_id="e-late")
        assert (await memory.items.get(*NOTES, "miller")).item.value == "raw"  # type: ignore[union-attr]

    assert ended(work)[1] == 3  # the event with an id is in the ledger, once


def test_a_repeated_call_with_one_event_id_is_one_change() -> None:
    async def work(memory: Memory) -> None:
        answers = [await put(memory, "miller", "x", base=0, event_id="e-1") for _ in range(3)]
        assert [(each.id, str(each.position), each.item.version) for each in answers] == [("e-1", "0:0", 1)] * 3

    assert ended(work)[1] == 1


def test_items_are_those_of_the_agent_of_the_event() -> None:
    async def work(memory: Memory) -> None:
        await put(memory, "miller", "mine")
        payload = {"namespace": ["notes"], "key": "miller", "value": "theirs"}
        await memory.publish(event("item.put", space="s", agent="b", payload=payload))
        assert (await memory.items.delete("s", "c", "notes", "miller")).changed is False
        assert (await memory.items.get(*NOTES, "miller")).item.value == "mine"  # type: ignore[union-attr]
        assert (await memory.timeline("s", "a")).items == ()
        assert (await memory.admin.dead_letters()).items == ()

    ended(work)


# What is refused.


@pytest.mark.models("working")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda memory: memory.items.move(*NOTES, "none", "other"), "unknown"),
        (lambda memory: memory.items.append(*NOTES, "number", "x"), "not_text"),
        (lambda memory: memory.items.append(*NOTES, "long", "x" * 1_000), "too_large"),
        (lambda memory: memory.working.drain("s", "a", "x1", "text"), "not_queue"),
    ],
    ids=["unknown", "not_text", "too_large", "not_queue"],
)
def test_what_breaks_a_rule_is_refused_and_writes_nothing(change: Any, reason: str) -> None:
    async def work(memory: Memory) -> None:
        await put(memory, "number", 1)
        await put(memory, "long", "x" * 65_000)
        await memory.items.put("s", "a", "session/x1", "text", "x")
        with pytest.raises(Refused) as caught:
            await change(memory)
        assert (caught.value.reason, type(caught.value)) == (reason, Refused)

    assert ended(work)[1] == 3


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"value": "x" * 70_000}, "value"),
        ({"value": {"x": float("nan")}}, "value.x"),
        ({"value": {1: 2}}, "value"),
        ({"value": object()}, "value"),
        ({"value": "\ud800"}, "value"),
        ({"value": "{", "json_text": True}, "value"),
        ({"value": 1, "json_text": True}, "value"),
        ({"namespace": []}, "namespace"),
        ({"namespace": ["a"] * 9}, "namespace"),
        ({"namespace": "a//b"}, "namespace"),
        ({"namespace": ["a", 1]}, "namespace"),
        ({"key": ""}, "key"),
        ({"key": "k" * 257}, "key"),
        ({"base": -1}, "base"),
        ({"base": "abc"}, "base"),
        ({"base": True}, "base"),
    ],
)
def test_an_invalid_argument_is_named(arguments: dict[str, Any], path: str) -> None:
    async def work(memory: Memory) -> None:
        given = {"space": "s", "agent": "a", "namespace": "notes", "key": "k", "value": 1} | arguments
        with pytest.raises(InvalidArgument) as caught:
            await memory.items.put(**given)
        assert caught.value.path == path

    assert ended(work)[1] == 0


def test_a_value_may_be_the_text_of_json() -> None:
    async def work(memory: Memory) -> None:
        assert (await put(memory, "k", '{"owes": 9}', json_text=True)).item.value == {"owes": 9}
        assert (await put(memory, "k", '{"owes": 9}')).item.value == '{"owes": 9}'

    ended(work)


# Pages.


def items_of(*keys: str) -> list[Event]:
    made = []
    for key in keys:
        *namespace, name = key.split("/")
        made.append(
            event("item.put", space="s", agent="a", payload={"namespace": namespace, "key": name, "value": len(made)})
        )
    return made


def test_pages_show_each_item_of_a_namespace_and_below_it_once() -> None:
    keys = [f"notes/n{n:02}" for n in range(7)] + ["notes/deep/x", "notes2/y", "other/z", "notes/n00"]

    async def work(memory: Memory) -> None:
        await memory.publish_many(items_of(*keys))
        for newest_first, expected in (
            (False, ["notes/deep/x", *(f"notes/n{n:02}" for n in range(7))]),
            (True, ["notes/n00", "notes/deep/x", *(f"notes/n{n:02}" for n in reversed(range(1, 7)))]),
        ):
            shown, cursor = [], None
            while True:
                page = await memory.items.list("s", "a", "notes", newest_first=newest_first, limit=3, cursor=cursor)
                assert len(page.items) <= 3
                shown += [item.path for item in page.items]
                cursor = page.next
                if cursor is None:
                    break
            assert shown == expected
        everything = await memory.items.list("s", "a", newest_first=True, limit=100)
        assert [item.path for item in everything.items][:4] == ["notes/n00", "other/z", "notes2/y", "notes/deep/x"]
        assert (await memory.items.list("s", "b")).format() == "(nothing)"
        assert [item.path for item in (await memory.items.list("s", "a", "notes/deep")).items] == ["notes/deep/x"]

    ended(work)


def test_a_cursor_of_other_pages_is_refused() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many(items_of("notes/a", "notes/b"))
        page = await memory.items.list("s", "a", "notes", limit=1)
        with pytest.raises(InvalidArgument, match="cursor: is not the `next`"):
            await memory.items.list("s", "a", "other", cursor=page.next)
        with pytest.raises(InvalidArgument, match="cursor"):
            await memory.items.list("s", "a", "notes", newest_first=True, cursor=page.next)

    ended(work)


def test_a_past_page_has_the_items_of_then() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many(items_of("notes/a", "notes/b", "notes/a"))
        then = await memory.items.list("s", "a", newest_first=True, as_of="0:1")
        assert [(item.path, item.value) for item in then.items] == [("notes/b", 1), ("notes/a", 0)]

    ended(work)


# The command line.


def test_the_commands_of_items(tmp_path: Path) -> None:
    home = {"RECALLOG_HOME": str(tmp_path / "home")}
    written = recallog("items", "put", "s", "a", "notes", "miller", '{"owes": 9}', "--json-text", "--json", **home)
    assert (written.code, written.json["item"]["value"]) == (0, {"owes": 9})
    assert recallog("items", "append", "s", "a", "notes", "log", "one", **home).out == "notes/log v1 one\n"
    assert recallog("items", "get", "s", "a", "notes", "miller", **home).out == '{"owes": 9}\n'
    assert recallog("items", "list", "s", "a", "--newest-first", **home).out == (
        'notes/log v1 one\nnotes/miller v1 {"owes": 9}\n'
    )
    assert recallog("items", "list", "s", "a", "--limit", "1", **home).err == "more: --cursor notes/log\n"
    long = recallog("items", "put", "s", "a", "notes", "log", "x" * 3_000, **home)
    assert long.out == f"notes/log v2 {'x' * 219}…\n"
    assert recallog("items", "put", "s", "a", "notes", "log", "one", **home).out == "notes/log v3 one\n"
    refused = recallog("items", "put", "s", "a", "notes", "miller", "x", "--base", "0", **home)
    assert (refused.code, refused.out) == (1, "")
    assert "notes/miller has version 1" in refused.err
    assert recallog("items", "move", "s", "a", "notes", "log", "diary", **home).out == "notes/diary v4 one\n"
    assert recallog("items", "delete", "s", "a", "notes", "diary", **home).out == "deleted\n"
    again = recallog("items", "delete", "s", "a", "notes", "diary", **home)
    assert (again.code, again.out) == (1, "there is no such item\n")
    assert recallog("items", "put", "s", "a", "notes", "k", "x", "--base", "first", **home).code == 2
