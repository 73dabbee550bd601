"""`memory.working`: blocks, how they are rendered and written as a document, and the scratchpads of sessions."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from recallog import Conflict, InvalidArgument, Memory, Refused
from recallog.models.items.commands import RESERVED_KEYS
from recallog_projections.models.items import projection as items
from recallog_schemas import Event
from support.cli import recallog
from support.events import event
from unit.test_items import ended

pytestmark = pytest.mark.models("working")

A = ("s", "a")


def put(label: str, value: Any, *, agent: str = "a", namespace: tuple[str, ...] = ("working",)) -> Event:
    payload = {"namespace": [*namespace], "key": label, "value": value}
    return event("item.put", space="s", agent=agent, payload=payload)


def noted(key: str, text: str) -> Event:
    """What the system adds to a scratchpad."""
    payload = {"namespace": ["session", "x1"], "key": key, "text": text}
    return event("item.appended", space="s", agent="a", payload=payload)


# Blocks.


def test_blocks_have_versions_and_are_rendered_by_label() -> None:
    async def work(memory: Memory) -> None:
        await memory.working.set(*A, "Goals", "Close 3 deals")
        await memory.working.set(*A, "User", "Name: Alice")
        changed = await memory.working.set(*A, "Goals", "Close 4 deals")
        assert (changed.item.version, changed.item.value) == (2, "Close 4 deals")  # type: ignore[union-attr]
        found = [(block.label, block.content, block.version) for block in (await memory.working.get(*A)).blocks]
        assert found == [("Goals", "Close 4 deals", 2), ("User", "Name: Alice", 1)]
        rendered = "## Working Memory\n### Goals\n  Close 4 deals\n### User\n  Name: Alice"
        assert (await memory.working.render(*A)).text == rendered
        assert (await memory.working.get("s", "b")).blocks == ()
        assert (await memory.working.render("s", "b")).text == ""
        assert (await memory.working.render(*A, as_of="0:0")).text == "## Working Memory\n### Goals\n  Close 3 deals"
        only = await memory.working.render(*A, ["User", "Nobody"])
        assert only.text == "## Working Memory\n### User\n  Name: Alice"
        assert [block.label for block in (await memory.working.get(*A, ["User"])).blocks] == ["User"]
        assert (await memory.working.delete(*A, "User")).changed
        assert not (await memory.working.delete(*A, "User")).changed
        assert [block.label for block in (await memory.working.get(*A)).blocks] == ["Goals"]

    assert ended(work)[1] == 4


def test_a_long_block_is_kept_whole_and_rendered_at_2000_characters() -> None:
    async def work(memory: Memory) -> None:
        await memory.working.set(*A, "Notes", "x" * 3_000)
        (block,) = (await memory.working.get(*A)).blocks
        assert len(block.content) == 3_000
        assert (await memory.working.render(*A)).text == "## Working Memory\n### Notes\n  " + "x" * 2_000

    ended(work)


def test_a_block_of_another_agent_is_out_of_reach() -> None:
    async def work(memory: Memory) -> None:
        await memory.working.set(*A, "Goals", "mine")
        await memory.publish(put("Goals", "theirs", agent="b"))
        assert not (await memory.working.delete("s", "c", "Goals")).changed
        assert (await memory.working.render(*A)).text.endswith("mine")

    ended(work)


def test_the_65th_block_is_refused() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many([put(f"{n:02}", n) for n in range(64)])
        with pytest.raises(Refused, match="64 keys in working memory") as caught:
            await memory.working.set(*A, "one more", "x")
        assert caught.value.reason == "full"
        await memory.publish(put("raw", "x"))
        assert len((await memory.working.get(*A)).blocks) == 64
        await memory.working.set(*A, "63", "x", base=1)

    assert ended(work)[1] == 66


def test_of_two_sets_with_one_base_the_second_raises() -> None:
    async def work(memory: Memory) -> None:
        await memory.working.set(*A, "Goals", "x")
        await memory.working.set(*A, "Goals", "ours", base=1)
        with pytest.raises(Conflict):
            await memory.working.set(*A, "Goals", "theirs", base=1)
        with pytest.raises(Conflict):
            await memory.working.delete(*A, "Goals", base=1)

    ended(work)


@pytest.mark.parametrize(
    ("content", "json_text", "path"),
    [("x" * 70_000, False, "content"), ({"a": object()}, False, "content.a"), ("{", True, "content")],
)
def test_a_content_that_cannot_be_kept_is_named(content: Any, json_text: bool, path: str) -> None:
    async def work(memory: Memory) -> None:
        with pytest.raises(InvalidArgument) as caught:
            await memory.working.set(*A, "Goals", content, json_text=json_text)
        assert caught.value.path == path
        assert str(caught.value).startswith(f"{path}: ")

    assert ended(work)[1] == 0


# The document.


def test_writing_a_document_publishes_the_difference_at_once() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many([put("Goals", "Close 3 deals"), put("Old", 1), put("User", {"name": "Alice"})])
        document = await memory.working.document(*A)
        assert json.loads(document.text) == {"Goals": "Close 3 deals", "Old": 1, "User": {"name": "Alice"}}
        assert (document.cut, document.bytes) == (False, len(document.text))
        same = await memory.working.write_document(*A, document.text)
        assert (same.position, same.format()) == (None, "unchanged")
        changed = json.dumps({"Goals": "Close 4 deals", "User": {"name": "Alice"}, "New": ["x"]})
        written = await memory.working.write_document(*A, changed, base=document.sha256)
        assert (written.written, written.deleted, str(written.position)) == (("Goals", "New"), ("Old",), "0:5")
        assert written.format() == "written: Goals, New\ndeleted: Old"
        assert json.loads((await memory.working.document(*A)).text) == json.loads(changed)
        with pytest.raises(Conflict, match="has changed since it was read"):
            await memory.working.write_document(*A, "{}", base=document.sha256)
        assert (await memory.working.write_document(*A, "{}")).deleted == ("Goals", "New", "User")
        assert (await memory.working.document(*A)).text == "{}"

    assert ended(work)[1] == 9


def test_a_document_is_cut_at_a_character_and_then_not_written() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish(put("Goals", "ä" * 1_000))
        assert not (await memory.working.document(*A)).cut
        configured = {"working": {"max_bytes": 500}}
        await memory.publish(event("agent.configured", space="s", agent="a", payload=configured))
        document = await memory.working.document(*A)
        assert (document.cut, document.bytes > 2_000) == (True, True)
        kept = document.text.removesuffix("[...truncated]")
        assert (kept != document.text, 484 <= len(kept.encode()) <= 486, kept[-1]) == (True, True, "ä")
        with pytest.raises(InvalidArgument, match=r"contains \[...truncated\]") as caught:
            await memory.working.write_document(*A, json.dumps({"Goals": document.text}))
        assert (caught.value.path, caught.value.rule) == ("text", "cut")

    assert ended(work)[1] == 2


@pytest.mark.parametrize("text", ["", "[]", '"x"', "{", '{"a": NaN}', '{"": 1}', "{} {}", '{"a": "\ud800"}'])
def test_a_text_that_is_no_document_is_refused(text: str) -> None:
    async def work(memory: Memory) -> None:
        with pytest.raises(InvalidArgument):
            await memory.working.write_document(*A, text)

    assert ended(work)[1] == 0


def test_a_document_of_too_many_blocks_is_refused_as_a_whole() -> None:
    async def work(memory: Memory) -> None:
        await memory.working.set(*A, "Goals", "x")
        with pytest.raises(Refused, match="64 keys in working memory"):
            await memory.working.write_document(*A, json.dumps({f"{n}": n for n in range(65)}))
        replaced = await memory.working.write_document(*A, json.dumps({f"{n}": n for n in range(64)}))
        assert (len(replaced.written), replaced.deleted) == (64, ("Goals",))

    assert ended(work)[1] == 66


# Scratchpads.


def test_a_scratchpad_belongs_to_a_session() -> None:
    async def work(memory: Memory) -> None:
        await memory.working.set(*A, "tip", "left", session="x1")
        await memory.working.set(*A, "tip", "right", session="x2")
        await memory.working.set(*A, "list", '["a"]', session="x1", json_text=True)
        pad = await memory.working.scratchpad(*A, "x1")
        assert [(block.label, block.content) for block in pad.blocks] == [("list", ["a"]), ("tip", "left")]
        assert pad.session == "x1"
        assert [block.label for block in (await memory.working.scratchpad(*A, "x1", ["tip"])).blocks] == ["tip"]
        assert (await memory.working.get(*A)).blocks == ()
        assert (await memory.working.delete(*A, "tip", session="x1")).changed
        assert [block.content for block in (await memory.working.scratchpad(*A, "x2")).blocks] == ["right"]
        assert [session.name for session in (await memory.sessions("s")).items] == ["x1", "x2"]

    ended(work)


def test_the_51st_key_of_a_scratchpad_is_refused_and_a_long_value_is_cut() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many([put(f"{n}", n, namespace=("session", "x1")) for n in range(50)])
        with pytest.raises(Refused, match="50 in a scratchpad"):
            await memory.working.set(*A, "one more", "x", session="x1")
        await memory.publish(put("raw", "x", namespace=("session", "x1")))
        assert len((await memory.working.scratchpad(*A, "x1")).blocks) == 50
        cut = await memory.working.set(*A, "0", "x" * 10_001, session="x1")
        assert cut.item is not None
        assert (len(cut.item.value), cut.item.value.endswith("\n[...truncated]")) == (10_000, True)

    ended(work)


@pytest.mark.parametrize("key", [*sorted(RESERVED_KEYS), "subagent_result::7", "delegation_result::x"])
def test_a_reserved_key_is_refused_and_can_be_read(key: str) -> None:
    async def work(memory: Memory) -> None:
        pad = (*A, ["session", "x1"])
        for argument, change in (
            ("label", lambda: memory.working.set(*A, key, "x", session="x1")),
            ("label", lambda: memory.working.append(*A, key, "x", session="x1")),
            ("label", lambda: memory.working.delete(*A, key, session="x1")),
            ("key", lambda: memory.items.put(*pad, key, "x")),
            ("key", lambda: memory.items.append(*pad, key, "x")),
            ("key", lambda: memory.items.delete(*pad, key)),
            ("key", lambda: memory.items.move(*pad, key, "mine")),
            ("to", lambda: memory.items.move(*pad, "mine", key)),
        ):
            with pytest.raises(InvalidArgument, match="reserved") as caught:
                await change()
            assert (caught.value.path, caught.value.rule) == (argument, "reserved")
        await memory.items.put("s", "a", ["notes", "x1"], key, "no scratchpad")
        await memory.publish(noted(key, "done"))
        (block,) = (await memory.working.scratchpad(*A, "x1", [key])).blocks
        assert block.content == (["done"] if key == items.PENDING else "done")
        await memory.working.set(*A, key, "a block may have any name")

    ended(work)


def test_a_queue_is_emptied_by_the_read_that_drains_it() -> None:
    async def work(memory: Memory) -> None:
        for n in range(52):
            await memory.publish(noted(items.PENDING, f"{n}"))
        drained = await memory.working.drain(*A, "x1", items.PENDING)
        assert drained.values == tuple(f"{n}" for n in range(2, 52))
        again = await memory.working.drain(*A, "x1", items.PENDING)
        assert (again.values, again.position, again.format()) == ((), None, "(nothing)")
        assert (await memory.working.drain(*A, "x1", "none")).values == ()

    assert ended(work)[1] == 53


def test_each_element_is_drained_once_by_readers_that_drain_at_the_same_time(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as one, Memory.open(tmp_path) as other:

            async def fill() -> None:
                for n in range(20):
                    await one.publish(noted(items.PENDING, f"{n}"))

            async def drain(memory: Memory) -> list[Any]:
                taken: list[Any] = []
                for _ in range(12):
                    taken += (await memory.working.drain(*A, "x1", items.PENDING)).values
                    await asyncio.sleep(0)
                return taken

            _, *found = await asyncio.gather(fill(), drain(one), drain(other))
            found.append(list((await one.working.drain(*A, "x1", items.PENDING)).values))
            assert sorted(int(each) for taken in found for each in taken) == list(range(20))

    asyncio.run(work())


# The command line.


def test_the_commands_of_working_memory(tmp_path: Path) -> None:
    home = {"RECALLOG_HOME": str(tmp_path / "home")}
    assert recallog("working", "set", *A, "Goals", "Close 3 deals", **home).out == "working/Goals v1 Close 3 deals\n"
    assert recallog("working", "render", *A, **home).out == "## Working Memory\n### Goals\n  Close 3 deals\n"
    assert recallog("working", "get", *A, "Goals", "Other", **home).out == "Goals (version 1)\n  Close 3 deals\n"
    document = recallog("working", "document", *A, "--json", **home).json
    written = recallog("working", "write-document", *A, '{"User": "Alice"}', "--base", document["sha256"], **home)
    assert written.out == "written: User\ndeleted: Goals\n"
    late = recallog("working", "write-document", *A, "{}", "--base", document["sha256"], **home)
    assert (late.code, late.out) == (1, "")
    recallog("working", "set", *A, "todo", '["one", "two"]', "--json-text", "--session", "x1", **home)
    assert recallog("working", "scratchpad", *A, "x1", **home).out == 'todo (version 1)\n  ["one", "two"]\n'
    assert recallog("working", "drain", *A, "x1", "todo", **home).out == "one\ntwo\n"
    assert recallog("working", "delete", *A, "todo", "--session", "x1", **home).out == "deleted\n"
    reserved = recallog("working", "set", *A, "session_facts", "x", "--session", "x1", **home)
    assert (reserved.code, "reserved" in reserved.err) == (2, True)
