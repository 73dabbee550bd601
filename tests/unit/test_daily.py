"""The daily log: which ends of turns make it due, which messages become lines, and what becomes of the documents."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recallog import Event, Memory
from recallog.composition import assemble
from recallog.models.workspace import daily_cues
from recallog_projections.models.items import fact_blocks
from recallog_projections.models.items import projection as items
from recallog_projections.stores.memory import MemoryStore
from recallog_schemas import limits, triggers
from recallog_schemas.models.beliefs.triggers import REFLECTION
from recallog_schemas.models.facts.triggers import EXTRACTION
from recallog_schemas.models.items import limits as items_limits
from recallog_schemas.models.long_term.triggers import MIGRATION
from recallog_schemas.models.workspace.triggers import DAILY
from recallog_streams.ledgers.memory import MemoryLedger
from support import daily_oracle
from support.daily_oracle import Session
from support.events import event, recorded, run
from support.waiting import until

pytestmark = pytest.mark.models("beliefs", "facts", "workspace")

SPACE, AGENT = "village", "baker"
EVENING = datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC)
REQUEST = "Please remember that I am allergic to nuts."
LINE = f"- User asked: {REQUEST}"


def asked(text: str, session: str | None = "x1", **fields: Any) -> Event:
    """A message of a user to the agent."""
    return event(
        "user.injected", agent="user", session=session, **{"audience": (AGENT,), "payload": {"text": text}, **fields}
    )


def answered(text: str = "Good.", session: str | None = "x1", **fields: Any) -> Event:
    return event(session=session, payload={"text": text}, **fields)


def ended(session: str | None = "x1", **fields: Any) -> Event:
    return event("turn.ended", session=session, payload={}, **{"at": EVENING, **fields})


def talk(count: int, *, request: str = REQUEST, session: str | None = "x1") -> list[Event]:
    """`count` messages of a session, whose first one is a request."""
    said = [asked(request, session)]
    return said + [answered(f"Answer {number}.", session) for number in range(count - 1)]


def set_to(**daily: Any) -> Event:
    return event("agent.configured", payload={"daily": daily})


async def appended(memory: Memory) -> list[tuple[str, list[str]]]:
    """The key and the lines of each part of the log, in the order of the ledger."""
    events = [each for each in await recorded(memory) if each.kind == "item.appended"]
    return [(each.payload["key"], each.payload["text"].split("\n")) for each in events]


async def logged(memory: Memory, session: str | None = "x1") -> list[str]:
    """The lines of the documents of all days, after everything that is due was answered."""
    await memory.react()
    return [line for key, lines in await appended(memory) if key.startswith("memory/") for line in lines]


async def text_of(
    memory: Memory, key: str, namespace: Sequence[str] = fact_blocks.WORKSPACE, agent: str = AGENT
) -> Any:
    """The value of an item; None if there is none."""
    row = await memory.row(items.ROWS, SPACE, agent, items.path_of(namespace, key))
    return None if row is None else items.value_of(row)


def lines_after(*events: Event) -> list[str]:
    """The lines of the log of the agent after these events and the end of its turn."""

    async def work() -> list[str]:
        async with Memory.in_memory() as memory:
            await memory.publish_many([*events, ended()])
            return await logged(memory)

    return run(work())


# Which ends of turns make it due.


@pytest.mark.parametrize(("count", "lines"), [(1, []), (5, []), (6, [LINE]), (7, [LINE])])
def test_it_is_due_from_six_messages_on(count: int, lines: list[str]) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([*talk(count), ended(turn=7)])
            pending = await memory.pending()
            assert [(each.kind, each.agent) for each in pending] == [("daily.due", AGENT)] * (count >= 6)
            for each in pending:
                assert each.format().startswith(f"{SPACE}  {AGENT}  daily.due  1 session  since 2026-03-01 23:59:59")
            assert await logged(memory) == lines
            assert not await memory.pending()
            assert not await memory.react()

    run(work())


def test_only_messages_of_the_session_that_the_agent_sees_count() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            others = [
                *[event("tool.used", session="x1", payload={"tool": "oven"}) for _ in range(9)],
                *[event("agent.thought", session="x1") for _ in range(9)],
                *[answered(session="x2") for _ in range(5)],
                *[answered(session=None) for _ in range(9)],
                *[answered(agent="miller") for _ in range(9)],
                *[asked("To the miller alone.", audience=("miller",)) for _ in range(9)],
            ]
            await memory.publish_many([*others, *talk(5), ended(), ended("x2"), ended(None), ended("x3")])
            assert not await memory.pending()
            # Each of these makes one more session long enough: own ones, addressed ones and shared ones.
            await memory.publish_many([answered(agent="miller", audience=(AGENT,)), ended()])
            assert [each.kind for each in await memory.pending()] == ["daily.due"]
            await memory.publish_many([asked("To all.", "x2", audience=None), ended("x2")])
            assert len(await memory.pending()) == 2

    run(work())


def test_all_agents_see_the_shared_messages_of_a_session() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            said = [asked(f"{REQUEST} {number}", audience=None) for number in range(6)]
            await memory.publish_many([*said, ended(), ended(agent="miller")])
            await memory.publish_many([answered(), ended(), ended(agent="newcomer")])
            await memory.react()
            for agent in (AGENT, "miller", "newcomer"):
                assert (await text_of(memory, "memory/2026-03-01.md", agent=agent)).count("- User asked") == 6

    run(work())


def test_further_lines_come_from_the_messages_since_the_last_ones() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([*talk(6), ended()])
            await memory.publish_many([asked("I need a cake with cherries for Monday."), *talk(5)[1:], ended()])
            assert await logged(memory) == [LINE]
            await memory.publish_many([answered("The cake is done."), ended()])
            assert await logged(memory) == [
                LINE, "- User asked: I need a cake with cherries for Monday.", "- Done: The cake is done.",
            ]  # fmt: skip

    run(work())


def test_a_setting_turns_it_off_and_on() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            assert (await memory.agent_settings(SPACE, AGENT)).daily.enabled
            await memory.publish_many([set_to(enabled=False), *talk(6), ended()])
            assert not await memory.pending()
            assert not (await memory.agent_settings(SPACE, AGENT)).daily.enabled
            await memory.publish_many([set_to(enabled=True), ended()])
            assert await logged(memory) == [LINE]

    run(work())


def test_a_setting_chooses_the_language_of_the_lines() -> None:
    async def work() -> None:
        chinese = "请帮我把发布流程的文档整理好，然后把它发给整个团队看一看，谢谢你，我们周五之前要用到它"
        async with Memory.in_memory() as memory:
            for number, language in enumerate(["cue", "english", "chinese"]):
                session = f"x{number}"
                said = [*talk(6, session=session), asked(chinese, session), answered("已完成。", session)]
                await memory.publish_many([set_to(language=language), *said, ended(session)])
                await memory.react()
            expected = {
                "x0": [LINE, f"- 用户请求: {chinese}", "- 完成事项: 已完成。"],
                "x1": [LINE, f"- User asked: {chinese}", "- Done: 已完成。"],
                "x2": [f"- 用户请求: {REQUEST}", f"- 用户请求: {chinese}", "- 完成事项: 已完成。"],
            }
            for session, lines in expected.items():
                assert await text_of(memory, "session_facts", ("session", session)) == "\n".join(lines)

    run(work())


# Which messages become lines.


def test_a_cue_outside_the_last_20_messages_is_ignored() -> None:
    fillers = [answered(f"Answer {number}.") for number in range(20)]
    assert lines_after(asked(REQUEST), *fillers[:19]) == [LINE]
    assert lines_after(asked(REQUEST), *fillers) == []
    call = event("tool.used", session="x1", payload={"tool": "oven", "result": "hot"})
    assert lines_after(asked(REQUEST), *fillers[:19], call) == [LINE]
    assert lines_after(asked(REQUEST), *fillers, call) == []


def test_of_twelve_candidates_eight_become_lines() -> None:
    said = [asked(f"I need {number} loaves of your best bread.") for number in range(12)]
    assert lines_after(*said) == [f"- User asked: I need {number} loaves of your best bread." for number in range(8)]


def test_equal_lines_are_one() -> None:
    assert lines_after(*[asked(REQUEST) for _ in range(7)]) == [LINE]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("请" + "好" * 29, None),
        ("请" + "好" * 30, "用户请求: 请" + "好" * 30),
        ("  请" + "好" * 29 + " \n", None),
        ("请" + "好" * 300, "用户请求: 请" + "好" * 199),
        ("好" * 199 + "请", "用户请求: " + "好" * 199 + "请"),
        ("好" * 200 + "请", None),
        ("The first line says hello.\nPlease read the second one.", None),
        ("Please read the first line.\nAnd not the second one.", "User asked: Please read the first line."),
        ("\n\nPlease  read the first line\tof all.", "User asked: Please read the first line of all."),
        ("I would be PLEASED to have some bread.", None),
        ("He is needy, unhelpful, and wants the bread.", None),
        ("COULD  YOU bake some bread on Sunday, maybe?", "User asked: COULD YOU bake some bread on Sunday, maybe?"),
        ("How about you? You could bake some bread.", None),
        ("I know how bread is made: you can do it too.", None),
        ("Tell me how to bake a bread without flour.", "User asked: Tell me how to bake a bread without flour."),
        ("Do you remember-or not-what bread I bought?", "User asked: Do you remember-or not-what bread I bought?"),
        ("need_to_bake is the name of the function here.", None),
    ],
)  # fmt: skip
def test_a_request_has_a_cue_in_its_first_line(text: str, line: str | None) -> None:
    assert lines_after(asked(text), *[answered() for _ in range(5)]) == ([] if line is None else [f"- {line}"])


def test_an_english_cue_needs_no_spaces_beside_chinese() -> None:
    text = "把文档整理好please然后把它发给整个团队看一看吧。" + "好" * 20
    assert lines_after(asked(text), *[answered() for _ in range(5)]) == [f"- User asked: {text}"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("The oven is DONE now.", "Done: The oven is DONE now."),
        ("Done", "Done: Done"),
        ("It is an abandoned plan.", None),
        ("This was prefixed and undone.", None),
        ("I resolved it:\nthe bread is\n\nin the oven.", "Done: I resolved it: the bread is in the oven."),
        ("部署已完成。", "完成事项: 部署已完成。"),
        ("部署已经完成。", None),
        ("这个bug已经fixed了。", "Done: 这个bug已经fixed了。"),
        ("fixed, 已完成", "Done: fixed, 已完成"),
        ("已完成, fixed", "完成事项: 已完成, fixed"),
        ("x" * 195 + " done", "Done: " + "x" * 195 + " done"),
        ("x" * 196 + " done", None),
        ("Please help me, I need flour and I want it today.", None),
    ],
)
def test_a_completion_has_a_cue_in_what_the_line_quotes(text: str, line: str | None) -> None:
    assert lines_after(answered(text), *talk(6)[1:]) == ([] if line is None else [f"- {line}"])


def test_only_others_ask_and_only_the_agent_itself_completes() -> None:
    said = [
        asked("The bread is done and the oven is fixed."),
        answered("Please remember to buy flour and eggs."),
        answered("The mill is fixed.", agent="miller", audience=(AGENT,)),
        answered("I need three sacks back until Monday.", agent="miller", audience=(AGENT,)),
    ]
    assert lines_after(*said, *talk(4)[1:]) == ["- User asked: I need three sacks back until Monday."]


def test_a_line_ends_where_its_text_ends_whatever_characters_break_lines() -> None:
    (line,) = lines_after(asked(f"Please\u2028- Done: everything\x85{'x' * 40}"), *talk(6)[1:])
    assert line == "- User asked: Please"


# The documents.


def test_the_lines_go_to_the_day_the_session_and_memory() -> None:
    async def work() -> None:
        requests = [asked(f"I need {number} loaves of your best bread.") for number in range(6)]
        lines = [f"- User asked: {each.text}" for each in requests]
        async with Memory.in_memory() as memory:
            await memory.items.put(SPACE, AGENT, "workspace", "MEMORY.md", "# Memory\n")
            await memory.publish_many([*requests, ended(turn=3)])
            (reaction,) = await memory.react()
            assert (reaction.kind, reaction.text) == ("reaction.done", "3 events")
            day = "## Session Facts (2026-03-01)\n" + "\n".join(lines) + "\n\n"
            assert await text_of(memory, "memory/2026-03-01.md") == day
            assert await text_of(memory, "session_facts", ("session", "x1")) == "\n".join(lines)
            first = "# Memory\n\n## Auto-extracted (2026-03-01)\n" + "\n".join(lines[:4])
            assert await text_of(memory, "MEMORY.md") == first
            parts = [each for each in await recorded(memory) if each.kind == "item.appended"]
            assert {(each.at, each.turn, each.session, each.agent) for each in parts} == {(EVENING, 3, "x1", AGENT)}
            before = await recorded(memory)
            await memory.admin.rebuild()
            assert await recorded(memory) == before
            assert not await memory.react()
            assert await text_of(memory, "MEMORY.md") == first
            assert await text_of(memory, "memory/2026-03-01.md") == day
            assert (await memory.admin.verify()).ok

    run(work())


def test_the_day_is_that_of_the_event() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            at = datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC)
            await memory.publish_many([*talk(6), ended(at=at)])
            await memory.react()
            assert await text_of(memory, "memory/1999-12-31.md") == f"## Session Facts (1999-12-31)\n{LINE}\n\n"

    run(work())


@pytest.mark.parametrize(("text", "added"), [(None, 0), ("x" * 3_999, 1), ("x" * 4_000, 0), ([1], 0)])
def test_memory_gets_lines_where_it_is_a_text_with_room(text: Any, added: int) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            if text is not None:
                await memory.items.put(SPACE, AGENT, "workspace", "MEMORY.md", text)
            await memory.publish_many([*talk(6), ended()])
            (reaction,) = await memory.react()
            assert reaction.text == f"{2 + added} events"
            expected = f"{text}\n## Auto-extracted (2026-03-01)\n{LINE}" if added else text
            assert await text_of(memory, "MEMORY.md") == expected

    run(work())


@pytest.mark.parametrize("before", ["# Memory", None])
def test_whether_memory_gets_lines_is_decided_when_the_turn_ends(before: str | None) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            if before is not None:
                await memory.items.put(SPACE, AGENT, "workspace", "MEMORY.md", before)
            await memory.publish_many([*talk(6), ended()])
            if before is None:
                await memory.items.put(SPACE, AGENT, "workspace", "MEMORY.md", "later")
            else:
                await memory.items.delete(SPACE, AGENT, "workspace", "MEMORY.md")
            (reaction,) = await memory.react()
            assert reaction.text == ("2 events" if before is None else "3 events")  # of which one is refused
            assert await text_of(memory, "MEMORY.md") == ("later" if before is None else None)

    run(work())


@pytest.mark.models("working")
def test_the_three_do_not_hinder_each_other() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.items.put(SPACE, AGENT, "workspace", "memory/2026-03-01.md", "x" * 8_000)
            await memory.items.put(SPACE, AGENT, "workspace", "MEMORY.md", "")
            await memory.publish_many([*talk(6), ended()])
            await memory.react()
            assert await text_of(memory, "memory/2026-03-01.md") == "x" * 8_000
            assert LINE in await text_of(memory, "MEMORY.md")
            assert await text_of(memory, "session_facts", ("session", "x1")) == LINE
            for number in range(items_limits.SCRATCHPAD_KEYS_MAX):
                await memory.working.set(SPACE, AGENT, f"key {number}", "x", session="x2")
            await memory.publish_many([*talk(6, session="x2"), ended("x2", at=datetime(2026, 3, 2, tzinfo=UTC))])
            await memory.react()
            assert LINE in await text_of(memory, "memory/2026-03-02.md")
            assert await text_of(memory, "session_facts", ("session", "x2")) is None
            assert (await text_of(memory, "MEMORY.md")).count(LINE) == 2

    run(work())


def test_messages_without_cues_write_nothing() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([*[answered() for _ in range(6)], ended()])
            (reaction,) = await memory.react()
            assert (reaction.kind, reaction.text) == ("reaction.done", "0 events")
            assert await appended(memory) == []

    run(work())


def test_lines_about_one_person_name_it_as_their_subject() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            anna = [asked(f"{REQUEST} {number}", subject="anna") for number in range(3)]
            await memory.publish_many([*anna, *talk(6)[1:], ended()])
            await memory.publish_many([*anna, *talk(6), ended()])
            await memory.react()
            parts = [each for each in await recorded(memory) if each.kind == "item.appended"]
            assert [each.subject for each in parts] == ["anna", "anna", None, None]

    run(work())


# Conversations.


def test_messages_of_a_conversation_are_noted_and_those_that_were_taken_out_are_not() -> None:
    async def work() -> None:
        calls = [{"id": "c1", "type": "function", "function": {"name": "oven", "arguments": "{}"}}]
        said = [
            {"role": "system", "content": "Please always help the user as well as you can."},
            {"role": "user", "content": [{"type": "text", "text": REQUEST}]},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c1", "content": "The bread is done, and I need more wood for it."},
            {"role": "assistant", "content": "I have fixed the oven."},
            {"role": "user", "content": "I need a cake with cherries for Monday."},
        ]
        async with Memory.in_memory() as memory:
            at = SPACE, AGENT, "x1"
            await memory.conversation.add(*at, said)
            await memory.publish(ended())
            assert not await memory.pending()  # neither the instructions nor the call of a tool was said
            await memory.conversation.pop(*at)
            more = [{"role": role, "content": f"{role} {n}"} for n in range(2) for role in ("user", "assistant")]
            await memory.conversation.add(*at, more, continues=True)
            await memory.publish(ended())
            assert await logged(memory) == [LINE, "- Done: I have fixed the oven."]

    run(work())


def test_many_calls_of_tools_push_no_message_out_of_the_last_20() -> None:
    async def work() -> None:
        tools = [event("tool.used", session="x1", payload={"tool": "oven", "result": f"{n}"}) for n in range(100)]
        async with Memory.in_memory() as memory:
            said = talk(20)
            await memory.publish_many([each for pair in zip(said, *[iter(tools)] * 5, strict=True) for each in pair])
            await memory.publish(ended())
            assert await logged(memory) == [LINE]

    run(work())


def test_what_a_compaction_has_replaced_is_still_noted() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many(talk(19))
            await memory.conversation.compact(SPACE, AGENT, "x1", max_messages=8, keep=4)
            await memory.publish(ended())
            assert await logged(memory) == [LINE]

    run(work())


# Twice, at once, and interrupted.


def test_with_every_event_delivered_twice_the_lines_are_there_once() -> None:
    async def work() -> None:
        ledger = MemoryLedger(unique_ids=False)
        async with Memory(assemble(ledger, lambda namespace: MemoryStore())) as memory:
            for each in [*talk(5), ended()]:
                await memory.publish(each)
                await memory.publish(each)
            assert not await memory.pending()
            for each in [answered("It is done."), ended()]:
                await memory.publish(each)
                await memory.publish(each)
            await memory.react()
            day = f"## Session Facts (2026-03-01)\n{LINE}\n- Done: It is done.\n\n"
            for _ in range(2):
                assert await text_of(memory, "memory/2026-03-01.md") == day
                assert await text_of(memory, "session_facts", ("session", "x1")) == f"{LINE}\n- Done: It is done."
                await memory.publish_many([each for each in await recorded(memory) if each.causation_id])
                assert not await memory.react()
                await memory.admin.rebuild()

    run(work())


@pytest.mark.parametrize("unique_ids", [True, False])
@pytest.mark.parametrize("written", [0, 1, 2, 3])
def test_a_crash_between_the_parts_loses_and_doubles_none(written: int, unique_ids: bool) -> None:
    turn = [*talk(6), ended()]

    async def begun(memory: Memory) -> None:
        await memory.items.put(SPACE, AGENT, "workspace", "MEMORY.md", "")
        await memory.publish_many(turn)

    async def work() -> None:
        async with Memory.in_memory() as undisturbed:
            await begun(undisturbed)
            await undisturbed.react()
            parts = [each for each in await recorded(undisturbed) if each.kind == "item.appended"]
        ledger = MemoryLedger(unique_ids=unique_ids)
        async with Memory(assemble(ledger, lambda namespace: MemoryStore())) as memory:
            await begun(memory)
            await memory.publish_many(parts[:written])
            (reaction,) = await memory.react()
            assert reaction.text == "3 events"
            for _ in range(2):
                assert await text_of(memory, "memory/2026-03-01.md") == f"## Session Facts (2026-03-01)\n{LINE}\n\n"
                assert await text_of(memory, "session_facts", ("session", "x1")) == LINE
                assert await text_of(memory, "MEMORY.md") == f"\n## Auto-extracted (2026-03-01)\n{LINE}"
                assert not await memory.pending()
                await memory.admin.rebuild()

    run(work())


def test_two_that_answer_at_once_write_one_answer() -> None:
    async def work() -> None:
        ledger = MemoryLedger()
        first, second = (Memory(assemble(ledger, lambda namespace: MemoryStore())) for _ in range(2))
        async with first, second:
            await first.items.put(SPACE, AGENT, "workspace", "MEMORY.md", "")
            await first.publish_many([*talk(6), ended()])
            (pending,) = await first.pending()
            answer = [each.answer_due(SPACE, AGENT, pending.trigger) for each in (first, second)]
            await asyncio.gather(*answer)
            assert len(await appended(first)) == 3
            assert await text_of(second, "memory/2026-03-01.md") == f"## Session Facts (2026-03-01)\n{LINE}\n\n"
            assert not await second.pending()

    run(work())


@pytest.mark.parametrize("others", [50, limits.LOG_EVENTS_KEPT + 10])
def test_messages_that_the_views_have_dropped_are_read_as_of_the_end_of_the_turn(others: int) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([*talk(6), ended()])
            await memory.publish_many([answered(f"Answer {number}.", "x2") for number in range(others)])
            assert await logged(memory) == [LINE]

    run(work())


def test_it_is_answered_in_the_background() -> None:
    async def work() -> None:
        async with Memory.in_memory(reactors=True) as memory:
            await memory.publish_many([*talk(6), ended()])

            async def written() -> bool:
                return await text_of(memory, "memory/2026-03-01.md") is not None

            await until(written, "the daily log is written")

    run(work())


def test_it_is_answered_after_all_others() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            thresholds = event("agent.configured", payload={"extract_facts": True, "reflection_threshold": 3})
            note = event("item.put", payload={"namespace": ["working"], "key": "k", "value": "NOTE: a note"})
            await memory.publish_many([thresholds, note, *talk(6), ended()])
            await memory.publish_many([event("session.ended", session="x1", payload={})])
            reactions = await memory.react()
            kinds = [triggers.parse(each.trigger) for each in reactions]
            assert [each.kind for each in kinds if each is not None] == [
                MIGRATION, EXTRACTION, REFLECTION, DAILY,
            ]  # fmt: skip

    run(work())


# Against an oracle.

ENGLISH = """please Help need wants how do to can could you remember done DONE undone completed finished fixed created
deployed resolved abandoned . _ - : x bread Ünder"""
CHINESE = "请 帮 要 需要 希望 如何 怎么 已完成 已 完成 好 ， 。"
words = st.sampled_from(f"{ENGLISH} {CHINESE}".split())
gaps = st.sampled_from([" ", " ", " ", "  ", "", "\n", "\t", "\u2028", "\x1c"])
texts = st.lists(st.tuples(words, gaps), max_size=80).map(lambda pairs: "".join(word + gap for word, gap in pairs))


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(["user", "agent"]), texts, st.sampled_from(["cue", "english", "chinese"]))
@example("user", "please" + " " * 30 + "x", "cue")
def test_a_line_is_what_the_oracle_makes_of_a_message(speaker: Any, text: str, language: Any) -> None:
    assert daily_cues.line_of(speaker, text, language) == daily_oracle.line_of(speaker == "user", text, language)


messages = st.sampled_from([REQUEST, "I need flour.", "Good.", "It is done.", "部署已完成。", "请帮我" + "好" * 30])
agents, sessions = st.sampled_from([AGENT, "miller"]), st.sampled_from(["x1", "x2", None])
steps = st.one_of(
    st.tuples(st.just("asks"), agents, sessions, messages),
    st.tuples(st.just("asks all"), agents, sessions, messages),
    st.tuples(st.just("says"), agents, sessions, messages),
    st.tuples(st.just("says"), agents, sessions, messages),
    st.tuples(st.just("ends"), agents, sessions, st.just("")),
    st.tuples(st.just("sets"), agents, st.none(), st.sampled_from(["on", "off"])),
    st.tuples(st.just("reacts"), agents, st.none(), st.just("")),
    st.tuples(st.just("talks"), agents, sessions, messages),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(steps, max_size=25), st.booleans())
def test_each_message_becomes_lines_of_those_that_saw_it_once(
    history: list[tuple[str, str, str | None, str]], twice: bool
) -> None:
    expected: list[tuple[str, str | None, list[str]]] = []
    seen: dict[tuple[str, str | None], Session] = {}
    is_on: dict[str, bool] = {}

    def heard(readers: Sequence[str], session: str | None, of_user: bool, text: str, author: str) -> None:
        for reader in readers:
            seen.setdefault((reader, session), Session()).unread.append((of_user or reader != author, text))

    async def work() -> None:
        ledger = MemoryLedger(unique_ids=not twice)
        async with Memory(assemble(ledger, lambda namespace: MemoryStore())) as memory:

            async def publish(each: Event) -> None:
                for _ in range(1 + twice):
                    await memory.publish(each)

            for what, agent, session, text in history:
                if what == "reacts":
                    await memory.react()
                elif what == "sets":
                    is_on[agent] = text == "on"
                    daily = {"daily": {"enabled": text == "on"}}
                    await publish(event("agent.configured", agent=agent, payload=daily))
                elif what == "ends":
                    await publish(ended(session, agent=agent))
                    lines = None
                    if session is not None and is_on.get(agent, True) and (agent, session) in seen:
                        lines = daily_oracle.lines_of(seen[agent, session])
                    if lines:
                        expected.append((agent, session, lines))
                elif what == "talks":
                    for number in range(7):
                        await publish(answered(f"{text} {number}", session, agent=agent))
                        heard([agent], session, False, f"{text} {number}", agent)
                elif what == "says":
                    await publish(answered(text, session, agent=agent))
                    heard([agent], session, False, text, agent)
                else:
                    readers = [agent] if what == "asks" else [AGENT, "miller"]
                    await publish(asked(text, session, audience=(agent,) if what == "asks" else None))
                    heard(readers, session, True, text, "user")
            await memory.admin.rebuild()
            while await memory.react():
                pass
            parts = [each for each in await recorded(memory) if each.kind == "item.appended"]
            days = [each for each in parts if each.payload["key"].startswith("memory/")]
            found = [(each.agent, each.session, each.payload["text"].split("\n")) for each in days]
            assert sorted(found, key=str) == sorted(expected, key=str)
            scratchpads = [each for each in parts if each.payload["key"] == "session_facts"]
            assert [each.payload["text"] for each in scratchpads] == [each.payload["text"] for each in days]

    run(work())
