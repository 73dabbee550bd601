"""`recallog import`: stores of other memories, read by their published schemas."""

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog import InvalidArgument, Memory
from recallog.sync import Memory as SyncMemory
from recallog.views import EntryView
from recallog_formats.importing import ORIGIN, ImportOptions, ImportResult, StoreImport
from recallog_formats.stores import agenticx, aragora, genesis, langgraph, letta, mem0, tramontane
from recallog_formats.stores.store import Destination, StoreFormat, time_of_row
from recallog_schemas import limits
from support import other_stores
from support.cli import Result, recallog
from support.events import run

pytestmark = pytest.mark.models("all")

INTO = Destination("office", "gerald")
OF = "office", "gerald"


async def take(
    memory: Memory, path: Path, store: StoreFormat = tramontane.STORE, into: Destination = INTO, **options: Any
) -> ImportResult:
    return await StoreImport(memory, store, ImportOptions(**options)).run(path, into, lambda done, total: None)


async def find_entry(memory: Memory, id_: str) -> EntryView:
    entry = (await memory.long_term.get(*OF, id_)).entry
    assert entry is not None
    return entry


def counts(result: ImportResult) -> tuple[int, int, int, int]:
    return result.added, result.changed, result.unchanged, len(result.problems)


@dataclass(frozen=True)
class System:
    """A system with a small store, where its rows go, and a question that finds one of them."""

    name: str
    make: Callable[[Path], Path]
    options: tuple[str, ...]
    space: str
    agent: str
    question: str
    answer: str
    left_out: dict[str, str]
    """By a place, a part of the reason."""
    refused: tuple[str, ...] = ()
    directed: int = 0
    """Rows that need --trust agent."""


SYSTEMS = [
    System(
        "aragora",
        other_stores.aragora,
        ("--space", "debates", "--agent", "critic"),
        "debates",
        "critic",
        "What floods the queue?",
        "Unbounded retries flood the queue.",
        {"continuum_memory e-4": "expired", "continuum_memory_archive": "archived"},
        ("continuum_memory e-3",),
    ),
    System(
        "tramontane",
        other_stores.tramontane,
        ("--space", "office", "--agent", "gerald"),
        *OF,
        "What does Quill buy?",
        "Quill Ltd buys oak.",
        {"factual_memory f-2": "erased there", "entity_links": "graph", "working_memory w-1": "--trust agent"},
        ("factual_memory f-3",),
        1,
    ),
    System(
        "genesis",
        other_stores.genesis,
        ("--space", "ecology"),
        "ecology",
        "alpha_3",
        "What to look at before a purchase?",
        "LESSON: look at the balance before a purchase",
        {"artifact calculator": "not memories", "balances": "grant"},
        ("artifact alpha_3_longterm entry m-2",),
        2,
    ),
    System(
        "ledger-view",
        other_stores.ledger_view,
        (),
        "village",
        "baker",
        "Who burned the mill?",
        "The mill burned.",
        {"events evt-3": "agent.reflected need --trust agent"},
        ("events evt-4", "events evt-5"),
        1,
    ),
    System(
        "agenticx",
        other_stores.agenticx,
        ("--space", "home"),
        "home",
        "assistant",
        "Where does Lea sleep?",
        "In the attic.",
        {"scratchpad s-1 subagent_result::7": "reserved", "document MEMORY.md": "--trust agent", "todos": "tasks"},
        (),
        3,
    ),
    System(
        "mem0",
        other_stores.mem0,
        (),
        "user/alex",
        "assistant",
        "Allergic to what?",
        "Allergic to nuts",
        {"relations": "graph"},
        ("memory m-3",),
    ),
    System(
        "letta",
        other_stores.letta,
        ("--space", "home"),
        "home",
        "baker",
        "Where do plums grow?",
        "Behind the mill.",
        {"block block-0": "--trust agent", "session agent-0": "agent.configured", "tools": "tools"},
        ("block block-1",),
        2,
    ),
]


def import_store(system: System, store: Path, home: Path, *more: str) -> Result:
    return recallog("import", system.name, store, *system.options, *more, "--home", home, RECALLOG_INDEX="off")


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_a_store_is_imported_once_and_is_recalled(system: System, tmp_path: Path) -> None:
    folder, home = tmp_path / "theirs", tmp_path / "ours"
    folder.mkdir()
    store = system.make(folder)
    before = {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()}

    tried = import_store(system, store, home, "--dry-run", "--json").json
    assert not home.exists()
    first = import_store(system, store, home, "--json")
    assert first.code == bool(system.refused)
    assert first.json["added"] == tried["added"] > 0
    assert tuple(each["place"] for each in first.json["problems"]) == system.refused
    reasons = {each["place"]: each["why"] for each in first.json["left_out"]}
    assert {place: why in reasons[place] for place, why in system.left_out.items()} == dict.fromkeys(
        system.left_out, True
    )
    assert first.json["classes"] == {"import": first.json["added"]}

    second = import_store(system, store, home, "--json").json
    assert (second["added"], second["changed"], second["unchanged"]) == (0, 0, first.json["added"])
    with SyncMemory.open(home) as memory:
        found = memory.recall(system.space, system.agent, system.question, top_k=3).hits
        assert system.answer in {hit.text for hit in found}
        assert {hit.trust for hit in found} == {"import"}

    trusted = import_store(system, store, home, "--trust", "agent", "--json").json
    assert trusted["added"] == system.directed
    assert not any("--trust" in each["why"] for each in trusted["left_out"])
    assert {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()} == before


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_the_report_names_what_was_refused_and_left_out(system: System, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    done = import_store(system, system.make(tmp_path / "theirs"), tmp_path / "ours")
    for place in system.refused:
        assert f"refused {place}: " in done.err
    for place in system.left_out:
        assert place in done.out
    assert "no facts and no beliefs are made from imports" in done.out


def test_an_entry_has_the_fields_and_the_time_of_its_row(tmp_path: Path) -> None:
    store = other_stores.aragora(tmp_path)
    with SyncMemory.open(tmp_path / "ours") as memory:
        assert recallog("import", "aragora", store, "--space", "d", "--home", tmp_path / "ours").code == 1
        entry = memory.long_term.get("d", "assistant", "e-1").entry
        assert entry is not None
        assert (entry.tier, entry.importance, entry.source) == ("slow", 0.7, "debate")
        assert entry.at == datetime(2026, 10, 22, 4, 40, 22, tzinfo=UTC)
        assert entry.metadata["stars"] == 5
        insight = memory.long_term.get("d", "judge", "s-1").entry
        assert insight is not None
        assert insight.type == "insight"
        consensus = memory.consensus.find_similar("d", "critic", "retry policy").found[0].consensus
        assert (consensus.conclusion, consensus.strength, consensus.rounds) == ("Three retries.", "strong", 2)
        assert memory.consensus.dissents("d", "judge", "retry policy").format() == (
            "judge edge_case_concern (0.6): Payments need more."
        )


async def test_tiers_can_be_left_out(tmp_path: Path) -> None:
    store = other_stores.aragora(tmp_path)
    async with Memory.in_memory() as memory:
        await take(memory, store, aragora.STORE, tiers=False)
        entry = await find_entry(memory, "e-1")
        assert entry.tier is None
        assert (await take(memory, store, aragora.STORE)).changed == 0


async def test_blocks_of_working_memory_are_set_by_a_trusted_import(tmp_path: Path) -> None:
    store = other_stores.tramontane(tmp_path)
    async with Memory.in_memory() as memory:
        assert not (await memory.working.get(*OF)).blocks
        await take(memory, store, trust="agent")
        assert [(each.label, each.content) for each in (await memory.working.get(*OF)).blocks] == [
            ("Goals", "Sell three tables")
        ]


async def test_values_of_langgraph_are_put_under_their_namespaces_by_a_trusted_import(tmp_path: Path) -> None:
    path = other_stores.langgraph(tmp_path)
    async with Memory.in_memory() as memory:
        assert counts(await take(memory, path, langgraph.STORE)) == (0, 0, 0, 1)
        assert counts(await take(memory, path, langgraph.STORE, trust="agent")) == (1, 0, 0, 1)
        assert counts(await take(memory, path, langgraph.STORE, trust="agent")) == (0, 0, 1, 1)
        found = (await memory.items.get(*OF, ["langgraph.store", "memories", "ann"], "m-1")).item
        assert found is not None
        assert found.value == {"text": "allergic to nuts"}


def test_a_folder_that_contains_our_own_memory_is_imported_again_without_it(tmp_path: Path) -> None:
    other_stores.ledger_view(tmp_path)
    found = [
        recallog("import", "ledger-view", tmp_path, "--home", tmp_path / ".recallog", "--json").json for _ in range(2)
    ]
    assert [each["added"] for each in found] == [2, 0]
    assert found[0]["problems"] == found[1]["problems"]


def test_a_session_or_a_document_that_cannot_be_read_is_refused_and_the_others_are_taken(tmp_path: Path) -> None:
    store = other_stores.agenticx(tmp_path)
    (store / "sessions" / "s-2").mkdir(parents=True)
    (store / "sessions" / "s-2" / "messages.json").write_text("[{")
    (store / "workspace" / "SOUL.md").write_bytes(b"\xff")
    options = ("--space", "home", "--trust", "agent", "--json")
    done = recallog("import", "agenticx", store, *options, "--home", tmp_path / "ours").json
    assert [each["place"] for each in done["problems"]] == ["session s-2", "document SOUL.md"]
    assert done["added"] == 6


def test_a_session_whose_messages_were_replaced_is_not_mixed_with_the_new_ones(tmp_path: Path) -> None:
    file, home = tmp_path / "s-2" / "messages.json", tmp_path / "ours"
    file.parent.mkdir()

    def take_messages(*texts: str) -> Result:
        file.write_text(json.dumps([{"role": "user", "content": text} for text in texts]))
        return recallog("import", "agenticx", file, "--space", "home", "--home", home)

    assert "Total: 2 added" in take_messages("Where is Lea?", "And Ann?").out
    assert "Total: 1 added, 0 changed, 2 already present" in take_messages("Where is Lea?", "And Ann?", "Bye.").out
    replaced = take_messages("[compacted] Two questions.", "Bye.", "One more.", "Two more.")
    assert replaced.code == 1
    assert "refused session s-2: " in replaced.err
    assert "Total: 0 added" in replaced.out


def test_the_documents_of_a_workspace_are_put_by_a_trusted_import(tmp_path: Path) -> None:
    home = tmp_path / "ours"
    store = other_stores.agenticx(tmp_path)
    done = recallog("import", "agenticx", store, "--space", "home", "--trust", "agent", "--home", home)
    assert done.code == 0
    with SyncMemory.open(home) as memory:
        hits = memory.workspace.search("home", "assistant", "who visits?", mode="fts").hits
        assert [hit.key for hit in hits] == ["MEMORY.md"]
        pad = memory.working.scratchpad("home", "assistant", "s-1")
        assert [(each.label, each.content) for each in pad.blocks] == [("plan", "buy rye")]


async def test_a_changed_row_supersedes_the_entry_also_back_to_its_first_form(tmp_path: Path) -> None:
    store = other_stores.tramontane(tmp_path)
    statement = "UPDATE factual_memory SET content = ?, entity = ? WHERE id = 'f-1'"
    async with Memory.in_memory() as memory:
        await take(memory, store)
        for version, text in enumerate(("Quill Ltd buys ash.", "Quill Ltd buys oak.", "Quill Ltd buys ash."), 2):
            other_stores.change(store, statement, text, None)
            assert counts(await take(memory, store)) == (0, 1, 1, 1)
            assert counts(await take(memory, store)) == (0, 0, 2, 1)
            entry = await find_entry(memory, "f-1")
            assert (entry.text, entry.version, entry.entity, entry.source_class) == (text, version, None, "import")


async def test_what_was_changed_here_stays_unless_its_row_has_changed(tmp_path: Path) -> None:
    store = other_stores.tramontane(tmp_path)
    async with Memory.in_memory() as memory:
        await take(memory, store)
        await memory.long_term.update(*OF, "f-1", text="Quill Ltd buys pine.")
        assert counts(await take(memory, store)) == (0, 0, 2, 1)
        entry = await find_entry(memory, "f-1")
        assert entry.text == "Quill Ltd buys pine."


async def test_a_row_that_was_deleted_there_stays_here(tmp_path: Path) -> None:
    store = other_stores.tramontane(tmp_path)
    async with Memory.in_memory() as memory:
        await take(memory, store)
        other_stores.change(store, "DELETE FROM factual_memory")
        assert counts(await take(memory, store)) == (0, 0, 1, 0)
        assert (await find_entry(memory, "f-1")).text == "Quill Ltd buys oak."


@pytest.mark.parametrize("end", ["archive", "retract", "forget"])
async def test_an_entry_that_ended_here_does_not_come_back(end: str, tmp_path: Path) -> None:
    store = other_stores.tramontane(tmp_path)
    async with Memory.in_memory() as memory:
        await take(memory, store)
        given = ["f-1"] if end == "forget" else "f-1"
        await getattr(memory.long_term, end)(*OF, given)
        assert counts(await take(memory, store))[:2] == (0, 0)
        other_stores.change(store, "UPDATE factual_memory SET content = 'Quill Ltd buys ash.' WHERE id = 'f-1'")
        again = await take(memory, store)
        assert counts(again)[:2] == (0, 0)
        assert "factual_memory f-1" in {each.place for each in again.left_out}
        assert "ash" not in str([each.text for each in (await memory.long_term.list(*OF)).entries])


async def test_an_entry_that_the_agent_made_is_not_replaced_by_a_row_with_its_id(tmp_path: Path) -> None:
    store = other_stores.tramontane(tmp_path)
    async with Memory.in_memory() as memory:
        await memory.long_term.retain(*OF, "My own.", entry_id="f-1")
        result = await take(memory, store)
        assert (
            "import into a space of its own" in {each.place: each.why for each in result.problems}["factual_memory f-1"]
        )
        entry = await find_entry(memory, "f-1")
        assert entry.text == "My own."


async def test_an_import_keeps_no_rule_that_its_class_may_not_set_until_it_is_trusted(tmp_path: Path) -> None:
    store = other_stores.aragora(tmp_path)
    async with Memory.in_memory() as memory:
        result = await take(memory, store, aragora.STORE)
        assert [(each.place, "red_line" in each.why) for each in result.weakened] == [("continuum_memory e-2", True)]
        for trust, is_red in (("import", False), ("agent", True)):
            await take(memory, store, aragora.STORE, trust=trust)
            entry = await find_entry(memory, "e-2")
            assert entry.red_line is is_red


async def test_a_store_that_its_owner_has_open_is_read_as_of_now_and_its_owner_can_write(tmp_path: Path) -> None:
    store = other_stores.tramontane(tmp_path)
    with closing(sqlite3.connect(store)) as owner:
        owner.execute("INSERT INTO factual_memory (id, content) VALUES ('f-9', 'Written into the log.')")
        owner.commit()
        owner.execute("INSERT INTO factual_memory (id, content) VALUES ('f-8', 'Not committed.')")
        async with Memory.in_memory() as memory:
            await take(memory, store)
            found = {each.id for each in (await memory.long_term.list(*OF)).entries}
        owner.commit()
    assert {"f-8", "f-9"} & found == {"f-9"}


async def test_a_row_that_is_not_utf_8_is_refused_and_the_others_are_read(tmp_path: Path) -> None:
    store = other_stores.tramontane(tmp_path)
    other_stores.change(store, "INSERT INTO factual_memory (id, content) VALUES ('f-7', CAST(x'ff41' AS TEXT))")
    async with Memory.in_memory() as memory:
        result = await take(memory, store)
        assert "factual_memory f-7" in {each.place for each in result.problems}
        assert result.added == 2


async def test_a_table_that_is_not_published_is_named(tmp_path: Path) -> None:
    store = other_stores.tramontane(tmp_path)
    other_stores.change(store, "CREATE TABLE tomorrow AS SELECT 1 AS one UNION SELECT 2")
    async with Memory.in_memory() as memory:
        result = await take(memory, store)
        (named,) = [each for each in result.left_out if each.place == "tomorrow"]
        assert named.count == 2


def test_secrets_are_replaced_and_counted(tmp_path: Path) -> None:
    store = other_stores.tramontane(tmp_path)
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    other_stores.change(store, "UPDATE factual_memory SET content = ? WHERE id = 'f-1'", f"The key is {key}.")
    home = tmp_path / "ours"
    done = recallog("import", "tramontane", store, "--space", "office", "--home", home, RECALLOG_SCRUB="secrets")
    assert "Replaced 1 " in done.out
    again = recallog("import", "tramontane", store, "--space", "office", "--home", home, RECALLOG_SCRUB="secrets")
    assert "Total: 0 added, 0 changed, 2 already present" in again.out
    with SyncMemory.open(home) as memory:
        entry = memory.long_term.get("office", "assistant", "f-1").entry
        assert entry is not None
        assert key not in entry.text


def test_an_export_of_several_users_does_not_go_into_one_space(tmp_path: Path) -> None:
    store = other_stores.mem0(tmp_path)
    done = recallog("import", "mem0", store, "--space", "all", "--home", tmp_path / "ours")
    assert done.code == 2
    assert "leave --space out" in done.err


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ((), "--systems lists the systems"),
        (("tramontan", "{store}", "--space", "s"), "known are agenticx, aragora"),
        (("tramontane", "{store}"), "give one with --space NAME"),
        (("tramontane", "{store}.old", "--space", "s"), "is imported from the SQLite database of TramontaneMemory"),
        (("aragora", "{store}", "--space", "s"), "expected a SQLite database with continuum_memory or memories"),
        (("mem0", "{store}"), "expected the saved answer of get_all"),
        (("genesis", "{store}", "--space", "s"), "expected a checkpoint"),
        (("agenticx", "{store}", "--space", "s"), "expected a folder with workspace/MEMORY.md"),
    ],
)
def test_an_error_says_what_to_do(arguments: tuple[str, ...], advice: str, tmp_path: Path) -> None:
    store = other_stores.tramontane(tmp_path)
    given = [each.format(store=store) for each in arguments]
    done = recallog("import", *given, "--home", tmp_path / "ours")
    assert done.code == 2
    assert advice in " ".join(done.err.split())


def test_the_systems_are_listed_with_what_each_keeps() -> None:
    listed = recallog("import", "--systems", "--json").json["systems"]
    assert [each["name"] for each in listed] == sorted(["langgraph", *(system.name for system in SYSTEMS)])
    assert all(each["keeps"] and each["leaves_out"] for each in listed)


def test_the_help_has_an_example() -> None:
    assert "Example: recallog import tramontane memory.db" in recallog("import", "--help").out


DEEP = '{"a":' * 30_000 + "1" + "}" * 30_000


@pytest.mark.parametrize(
    ("system", "document", "places"),
    [
        (mem0, {"results": [], "relations": 5}, ["relations"]),
        (mem0, {"results": [{"id": None, "memory": "x", "user_id": "u"}]}, ["memory None"]),
        (mem0, {"results": [{"id": "m-1", "memory": "x", "user_id": "u", "categories": "health"}]}, ["memory m-1"]),
        (mem0, {"results": [{"id": "m-1", "memory": "x", "user_id": "u", "categories": {"a": 1}}]}, ["memory m-1"]),
        (mem0, {"results": [{"id": "m-1", "memory": "x", "user_id": "u", "metadata": DEEP}]}, ["memory m-1"]),
        (genesis, {"artifacts": [], "balances": 5}, ["balances"]),
        (genesis, {"artifacts": [{"id": "a_longterm", "type": "memory_store", "content": 5}]}, ["artifact a_longterm"]),
        (letta, {"agents": [{"block_ids": 5}], "tools": 5, "groups": True}, ["groups", "tools"]),
        (letta, {"agents": [{"block_ids": [["b"], {}]}], "blocks": [{"id": ["b"], "label": 1}]}, ["block ['b']"]),
    ],
)
def test_a_part_of_another_type_than_the_schema_says_is_named(
    system: ModuleType, document: object, places: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "store.json"
    path.write_text(json.dumps(document))
    rows = list(system.STORE.read(path, INTO))
    assert [row.place for row in rows] == places
    assert all(row.error or row.left_out for row in rows)


@pytest.mark.parametrize("system", [mem0, genesis, letta])
def test_json_that_is_nested_too_deeply_is_not_a_store(system: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "store.json"
    path.write_text(DEEP)
    with pytest.raises(InvalidArgument, match="nested too deeply; expected"):
        list(system.STORE.read(path, INTO))


def test_values_of_other_types_in_a_table_are_refused_with_their_places(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    values = [(5, "1"), ("a", None), ("a", DEEP), ("a", "{"), ("a", "1")]
    other_stores.change(path, "CREATE TABLE store (prefix, value, key DEFAULT 'k')")
    for value in values:
        other_stores.change(path, "INSERT INTO store (prefix, value) VALUES (?, ?)", *value)
    rows = list(langgraph.STORE.read(path, INTO))
    assert [(row.place, row.error is None) for row in rows] == [
        ("store 1", False),
        ("store 2", False),
        ("store 3", False),
        ("store 4", False),
        ("store 5", True),
    ]


def test_tables_without_row_ids_and_with_quotes_in_their_names_are_read(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    other_stores.change(path, "CREATE TABLE factual_memory (id TEXT PRIMARY KEY, content) WITHOUT ROWID")
    other_stores.change(path, "INSERT INTO factual_memory VALUES ('f-2', 'Oak.'), ('f-1', 'Ash.')")
    other_stores.change(path, 'CREATE TABLE "a""b" AS SELECT 1 AS one')
    rows = list(tramontane.STORE.read(path, INTO))
    assert [row.place for row in rows] == ["factual_memory f-1", "factual_memory f-2", 'a"b']


async def test_a_column_that_is_not_taken_over_is_named(tmp_path: Path) -> None:
    store = other_stores.tramontane(tmp_path)
    other_stores.change(store, "ALTER TABLE factual_memory ADD COLUMN mood TEXT")
    async with Memory.in_memory() as memory:
        before = await take(memory, store, dry_run=True)
        assert not any("column" in remark.place for remark in before.left_out)
        other_stores.change(store, "UPDATE factual_memory SET mood = 'sad' WHERE id = 'f-1'")
        left_out = {remark.place: (remark.count, remark.why) for remark in (await take(memory, store)).left_out}
        assert left_out["factual_memory column mood"] == (1, "a column that is not taken over")


def test_a_view_is_not_a_table_of_a_store(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    other_stores.change(path, "CREATE VIEW factual_memory AS SELECT 'f-1' AS id, 'Oak.' AS content")
    with pytest.raises(InvalidArgument, match="found no table"):
        list(tramontane.STORE.read(path, INTO))


def test_a_pipe_is_not_a_database(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "store.db")
    with pytest.raises(InvalidArgument, match="found no table"):
        list(tramontane.STORE.read(tmp_path / "store.db", INTO))


def cut_short(database: Path) -> None:
    """Damage a database so that it cannot be opened, with its magic bytes in place."""
    database.write_bytes(b"SQLite format 3\0" + bytes(50))


def test_a_damaged_database_is_said_to_be_damaged(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    cut_short(path)
    with pytest.raises(InvalidArgument, match="it is damaged"):
        list(tramontane.STORE.read(path, INTO))


def test_a_damaged_database_of_a_folder_is_refused_and_the_others_are_taken(tmp_path: Path) -> None:
    # It once ended the whole import.
    (tmp_path / "aragora").mkdir()
    (tmp_path / "agenticx").mkdir()
    for system, make in ((aragora, other_stores.aragora), (agenticx, other_stores.agenticx)):
        store = make(tmp_path / system.STORE.name)
        whole = [row.place for row in system.STORE.read(store, INTO)]
        (store / "a").mkdir()
        cut_short(store / "a" / "old.db")
        rows = list(system.STORE.read(store, INTO))
        assert [row.place for row in rows] == ["database a/old.db", *whole]
        assert "it is damaged: repair it, or remove it" in str(rows[0].error)


def test_a_file_that_may_not_be_read_is_refused_and_the_others_are_taken(tmp_path: Path) -> None:
    # It once ended the whole import, if even its status could not be read.
    store = other_stores.aragora(tmp_path)
    whole = [row.place for row in aragora.STORE.read(store, INTO)]
    (store / "a.db").symlink_to("x" * 300)  # also root may not read it
    refused = [row.place for row in aragora.STORE.read(store, INTO) if row.place not in whole]
    assert [row.place for row in aragora.STORE.read(store, INTO)] == [*refused, *whole]
    assert refused in (["database a.db"], [])  # Python 3.14 and later say that it is not a file


def test_a_folder_whose_only_database_is_damaged_is_not_a_store(tmp_path: Path) -> None:
    cut_short(tmp_path / "continuum.db")
    with pytest.raises(InvalidArgument, match=r"found no table; cannot read .*continuum.db.*it is damaged"):
        list(aragora.STORE.read(tmp_path, INTO))


async def test_of_a_table_with_a_damaged_page_the_rows_before_it_are_taken_and_other_tables_too(tmp_path: Path) -> None:
    facts = [{"id": f"f-{number:03}", "content": f"Fact {number} " + "x" * 400} for number in range(200)]
    experiences = [{"id": "x-1", "action_type": "offer", "action_summary": "offered oak"}]
    tables = {"factual_memory": facts, "experiential_memory": experiences}
    path = other_stores.write_tables(tmp_path / "m.db", tables)
    with closing(sqlite3.connect(path)) as database:
        (page_bytes,) = database.execute("PRAGMA page_size").fetchone()
        leaf = "SELECT pageno FROM dbstat WHERE name = 'factual_memory' AND pagetype = 'leaf' ORDER BY path"
        try:
            pages = [number for (number,) in database.execute(leaf)]
        except sqlite3.OperationalError:
            pytest.skip("this SQLite has no dbstat")
    data = bytearray(path.read_bytes())
    begin = (pages[len(pages) // 2] - 1) * page_bytes
    data[begin : begin + page_bytes] = bytes(page_bytes)
    path.write_bytes(data)
    async with Memory.in_memory() as memory:
        result = await take(memory, path)
        (problem,) = result.problems
        assert problem.place == "factual_memory"
        assert "cannot be read: database disk image is malformed" in problem.why
        assert 1 < result.added < 200
        found = {each.id for each in (await memory.long_term.list(*OF, limit=1_000)).entries}
        assert found == {"x-1", *(fact["id"] for fact in facts[: result.added - 1])}
        assert (await take(memory, path)).added == 0


def test_a_session_has_the_same_name_whatever_path_leads_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = tmp_path / "s-2"
    session.mkdir()
    (session / "messages.json").write_text('[{"role": "user", "content": "Where is Lea?"}]')
    monkeypatch.chdir(session)
    found = [list(agenticx.STORE.read(Path(path), INTO)) for path in ("messages.json", ".", "..")]
    assert found == [list(agenticx.STORE.read(session / "messages.json", INTO))] * 3


def test_a_document_that_is_a_link_is_left_out(tmp_path: Path) -> None:
    store = other_stores.agenticx(tmp_path)
    (tmp_path / "key.txt").write_text("secret")
    (store / "workspace" / "NOTES.md").symlink_to(tmp_path / "key.txt")
    (store / "workspace" / "LOST.md").symlink_to("x" * 300)  # not even its status can be read
    (store / "workspace" / "folder.md").mkdir()
    rows = {row.place: row for row in agenticx.STORE.read(store, INTO)}
    for name in ("NOTES", "LOST"):
        assert "symbolic link" in str(rows[f"document {name}.md"].left_out)
    assert rows["document folder.md"].left_out == "a folder"
    assert rows["document MEMORY.md"].event is not None


async def test_a_message_that_is_too_long_is_cut_and_named(tmp_path: Path) -> None:
    # With the source class it once exceeded the limit of an event, and ended the import.
    whole = 300_000
    messages = [{"role": "user", "content": "x" * whole}, {"role": "assistant", "content": "Noted."}]
    path = tmp_path / "s-1" / "messages.json"
    path.parent.mkdir()
    path.write_text(json.dumps(messages))
    async with Memory.in_memory() as memory:
        for added, dry_run in ((2, True), (2, False), (0, False)):
            result = await take(memory, path, agenticx.STORE, dry_run=dry_run)
            assert (result.added, result.problems) == (added, [])
            (cut,) = result.weakened
            assert cut.place == "session s-1"
            assert cut.why.startswith("too long for an event: message 1: cut, text: ")
            assert cut.why.endswith(f" of {whole:,} characters are missing")


async def test_a_row_that_its_origin_makes_too_large_is_cut_and_named(tmp_path: Path) -> None:
    fact = {"id": "f-1", "content": "x" * (limits.EVENT_BYTES_MAX - 300), "created_at": other_stores.AT}
    path = other_stores.write_tables(tmp_path / "m.db", {"factual_memory": [fact, {"id": "f-2", "content": "Oak."}]})
    async with Memory.in_memory() as memory:
        for added, dry_run in ((2, True), (2, False), (0, False)):
            result = await take(memory, path, dry_run=dry_run)
            assert (result.added, result.unchanged, result.problems) == (added, 2 - added, [])
            assert [cut.place for cut in result.weakened] == ["factual_memory f-1"]
        assert len((await find_entry(memory, "f-1")).text) > limits.EVENT_BYTES_MAX - 1_000


async def test_a_row_that_its_origin_makes_too_large_and_no_cut_smaller_is_a_problem(tmp_path: Path) -> None:
    """It was once left out, as if another event had its id."""
    metadata = json.dumps({"note": "x" * (limits.EVENT_BYTES_MAX - 300)})
    rows = [{"id": "m-1", "content": "Oak.", "tier": "slow", "metadata": metadata, "created_at": other_stores.AT}]
    path = other_stores.write_tables(tmp_path / "m.db", {"continuum_memory": rows})
    async with Memory.in_memory() as memory:
        for dry_run in (True, False):
            result = await take(memory, path, aragora.STORE, dry_run=dry_run)
            assert (result.added, result.left_out) == (0, [])
            (problem,) = result.problems
            assert problem.place == "continuum_memory m-1"
            assert problem.why.startswith("the event is 262,")


NOT_UTF_8 = "CAST(x'61ff62' AS TEXT)"


def test_names_that_are_not_valid_end_no_import(tmp_path: Path) -> None:
    # Each of them once ended the whole import.
    agent = {"id": "agent-0", "name": "a\0b", "messages": [{"role": "user", "content": "Hello."}]}
    (tmp_path / "a.af").write_text(json.dumps({"agents": [agent], "blocks": []}))
    (of_letta,) = letta.STORE.read(tmp_path / "a.af", INTO)
    assert of_letta.place == "session agent-0"
    assert str(of_letta.error).startswith("agent: 'a\\x00b' is not a name")

    (tmp_path / "agenticx").mkdir()
    store = other_stores.agenticx(tmp_path / "agenticx")
    other_stores.change(store / "memory" / "sessions.sqlite", f"UPDATE session_messages SET session_id = {NOT_UTF_8}")
    taken = [row for row in agenticx.STORE.read(store, INTO) if row.place == "session a\\udcffb"]
    assert not any(row.error for row in taken)
    assert [row.event.text for row in taken if row.event is not None] == ["Where does Lea sleep?", "In the attic."]


async def test_a_place_that_is_not_valid_text_is_escaped(tmp_path: Path) -> None:
    entries = json.dumps({"entries": [{"id": "m-1", "text": "LESSON: look first"}]})
    artifact = {"id": "a\ud800", "type": "memory_store", "created_by": "gerald", "content": entries}
    (tmp_path / "checkpoint.json").write_text(json.dumps({"artifacts": [artifact]}))
    async with Memory.in_memory() as memory:
        assert (await take(memory, tmp_path / "checkpoint.json", genesis.STORE)).added == 1
        origin = (await find_entry(memory, "m-1")).metadata[ORIGIN]
        assert origin["row"] == "genesis artifact a\\ud800 entry m-1"


def test_a_time_that_is_none_is_an_error_that_says_what_is_expected() -> None:
    with pytest.raises(ValueError, match="'yesterday' is not a time: expected ISO 8601"):
        time_of_row("yesterday")


def test_a_line_of_an_export_that_is_not_json_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "mem0.jsonl"
    path.write_text('{"id": "m-1", "memory": "Allergic to nuts", "user_id": "alex"}\n{"id"\n')
    rows = list(mem0.STORE.read(path, Destination(None, "assistant")))
    assert [(row.place, row.error is None) for row in rows] == [("memory m-1", True), ("memory 2", False)]


@given(st.datetimes(timezones=st.none() | st.just(UTC)))
def test_a_time_without_a_zone_is_in_utc(moment: datetime) -> None:
    assert datetime.fromisoformat(time_of_row(str(moment))) == moment.replace(tzinfo=UTC)


TEXTS = st.sampled_from(["oak", "ash", "elm", "yew", " "])
FACTS = st.dictionaries(st.sampled_from(["a", "b", "c"]), TEXTS, max_size=3)


@settings(max_examples=15, deadline=None)
@given(st.lists(FACTS, min_size=1, max_size=4))
def test_after_each_import_the_entries_are_the_rows_and_what_was_deleted_there(
    tmp_path_factory: pytest.TempPathFactory, forms: list[dict[str, str]]
) -> None:
    run(import_each(tmp_path_factory, forms))


async def import_each(tmp_path_factory: pytest.TempPathFactory, forms: list[dict[str, str]]) -> None:
    """Rows with equal texts are one entry, so texts name their row."""
    expected: dict[str, str] = {}
    async with Memory.in_memory() as memory:
        for form in forms:
            rows = [{"id": id_, "content": text.strip() and f"{id_} likes {text}"} for id_, text in form.items()]
            store = other_stores.write_tables(
                tmp_path_factory.mktemp("store") / "m.db", {"factual_memory": rows, "entity_links": []}
            )
            expected |= {row["id"]: row["content"] for row in rows if row["content"]}
            result = await take(memory, store)
            assert result.added + result.changed + result.unchanged + len(result.problems) == len(rows)
            found = (await memory.long_term.list(*OF)).entries
            assert {each.id: each.text for each in found} == expected
            assert all(each.metadata[ORIGIN]["row"] == f"tramontane factual_memory {each.id}" for each in found)
