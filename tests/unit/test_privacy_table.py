"""The tables of the pages on privacy are true: each row, for each agent, in every operation that shows events."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from recallog import Event, Memory
from recallog.operations.facade import all_operations
from recallog.settings import Settings
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_schemas.errors import OutOfRange
from recallog_schemas.kinds import CATALOGUE
from recallog_schemas.views import View
from support.cli import recallog
from support.events import event, one_loop, run
from support.indexing import catch_up, indexing_of, memory_with
from support.payloads import LEAST

DOCS = Path(__file__).parents[2] / "docs"
EVENTS = DOCS / "privacy.md"
OPERATIONS = DOCS / "privacy" / "operations.md"
AGENTS = ("baker", "miller", "smith")
SECRET = "quicksilver"
PAYLOADS: Mapping[str, dict[str, Any]] = {
    "tool.used": {"tool": "shell", "result": SECRET},
    "agent.reflected": {"belief": SECRET, "about": "the mill", "stance": "for"},
    "run.started": {"goal": SECRET},
    "agent.configured": {"note": SECRET},
    "consensus.recorded": {**LEAST["consensus.recorded"], "conclusion": SECRET},
    "dissent.recorded": {**LEAST["dissent.recorded"], "content": SECRET},
}


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table of events."""

    published: str
    kind: str
    audience: list[str] | None
    configured: dict[str, Any] | None
    """The payload of `space.configured`, if the row names one."""
    before: bool
    """Whether the event is published before it."""
    sees: Mapping[str, bool]
    """Whether each agent sees the event."""

    def events(self, space: str = "village") -> list[Event]:
        """The event, and the setting of its space if the row names one."""
        payload = PAYLOADS.get(self.kind, {"text": SECRET})
        secret = event(self.kind, id="secret", space=space, audience=self.audience, turn=1, payload=payload)
        if self.configured is None:
            return [secret]
        setting = event("space.configured", agent="narrator", space=space, payload=self.configured)
        return [secret, setting] if self.before else [setting, secret]


def rows_of(page: Path) -> list[list[str]]:
    """The cells of the first table of a page."""
    table = re.search(r"(?:^\|.*\n)+", page.read_text(), re.MULTILINE)
    assert table is not None
    lines = table[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def row_of(cells: list[str]) -> Row:
    published, *sees, _ = cells
    found = re.fullmatch(r"`([\w.]+)`(?: for (nobody|`.*?`))?(?: (before|after) `(.*)`)?", published)
    assert found is not None, published
    kind, audience, when, setting = found.groups()
    assert {*sees} <= {"", "sees"}, published
    return Row(
        published,
        kind,
        audience and re.findall("`(.*?)`", audience),
        setting and json.loads(setting),
        when == "before",
        dict(zip(AGENTS, (each == "sees" for each in sees), strict=True)),
    )


ROWS = [row_of(cells) for cells in rows_of(EVENTS)]


def space_of(row: Row) -> str:
    return f"village-{ROWS.index(row)}"


def every_row() -> list[Event]:
    """The events of each row in a space of its own, where each agent has also settings and a thought."""
    published = []
    for row in ROWS:
        space = space_of(row)
        settings = {"reflection_threshold": 1}
        published += [event("agent.configured", space=space, agent=agent, payload=settings) for agent in AGENTS]
        published += row.events(space)
        published += [event("agent.thought", space=space, agent=agent, id=f"anchor-{agent}") for agent in AGENTS]
    return published


@pytest.fixture(scope="module")
def memories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Memory]]:
    """Two memories of the same events: in one recall compares words, the other has an index."""
    home = tmp_path_factory.mktemp("memory")

    async def open_both() -> Mapping[str, Memory]:
        by_words = Memory.open(Settings(home=home, index="off"))
        await by_words.publish_many(every_row())
        engine = EdgeEngine(home / "engine")
        by_index = memory_with(home, lambda ledger: indexing_of(ledger, engine))
        assert by_index._components.index is not None
        await catch_up(by_index._components.index.indexer)
        return {"by words": by_words, "by the index": by_index}

    with one_loop():
        found = run(open_both())
        yield found
        for memory in found.values():
            run(memory.close())


async def shown(memory: Memory, space: str, agent: str) -> Mapping[str, bool]:
    """Each operation that shows events to an agent, and whether it shows the secret."""
    views: dict[str, View] = {
        "episodic": await memory.episodic(space, agent),
        "timeline": await memory.timeline(space, agent),
        "around": await memory.around(space, agent, f"anchor-{agent}", entries_before=50),
        "salient": await memory.salient(space, agent, SECRET),
        "recall": await memory.recall(space, agent, SECRET),
        "search": await memory.search(space, agent, SECRET),
        "entries": await memory.entries(space, agent, ["secret"]),
        "context": await memory.context(space, agent, query="anything else"),
        "reflection": await memory.reflection(space, agent),
        "lineage": await memory.lineage(space, agent, "secret"),
        "diff": await memory.diff(space, agent, "2000-01-01T00:00:00Z"),
        "explain": await memory.explain(space, agent, "secret", query="anything else"),
    }
    found = {name: SECRET in view.model_dump_json(exclude={"query"}) for name, view in views.items()}
    try:
        found["around the event itself"] = SECRET in (await memory.around(space, agent, "secret")).model_dump_json()
    except OutOfRange as error:
        found["around the event itself"] = SECRET in str(error)
    return found


@pytest.mark.models("consensus", "prompt")
@pytest.mark.parametrize("how", ["by words", "by the index"])
@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.published)
def test_an_agent_sees_an_event_in_every_operation_exactly_if_the_table_says_so(
    memories: Mapping[str, Memory], row: Row, agent: str, how: str
) -> None:
    recalled = run(memories[how].recall(space_of(row), agent, SECRET))
    assert (recalled.degraded, recalled.index is not None) == (None, how == "by the index")
    found = run(shown(memories[how], space_of(row), agent))
    # A reflection of its own answers the one that was due, and is not reflected on, as what a tool has printed.
    is_unreflected = (agent, row.kind) == ("baker", "agent.reflected") or row.kind == "tool.used"
    unreflected = {"reflection"} if is_unreflected else set()
    assert found == {operation: row.sees[agent] and operation not in unreflected for operation in found}


@pytest.mark.models("consensus", "prompt")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.published)
def test_no_event_is_seen_in_another_space_or_shown_by_operations_that_name_no_agent(row: Row) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            elsewhere = event("agent.thought", agent="baker", space="town", id="anchor")
            await memory.publish_many([*row.events(), elsewhere])
            for asked in (
                await memory.timeline("town", "baker"),
                await memory.recall("town", "baker", "Bread!"),
                await memory.context("town", "baker"),
                await memory.scene("town"),
                await memory.spaces(),
                await memory.agents("village"),
                await memory.sessions("village"),
                await memory.space("village"),
                await memory.kinds("village"),
                await memory.pending("village"),
                await memory.agent_settings("village", "baker"),
                await memory.admin.status(),
            ):
                assert SECRET not in asked.model_dump_json(), type(asked).__name__
            assert (SECRET in (await memory.scene("village")).model_dump_json()) == (
                row.kind in ("world.observed", "run.started") and row.sees["smith"]
            )

    run(work())


@pytest.mark.models("beliefs", "consensus")
@pytest.mark.parametrize("row", [row for row in ROWS if row.kind == "agent.reflected"], ids=lambda row: row.published)
def test_beliefs_show_a_reader_what_it_may_see_and_the_agent_s_own_program_all(row: Row) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            opposite = {"belief": "It has gone.", "about": "the mill", "stance": "against"}
            everybody = event("agent.reflected", agent="narrator", audience=list(AGENTS), payload=opposite)
            await memory.publish_many([*row.events(), everybody])
            for reader, sees in row.sees.items():
                found = await memory.beliefs("village", "baker", reader=reader)
                assert (SECRET in found.model_dump_json()) == sees, reader
                graph = await memory.beliefs.graph("village", reader)
                assert (SECRET in graph.model_dump_json()) == sees, reader
                contradictions = await memory.beliefs.contradictions("village", reader)
                assert (SECRET in contradictions.model_dump_json()) == sees, reader
            assert SECRET in (await memory.beliefs("village", "baker")).model_dump_json()

    run(work())


def test_what_is_for_operators_shows_everything() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(event("agent.thought", payload={"text": SECRET}))
            raw = [data async for batch in memory.admin.records() for _, data in batch.records]
            assert any(SECRET.encode() in data for data in raw)

    run(work())


def test_the_table_has_every_kind_that_is_shared_and_an_example_of_each_rule() -> None:
    assert {row.kind for row in ROWS} >= {kind.name for kind in CATALOGUE.values() if kind.shared}
    assert {row.audience is None for row in ROWS} == {row.before for row in ROWS} == {True, False}


@pytest.mark.models("all")
def test_the_table_of_operations_names_each_operation_once() -> None:
    listed = [name for cells in rows_of(OPERATIONS) for name in re.findall("`(.*?)`", cells[0])]
    assert sorted(listed) == sorted(all_operations(Memory))


# A person's PIN was told to the assistant of another one.


def conversation(user: str, text: str) -> dict[str, Any]:
    return {
        "id": f"call-{user}",
        "messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "OK"}],
    }


@pytest.mark.models("all")
@pytest.mark.parametrize("named", [False, True], ids=["anonymous", "with user_id"])
def test_bobs_assistant_does_not_recall_the_pin_that_alice_told_hers(tmp_path: Path, named: bool) -> None:
    told = [conversation("alice", f"My PIN is {SECRET}."), conversation("bob", "What is the PIN?")]
    if named:
        told = [each | {"user_id": user} for each, user in zip(told, ("alice", "bob"), strict=True)]
    chats = tmp_path / "chats.json"
    chats.write_text(json.dumps(told))
    home = tmp_path / "home"
    assert recallog("ingest", chats, "--format", "chat", "--home", home).code == 0
    seen = {}
    for space in [each["space"] for each in recallog("spaces", "--home", home, "--json").json["items"]]:
        agents = recallog("agents", space, "--home", home, "--json").json["items"]
        questions = [["timeline"], ["recall", "What is the PIN?"], ["search", "What is the PIN?"], ["context"]]
        asked = [
            recallog(command, space, agent["name"], *rest, "--home", home, "--json").out
            for agent in agents
            for command, *rest in questions
        ]
        seen[space] = SECRET in "".join(asked)
    assert sorted(seen.values()) == [False, True]
    assert all(("alice" in space) == is_seen for space, is_seen in seen.items())


def test_conversations_of_a_given_space_are_heard_by_all_its_agents(tmp_path: Path) -> None:
    chats = tmp_path / "chats.json"
    chats.write_text(
        json.dumps([conversation("alice", f"My PIN is {SECRET}."), conversation("bob", "What is the PIN?")])
    )
    home = tmp_path / "home"
    assert recallog("ingest", chats, "--format", "chat", "--space", "s", "--home", home).code == 0
    assert SECRET in recallog("recall", "s", "assistant", "What is the PIN?", "--home", home).out


# What the page says about erasure.


def test_events_are_removed_by_ingesting_an_export_without_them(tmp_path: Path) -> None:
    old, new, kept = tmp_path / "old", tmp_path / "new", tmp_path / "kept.jsonl"

    async def work() -> None:
        async with Memory.open(old) as memory:
            secret = event("agent.thought", id="secret", payload={"text": SECRET})
            whisper = event(id="whisper", audience=["miller"], turn=2)
            await memory.publish_many([secret, whisper, event("world.observed", id="fire", space="town")])

    run(work())
    lines = recallog("export", "--home", old).out.splitlines(keepends=True)
    kept.write_text("".join(line for line in lines if SECRET not in line))
    assert recallog("ingest", kept, "--home", new).code == 0
    exported = recallog("export", "--home", new).out
    assert SECRET in recallog("export", "--home", old).out
    assert exported == kept.read_text()
