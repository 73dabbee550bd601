"""Answers are bounded in bytes, say that they are cut, and the rest can be read."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from recallog import InvalidArgument, Memory, OutOfRange, Settings
from recallog.operations.facade import all_operations
from recallog_schemas import limits
from recallog_schemas.views import View
from recallog_schemas.views.base import Bounded, PageView
from recallog_service.access import Grant, Guarded, Verb
from support.cli import recallog
from support.events import event, run
from support.http import Door

OPERATIONS = all_operations(Memory)
ROOM = 40_000
"""The bytes of a list in the answers of these tests, except those with real limits."""
LARGE = "x" * 10_000

BOUNDED_BY_NUMBER = {
    **dict.fromkeys(["publish_many", "long_term.extract_facts", "long_term.seed"], "what the caller has sent"),
    **dict.fromkeys(["around", "search"], "previews, at most 101"),
    "lineage": "previews, at most 401, and steps between 200 of them",
    "context": "the sections of a prompt",
    **dict.fromkeys(
        ["timeline", "history", "long_term.list", "items.list"], "a page, which has room for as many bytes"
    ),
    "consensus.list": "as those",
    **dict.fromkeys(["long_term.erasures", "catalogue"], "a page of short items, at most 1,000"),
    **dict.fromkeys(["space", "kinds", "configure_space"], "short items, at most 1,000 of a sort"),
    **dict.fromkeys(["long_term.entities", "admin.activity"], "as those, or little more"),
    "erase": "numbers by kind",
    **dict.fromkeys(["admin.status", "admin.verify", "admin.digest"], "some short items for each partition"),
    "admin.repair": "as those",
    **dict.fromkeys(["admin.rebuild", "admin.plan_rebuild", "admin.reindex", "admin.copy"], "as those"),
    **dict.fromkeys(["admin.abort_rebuild", "admin.abort_reindex"], "as those"),
    **dict.fromkeys(["tiers.consolidate"], "ids of one plan"),
    **dict.fromkeys(["working.drain"], "50 values of 64 KiB, which are taken out and must be answered"),
}
"""Operations whose lists need no further bound, and why."""


def lists_of(name: str) -> list[str]:
    fields = getattr(OPERATIONS[name].answer, "model_fields", {})
    return [
        field
        for field, each in fields.items()
        if "tuple" in str(each.annotation)
        and any(
            not isinstance(item, type) or issubclass(item, View) or item is Any for item in get_args(each.annotation)
        )
        and "tuple[str" not in str(each.annotation)
    ]


@pytest.mark.parametrize("name", [name for name in OPERATIONS if lists_of(name)])
def test_every_answer_with_a_list_is_bounded(name: str) -> None:
    answer = OPERATIONS[name].answer
    is_bounded = issubclass(answer, Bounded | PageView)
    assert is_bounded is (name not in BOUNDED_BY_NUMBER), BOUNDED_BY_NUMBER.get(name)


@pytest.fixture
def small_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ANSWER_BYTES_MAX", ROOM)


@asynccontextmanager
async def village(count: int = 40, **fields: Any) -> AsyncIterator[Memory]:
    """A memory with large events of the baker."""
    async with Memory.in_memory() as memory:
        for first in range(0, count, 20):
            await memory.publish_many(
                [
                    event(id=f"e-{n}", turn=n, payload={"text": f"bread {n} {LARGE}"}, **fields)
                    for n in range(first, min(count, first + 20))
                ]
            )
        yield memory


Ask = Callable[[Memory], Awaitable[View]]
ASKED: dict[str, tuple[Ask, str]] = {
    "episodic": (lambda memory: memory.episodic("village", "baker", window=40), "memories"),
    "salient": (lambda memory: memory.salient("village", "baker", "bread", top_k=40), "memories"),
    "recall": (lambda memory: memory.recall("village", "baker", "bread", top_k=40), "hits"),
    "entries": (lambda memory: memory.entries("village", "baker", [f"e-{n}" for n in range(40)]), "entries"),
    "stream.recall": (lambda memory: memory.stream.recall("village", "baker", "bread", limit=40), "memories"),
}


@pytest.mark.models("stream")
@pytest.mark.parametrize("name", ASKED)
@pytest.mark.usefixtures("small_room")
def test_a_list_that_is_too_large_says_how_many_items_are_left_out(name: str) -> None:
    ask, field = ASKED[name]

    async def work() -> None:
        async with village() as memory:
            answer = await ask(memory)
            shown = getattr(answer, field)
            assert 1 <= len(shown) < 40
            assert len(answer.model_dump_json()) < ROOM + limits.ANSWER_EVENTS_LEAST * 25_000
            assert answer.left_out == 40 - len(shown)  # type: ignore[attr-defined]

    run(work())


@pytest.mark.usefixtures("small_room")
def test_the_timeline_has_what_a_window_leaves_out() -> None:
    async def work() -> None:
        async with village() as memory:
            view = await memory.episodic("village", "baker", window=40)
            found, before = [shown.event.id for shown in view.memories], view.memories[0].position
            while len(found) < 40:
                page = await memory.timeline("village", "baker", limit=1000, before=before)
                assert len(page.model_dump_json()) < 2 * ROOM
                found = [shown.event.id for shown in page.items] + found
                before = page.older or before
            assert found == [f"e-{n}" for n in range(40)]
            assert page.older is None

    run(work())


@pytest.mark.usefixtures("small_room")
def test_ids_that_are_left_out_can_be_asked_for_again() -> None:
    async def work() -> None:
        async with village() as memory:
            left, found = [f"e-{n}" for n in range(40)], list[str]()
            while left:
                view = await memory.entries("village", "baker", left)
                found += [shown.event.id for shown in view.entries]
                left = left[len(view.entries) :]
                assert len(left) == view.left_out
            assert found == [f"e-{n}" for n in range(40)]

    run(work())


@pytest.mark.models("items")
@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.usefixtures("small_room")
def test_pages_of_large_items_have_all_of_them(newest_first: bool) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            for number in range(20):
                await memory.items.put("village", "baker", "notes", f"k-{number:02}", LARGE)
            found, cursor = list[str](), None
            while True:
                page = await memory.items.list("village", "baker", newest_first=newest_first, limit=1000, cursor=cursor)
                assert len(page.model_dump_json()) < ROOM + 10_000
                found += [item.key for item in page.items]
                if (cursor := page.next) is None:
                    break
            assert found == sorted((f"k-{number:02}" for number in range(20)), reverse=newest_first)

    run(work())


@pytest.mark.models("long_term")
@pytest.mark.parametrize("order", ["newest", "priority"])
@pytest.mark.parametrize("entry_type", [None, "fact"])
@pytest.mark.usefixtures("small_room")
def test_pages_of_large_entries_have_all_of_them(order: Any, entry_type: Any) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            for number in range(12):
                await memory.long_term.retain("village", "baker", f"{number} {LARGE}{number}", entry_id=f"n-{number}")
            found, cursor = list[str](), None
            while True:
                page = await memory.long_term.list(
                    "village", "baker", order=order, type=entry_type, limit=1000, cursor=cursor
                )
                assert len(page.model_dump_json()) < ROOM + 10_000
                found += [entry.id for entry in page.entries]
                if (cursor := page.next) is None:
                    break
            assert sorted(found) == sorted(f"n-{number}" for number in range(12))

    run(work())


@pytest.mark.models("conversations")
@pytest.mark.usefixtures("small_room")
def test_the_older_messages_of_a_large_conversation_are_asked_for_by_the_first_id() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            said = [{"role": "user", "content": f"{number} {LARGE}"} for number in range(20)]
            await memory.conversation.add("village", "baker", "s-1", said)
            found, before = list[dict[str, Any]](), None
            while True:
                view = await memory.conversation.messages("village", "baker", "s-1", before=before)
                assert len(view.messages) == len(view.ids)
                found = [*view.messages, *found]
                if not view.left_out:
                    break
                before = view.ids[0]
            assert found == said
            with pytest.raises(OutOfRange):
                await memory.conversation.messages("village", "baker", "s-1", before="nothing")

    run(work())


def test_one_item_has_room_whatever_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ANSWER_BYTES_MAX", 1)

    async def work() -> None:
        async with village(9) as memory:
            assert len((await memory.episodic("village", "baker", window=9)).memories) == 1
            assert len((await memory.timeline("village", "baker")).items) == 1

    run(work())


@pytest.mark.models("prompt")
def test_a_window_of_the_largest_events_is_an_answer_of_some_mebibytes(tmp_path: Path) -> None:
    async def prepared() -> Memory:
        memory = Memory.open(Settings(home=tmp_path, index="off"))
        for first in range(0, 60, 20):
            await memory.publish_many(
                [event(id=f"e-{n}", payload={"text": "x" * 250_000}) for n in range(first, first + 20)]
            )
        return memory

    memory = run(prepared())
    door = Door(memory, Settings(home=tmp_path))
    for path, query in (
        ("episodic", {"window": 2000}),
        ("timeline", {"limit": 1000}),
        ("salient", {"top_k": 2000}),
    ):
        answer = door.get(f"/v1/spaces/village/agents/baker/{path}", query)
        assert answer.status_code == 200
        assert len(answer.content) < limits.ANSWER_BYTES_MAX + 1_000_000
        assert answer.json().get("left_out", 0) or answer.json().get("older")
    context = door.post("/v1/spaces/village/agents/baker/context", {})
    assert len(context.content) < 2 * limits.ANSWER_BYTES_MAX
    run(memory.close())


def test_the_answer_of_a_small_list_says_nothing_of_it() -> None:
    async def work() -> None:
        async with village(3) as memory:
            assert "left_out" not in (await memory.episodic("village", "baker")).model_dump_json()

    run(work())


# Pages of lists.


async def pages(ask: Callable[..., Awaitable[Any]], limit: int) -> list[Any]:
    found, cursor = list[Any](), None
    while True:
        page = await ask(limit=limit, cursor=cursor)
        assert len(page.items) <= limit
        found += page.items
        if (cursor := page.next) is None:
            return found


def test_pages_of_spaces_agents_and_sessions_have_each_once(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(Settings(home=tmp_path, index="off")) as memory:
            spaces = [f"s-{n}" for n in range(25)]
            await memory.publish_many([event(space=space) for space in spaces])
            await memory.publish_many([event(space="s-0", agent=f"a-{n}", session=f"t-{n % 7}") for n in range(23)])
            for limit in (1, 4, 24, 25, 26, 1000):
                assert [each.space for each in await pages(memory.spaces, limit)] == sorted(spaces)
                agents = await pages(lambda **more: memory.agents("s-0", **more), limit)
                assert [each.name for each in agents] == sorted({"baker", *(f"a-{n}" for n in range(23))})
                sessions = await pages(lambda **more: memory.sessions("s-0", **more), limit)
                assert [each.name for each in sessions] == ["t-1", "t-0", *(f"t-{n}" for n in (6, 5, 4, 3, 2))]
            with pytest.raises(InvalidArgument):
                await memory.sessions("s-0", cursor="nothing")

    run(work())


@pytest.mark.models("beliefs")
def test_pages_of_pending_triggers_have_each_once() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            for number in range(9):
                settings = event(kind="agent.configured", agent=f"a-{number}", payload={"reflection_threshold": 1})
                await memory.publish_many([settings, event(agent=f"a-{number}")])
            whole = list(await memory.pending())
            assert len(whole) >= 9
            for limit in (1, 2, 8, 9, 1000):
                assert await pages(memory.pending, limit) == whole

    run(work())


def test_pages_of_declared_kinds_have_each_once() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            for space in ("a", "a-b", "b"):
                declared = {f"own.k_{number}": {} for number in "abcd"}
                await memory.publish(event(space=space, kind="space.configured", payload={"kinds": declared}))
            whole = (await memory.catalogue()).kinds
            found, cursor = list[Any](), None
            while True:
                page = await memory.catalogue(limit=5, cursor=cursor)
                found += page.kinds
                if (cursor := page.next) is None:
                    break
            assert tuple(found) == whole

    run(work())


def test_a_page_of_spaces_tells_nothing_of_spaces_that_a_key_does_not_cover() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            covered = [f"acme/{number}" for number in range(7)]
            hidden = [f"{name}/{number}" for name in ("aaa", "acmf", "rival") for number in range(7)]
            await memory.publish_many([event(space=space) for space in (*covered, *hidden)])
            guarded = Guarded(memory, Grant(spaces=("acme/*",), agent="*", verbs=frozenset({Verb.READ})))
            for limit in (1, 2, 3, 6, 7, 8, 1000):

                async def ask(**given: Any) -> Any:
                    page = await guarded.call(OPERATIONS["spaces"], given)
                    assert page.next is None or page.next in covered
                    assert len(page.items) == min(given["limit"], 7) or page.next is None
                    return page

                assert [each.space for each in await pages(ask, limit)] == covered

    run(work())


def test_the_command_says_how_to_get_the_rest(tmp_path: Path) -> None:
    async def prepared() -> None:
        async with Memory.open(Settings(home=tmp_path, index="off")) as memory:
            await memory.publish_many([event(space=f"s-{n}") for n in range(5)])

    run(prepared())
    done = recallog("spaces", "--limit", 2, "--home", tmp_path)
    assert done.code == 0
    assert "more: --cursor s-1" in done.err
    done = recallog("spaces", "--limit", 2, "--cursor", "s-3", "--json", "--home", tmp_path)
    assert [each["space"] for each in done.json["items"]] == ["s-4"]
