"""`memory.workspace`: documents as items, a folder in and out, and the search in them where there is no index."""

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog import Conflict, Event, InvalidArgument, Memory, Position, Settings
from recallog.models.workspace import commands as commands
from recallog.models.workspace import deciding
from recallog.models.workspace.folder import STATE
from recallog_schemas import limits
from recallog_schemas.models.items.payloads import value_bytes
from recallog_schemas.models.workspace import limits as workspace_limits
from support.cli import recallog
from support.events import run
from support.people import otherwise
from support.twice import events_of, once, twice

pytestmark = pytest.mark.models("workspace")

A = ("village", "baker")
WORKSPACE = (*A, "workspace")
PAGES = {
    "MEMORY.md": "# Memory\nThe miller is paid on Fridays.\n",
    "memory/2026-11-23.md": "## Session Facts (2026-11-23)\n- User asked: bread\n\n",
    "notes/oven.md": "# Oven\n\nIt needs an hour.\n\n## Wood\nBirch burns best.\n",
}


@pytest.fixture(params=[once, twice])
def memory(request: pytest.FixtureRequest) -> Memory:
    """A memory whose ledger delivers each event once, or twice."""
    return request.param()  # type: ignore[no-any-return]


def ended(memory: Memory, work: Callable[[Memory], Awaitable[None]]) -> None:
    """Do the work; the views must be those of a rebuild."""

    async def whole() -> None:
        async with memory:
            await work(memory)
            assert (await memory.admin.verify("views")).ok

    run(whole())


def folder_of(folder: Path, files: Mapping[str, str | bytes] = PAGES) -> Path:
    for key, text in files.items():
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    """The bytes of all files of a folder that are not hidden."""
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {key: path.read_bytes() for key, path in found.items() if key != STATE}


async def keys(memory: Memory, query: str, **more: Any) -> list[str]:
    return [hit.key for hit in (await memory.workspace.search(*A, query, **more)).hits]


# Documents.


def test_a_document_is_an_item_that_is_written_with_a_base(memory: Memory) -> None:
    async def work(memory: Memory) -> None:
        first = await memory.items.put(*WORKSPACE, "notes/oven.md", "An hour.", base=0)
        assert first.item is not None
        with pytest.raises(Conflict):
            await memory.items.put(*WORKSPACE, "notes/oven.md", "Two hours.", base=0)
        await memory.items.put(*WORKSPACE, "notes/oven.md", "Two hours.", base=first.item.sha256)
        assert [item.key for item in (await memory.items.list(*WORKSPACE)).items] == ["notes/oven.md"]
        assert await keys(memory, "hours") == ["notes/oven.md"]
        await memory.items.delete(*WORKSPACE, "notes/oven.md")
        assert await keys(memory, "hours") == []

    ended(memory, work)


# A folder in, and out.


def test_a_folder_of_three_documents_is_imported_changed_and_imported(memory: Memory, tmp_path: Path) -> None:
    async def work(memory: Memory) -> None:
        folder = folder_of(tmp_path / "in")
        events = []
        for change in (None, ("hour", "day"), None):
            if change is not None:
                oven = folder / "notes/oven.md"
                oven.write_text(oven.read_text().replace(*change))
            done = await memory.workspace.import_folder(*A, folder)
            assert done.ok
            events.append((len(done.new), len(done.changed), done.unchanged))
            if change is None and len(events) == 1:
                assert await keys(memory, "hour") == ["notes/oven.md"]
                assert await keys(memory, "day") == []
            else:
                assert await keys(memory, "day") == ["notes/oven.md"]
                assert await keys(memory, "hour") == []
            out = tmp_path / f"out {len(events)}"
            assert (await memory.workspace.export_folder(*A, out)).ok
            assert files_of(out) == files_of(folder)
        assert events == [(3, 0, 0), (0, 1, 2), (0, 0, 3)]
        assert len(await events_of(memory)) == 4

    ended(memory, work)


@pytest.mark.parametrize(
    "text",
    ["", "\n", "\ufeffwith a mark", "windows\r\nlines\r\n", "no end", "a\0b", "é e\u0301 \U0001f600", "\x1b[31m", " "],
)
def test_the_bytes_of_a_document_come_back(text: str, tmp_path: Path) -> None:
    async def work(memory: Memory) -> None:
        folder = folder_of(tmp_path / "in", {"a.md": text})
        await memory.workspace.import_folder(*A, str(folder))
        await memory.workspace.export_folder(*A, tmp_path / "out")
        assert files_of(tmp_path / "out") == {"a.md": text.encode()}

    ended(once(), work)


def test_a_file_whose_system_composes_its_name_in_another_way_is_its_document(memory: Memory, tmp_path: Path) -> None:
    file = folder_of(tmp_path, {otherwise("é.md"): "Rye"}) / otherwise("é.md")

    async def work(memory: Memory) -> None:
        await memory.workspace.import_folder(*A, tmp_path)
        found = await memory.items.get(*WORKSPACE, "é.md")
        assert found.item is not None
        assert found.item.value == "Rye"
        await memory.items.put(*WORKSPACE, "é.md", "Wheat")
        await memory.workspace.export_folder(*A, tmp_path)
        assert file.read_text() == "Wheat"
        assert [each for each in tmp_path.iterdir() if not each.name.startswith(".")] == [file]

    ended(memory, work)


def test_an_export_can_be_changed_and_imported(memory: Memory, tmp_path: Path) -> None:
    async def work(memory: Memory) -> None:
        for key, text in PAGES.items():
            await memory.items.put(*WORKSPACE, key, text)
        done = await memory.workspace.export_folder(*A, tmp_path)
        assert (done.new, done.changed, done.unchanged, done.known) == (tuple(PAGES), (), 0, True)
        (tmp_path / "notes/oven.md").write_text("# Oven\nIt is cold.\n")
        assert (await memory.workspace.import_folder(*A, tmp_path)).changed == ("notes/oven.md",)
        found = (await memory.items.get(*WORKSPACE, "notes/oven.md")).item
        assert found is not None
        assert (found.value, found.version) == ("# Oven\nIt is cold.\n", 2)
        again = await memory.workspace.export_folder(*A, tmp_path)
        assert (again.new, again.changed, again.unchanged) == ((), (), 3)

    ended(memory, work)


def test_neither_side_loses_what_it_has_changed(memory: Memory, tmp_path: Path) -> None:
    async def work(memory: Memory) -> None:
        await memory.workspace.import_folder(*A, folder_of(tmp_path))
        await memory.items.append(*WORKSPACE, "MEMORY.md", "Rye is dear.\n")
        await memory.items.append(*WORKSPACE, "notes/oven.md", "More.\n")
        (tmp_path / "notes/oven.md").write_text("mine")
        (tmp_path / "memory/2026-11-23.md").write_text("mine too")
        done = await memory.workspace.import_folder(*A, tmp_path)
        assert done.changed == ("memory/2026-11-23.md",)
        assert [(each.path, each.rule) for each in done.left_out] == [
            ("MEMORY.md", "behind"),
            ("notes/oven.md", "conflict"),
        ]
        assert not done.ok
        (tmp_path / "memory/2026-11-23.md").write_text("mine again")
        out = await memory.workspace.export_folder(*A, tmp_path)
        assert out.changed == ("MEMORY.md",)
        assert [(each.path, each.rule) for each in out.left_out] == [
            ("memory/2026-11-23.md", "behind"), ("notes/oven.md", "conflict"),
        ]  # fmt: skip
        assert (tmp_path / "notes/oven.md").read_text() == "mine"
        forced = await memory.workspace.import_folder(*A, tmp_path, overwrite=True)
        assert (forced.changed, forced.left_out) == (("memory/2026-11-23.md", "notes/oven.md"), ())
        assert (await memory.workspace.export_folder(*A, tmp_path)).unchanged == 3

    ended(memory, work)


def test_a_document_that_was_deleted_does_not_come_back_by_itself(tmp_path: Path) -> None:
    async def work(memory: Memory) -> None:
        await memory.workspace.import_folder(*A, folder_of(tmp_path))
        await memory.items.delete(*WORKSPACE, "MEMORY.md")
        done = await memory.workspace.import_folder(*A, tmp_path)
        assert [(each.path, each.rule) for each in done.left_out] == [("MEMORY.md", "behind")]
        assert done.left_out[0].reason.startswith("the document was deleted since")
        assert (await memory.workspace.import_folder(*A, tmp_path, overwrite=True)).new == ("MEMORY.md",)

    ended(once(), work)


def test_a_file_that_was_never_exchanged_is_not_replaced(tmp_path: Path) -> None:
    async def work(memory: Memory) -> None:
        await memory.items.put(*WORKSPACE, "a.md", "document")
        folder = folder_of(tmp_path, {"a.md": "somebody's file"})
        done = await memory.workspace.export_folder(*A, folder)
        assert ([each.rule for each in done.left_out], files_of(folder)) == (["conflict"], {"a.md": b"somebody's file"})
        assert (await memory.workspace.export_folder(*A, folder, overwrite=True)).changed == ("a.md",)
        assert files_of(folder) == {"a.md": b"document"}

    ended(once(), work)


def test_a_folder_can_go_to_another_agent(tmp_path: Path) -> None:
    async def work(memory: Memory) -> None:
        await memory.workspace.import_folder(*A, folder_of(tmp_path))
        done = await memory.workspace.import_folder("village", "miller", tmp_path)
        assert len(done.new) == 3
        assert [hit.key for hit in (await memory.workspace.search("village", "miller", "birch")).hits] == [
            "notes/oven.md"
        ]
        assert (await memory.workspace.search("village", "smith", "birch")).hits == ()

    ended(once(), work)


def test_imports_at_the_same_time_report_every_write(tmp_path: Path) -> None:
    folders = [folder_of(tmp_path / str(number)) for number in range(3)]
    (folders[2] / "MEMORY.md").write_text("mine")

    async def work() -> None:
        memories = [Memory.open(Settings(home=tmp_path / "home", index="off")) for _ in folders]
        try:
            calls = (memory.workspace.import_folder(*A, at) for memory, at in zip(memories, folders, strict=True))
            done = await asyncio.gather(*calls)
            found = (await memories[0].items.list(*WORKSPACE)).items
        finally:
            for memory in memories:
                await memory.close()
        assert {item.key for item in found} == PAGES.keys()
        written = Counter(key for each in done for key in (*each.new, *each.changed))
        assert written == {item.key: item.version for item in found}
        assert Counter(key for each in done for key in each.new) == dict.fromkeys(PAGES, 1)
        for each in done:
            assert len(each.new) + len(each.changed) + each.unchanged + len(each.left_out) == len(PAGES)
            assert all((left.path, left.rule) == ("MEMORY.md", "conflict") for left in each.left_out)

    run(work())


def test_an_import_that_was_killed_is_finished_by_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_PART_DOCUMENTS", 2)
    folder = folder_of(tmp_path, {f"{number}.md": str(number) for number in range(5)})

    async def work(memory: Memory) -> None:
        append, calls = memory._access.append, []

        async def killed(events: Sequence[Event], *, keys: Collection[str]) -> list[Position]:
            positions = await append(events, keys=keys)
            calls.append(positions)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return positions

        monkeypatch.setattr(memory._access, "append", killed)
        with pytest.raises(KeyboardInterrupt):
            await memory.workspace.import_folder(*A, folder)
        done = await memory.workspace.import_folder(*A, folder)
        assert (done.new, done.unchanged, done.left_out) == (("4.md",), 4, ())
        assert len(await events_of(memory)) == 5

    ended(once(), work)


@pytest.mark.parametrize("seed", range(15))
def test_random_changes_of_both_sides_are_never_lost(seed: int, tmp_path: Path) -> None:
    """An oracle of what both sides have, and had, says what each import and export does."""
    rng = random.Random(seed)
    files: dict[str, str] = {}
    texts: dict[str, str] = {}
    common: dict[str, str] = {}

    async def work(memory: Memory) -> None:
        for _ in range(40):
            key, text = rng.choice(("a.md", "b/c.md", "d.md")), rng.choice(("1", "2", "3"))
            what = rng.choice(("file", "file", "unlink", "document", "document", "delete", "import", "export"))
            overwrite = rng.random() < 0.2
            if what == "file":
                files[key] = text
                folder_of(tmp_path, {key: text})
            elif what == "unlink":
                files.pop(key, None)
                (tmp_path / key).unlink(missing_ok=True)
            elif what == "document":
                texts[key] = text
                await memory.items.put(*WORKSPACE, key, text)
            elif what == "delete":
                texts.pop(key, None)
                await memory.items.delete(*WORKSPACE, key)
            else:
                source, target = (files, texts) if what == "import" else (texts, files)
                left_out = []
                for each, mine in sorted(source.items()):
                    theirs, both = target.get(each), common.get(each)
                    if mine != theirs:
                        may = (
                            theirs == both
                            or (theirs is None and what == "export")
                            or (both is None and what == "import")
                        )
                        if not (may or overwrite):
                            left_out.append(each)
                            continue
                        target[each] = mine
                    common[each] = mine
                call = memory.workspace.import_folder if what == "import" else memory.workspace.export_folder
                done = await call(*A, tmp_path, overwrite=overwrite)
                assert sorted(left.path for left in done.left_out) == left_out
            assert files_of(tmp_path) == {each: mine.encode() for each, mine in files.items()}
            assert {item.key: item.value for item in (await memory.items.list(*WORKSPACE)).items} == texts

    ended(once(), work)


# What is left out.


def test_what_is_no_document_is_left_out_and_named(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path / "in",
        {
            "a.md": "fine",
            ".git/config": "secret",
            "notes/.hidden.md": "secret",
            "image.png": b"\x89PNG\r\n",
            "latin.txt": "é".encode("latin-1"),
            "large.md": "x" * 65_537,
            "quotes.md": '"' * 40_000,
            f"{'d' * 200}/{'n' * 100}.md": "long",
            "back\\slash.md": "x",
        },
    )
    (folder / "link.md").symlink_to(tmp_path / "in/a.md")
    (folder / "above").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    Path(os.fsdecode(bytes(folder / "bad") + b"\xff.md")).write_text("x")

    async def work(memory: Memory) -> None:
        done = await memory.workspace.import_folder(*A, folder)
        assert done.new == ("a.md",)
        found = {each.path[:12]: each.rule for each in done.left_out}
        assert found == {
            ".git": "hidden", "notes/.hidde": "hidden", "image.png": "not_utf8", "latin.txt": "not_utf8",
            "large.md": "too_large", "quotes.md": "too_large", "dddddddddddd": "name", "back\\slash.m": "name",
            "link.md": "link", "above": "link", "pipe": "no_file", "bad\ufffd.md": "name",
        }  # fmt: skip
        assert all(each.format() for each in done.left_out)
        assert not done.ok

    ended(once(), work)


def test_a_hidden_file_alone_is_no_failure(tmp_path: Path) -> None:
    async def work(memory: Memory) -> None:
        assert (await memory.workspace.import_folder(*A, folder_of(tmp_path, {".env": "x", "a.md": "y"}))).ok

    ended(once(), work)


def test_a_document_may_have_64_kib(tmp_path: Path) -> None:
    text = "x" * (limits.ITEM_VALUE_BYTES_MAX - 2)
    assert value_bytes(text) == limits.ITEM_VALUE_BYTES_MAX

    async def work(memory: Memory) -> None:
        done = await memory.workspace.import_folder(*A, folder_of(tmp_path, {"a.md": text, "b.md": f"{text}y"}))
        assert (done.new, [each.path for each in done.left_out]) == (("a.md",), ["b.md"])

    ended(once(), work)


@pytest.mark.parametrize(
    "key",
    [
        "../out.md", "a/../../out.md", "/etc/out.md", "..", ".", "a//b.md", "a/", "./a.md", ".git/hooks/pre-commit",
        ".env", "a/.ssh/config", "a\\..\\out.md", "a\0b", "...", STATE,
    ],
)  # fmt: skip
def test_no_key_leads_out_of_the_folder(key: str, tmp_path: Path) -> None:
    async def work(memory: Memory) -> None:
        await memory.items.put(*WORKSPACE, key, "x")
        await memory.items.put(*WORKSPACE, "fine.md", "y")
        done = await memory.workspace.export_folder(*A, tmp_path / "in/out")
        assert (done.new, [each.rule in ("name", "hidden") for each in done.left_out]) == (("fine.md",), [True])
        assert files_of(tmp_path) == {
            "in/out/fine.md": b"y",
            f"in/out/{STATE}": (tmp_path / "in/out" / STATE).read_bytes(),
        }

    ended(once(), work)


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file.md").write_text("old")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "notes").symlink_to(tmp_path / "outside")
    (folder / "link.md").symlink_to(tmp_path / "outside/file.md")

    async def work(memory: Memory) -> None:
        for key in ("notes/new.md", "notes/file.md", "link.md"):
            await memory.items.put(*WORKSPACE, key, "new")
        done = await memory.workspace.export_folder(*A, folder, overwrite=True)
        assert [each.rule for each in done.left_out] == ["link"] * 3
        assert files_of(tmp_path / "outside") == {"file.md": b"old"}

    ended(once(), work)


def test_what_cannot_be_a_file_is_left_out(tmp_path: Path) -> None:
    async def work(memory: Memory) -> None:
        await memory.items.put(*WORKSPACE, "a", "file")
        await memory.items.put(*WORKSPACE, "a/b.md", "below a file")
        await memory.items.put(*WORKSPACE, "data.json", {"no": "text"})
        await memory.items.put(*WORKSPACE, "n" * 256, "a long name")
        await memory.items.put(*A, ["workspace", "old"], "c.md", "another namespace")
        done = await memory.workspace.export_folder(*A, tmp_path)
        assert done.new == ("a",)
        assert {each.path[:9]: each.rule for each in done.left_out} == {
            "a/b.md": "failed", "data.json": "not_text", "nnnnnnnnn": "failed",
        }  # fmt: skip

    ended(once(), work)


def test_a_folder_must_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    async def work(memory: Memory) -> None:
        for folder in (tmp_path / "none", tmp_path / "file", None):
            with pytest.raises(InvalidArgument) as error:
                await memory.workspace.import_folder(*A, folder)
            assert error.value.path == "folder"
        with pytest.raises(InvalidArgument):
            await memory.workspace.export_folder(*A, tmp_path / "file")

    ended(once(), work)


def test_a_folder_with_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace_limits, "WORKSPACE_FILES_MAX", 2)

    async def work(memory: Memory) -> None:
        with pytest.raises(InvalidArgument, match="more than 2 files"):
            await memory.workspace.import_folder(*A, folder_of(tmp_path))
        assert await events_of(memory) == []

    ended(once(), work)


@pytest.mark.parametrize(
    "state", [b"", b"[]", b"[" * 100_000, b"{\xff", b'{"space":"village","agent":"baker","documents":{"a.md":7}}']
)
def test_a_damaged_state_of_a_folder_is_as_none(state: bytes, tmp_path: Path) -> None:
    async def work(memory: Memory) -> None:
        folder = folder_of(tmp_path, {"a.md": "x", STATE: state})
        assert (await memory.workspace.import_folder(*A, folder)).new == ("a.md",)
        assert list(json.loads((folder / STATE).read_text())["documents"]) == ["a.md"]

    ended(once(), work)


def test_a_new_file_is_readable_to_its_owner_alone_and_an_old_one_stays_as_it_is(tmp_path: Path) -> None:
    async def work(memory: Memory) -> None:
        await memory.workspace.import_folder(*A, folder_of(tmp_path, {"a.md": "x"}))
        (tmp_path / "a.md").chmod(0o644)
        await memory.items.put(*WORKSPACE, "a.md", "y")
        await memory.items.put(*WORKSPACE, "b.md", "z")
        await memory.workspace.export_folder(*A, tmp_path)
        assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a.md", "b.md")] == [0o644, 0o600]

    ended(once(), work)


TEXTS = st.sampled_from(("one", "two", "three", None))


@given(TEXTS, TEXTS, TEXTS)
def test_a_text_that_only_one_side_has_is_not_replaced(
    file: str | None, document: str | None, before: str | None
) -> None:
    """Whatever is written replaces a text that both sides had, or that the ledger still has."""
    if file is not None:
        decision = deciding.on_import(file, document, before)
        assert (decision == "same") == (file == document)
        if decision == "write":
            assert document in (before, None) or before is None
        if before is not None and document != before and file != document:
            assert decision in ("behind", "conflict")
    if document is not None:
        decision = deciding.on_export(file, document, before)
        assert (decision == "same") == (file == document)
        if decision == "write":
            assert file is None or file == before


# Search.

DOCUMENTS = {
    "lang.md": 'We write the mill in C++ and "seven" scripts. Why? See a.b(c): x*y ^ ~z OR NOT.\n',
    "会议.md": "# 会议\n请记得备份数据库。\n",
    "other.md": "Birch burns best.\n",
}


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("C++", "lang.md"), ('"seven"', "lang.md"), ('"seven', "lang.md"), ("seven?", "lang.md"),
        ("'seven' OR NOT (", "lang.md"), ("mill*", "lang.md"), ("(mill", "lang.md"), ("mill AND", "lang.md"),
        ("备份", "会议.md"), ("备份数据库？", "会议.md"), ("会议.md", "会议.md"),
        ("-birch", "other.md"), ("burns:best", "other.md"), ("NEAR(birch)", "other.md"),
        ("{birch}", "other.md"), ("birch;--", "other.md"), ("% birch _", "other.md"), ("\\birch", "other.md"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["hybrid", "fts", "semantic"])
def test_no_character_of_a_query_has_a_meaning(query: str, key: str, mode: str) -> None:
    async def work(memory: Memory) -> None:
        for name, text in DOCUMENTS.items():
            await memory.items.put(*WORKSPACE, name, text)
        assert (await keys(memory, query, mode=mode))[:1] == [key]

    ended(once(), work)


@given(st.text(max_size=40), st.text(max_size=10))
def test_no_query_raises(query: str, mode: str) -> None:
    async def work(memory: Memory) -> None:
        await memory.items.put(*WORKSPACE, "a.md", "Birch burns best.")
        assert (await memory.workspace.search(*A, query, mode=mode)).mode in ("hybrid", "fts", "semantic")

    ended(once(), work)


def test_a_hit_says_where_it_is(memory: Memory) -> None:
    async def work(memory: Memory) -> None:
        put = await memory.items.put(*WORKSPACE, "notes/oven.md", PAGES["notes/oven.md"])
        found = await memory.workspace.search(*A, "which wood burns", mode="whatever", limit=1)
        assert (found.mode, found.limit, found.known, found.degraded) == ("hybrid", 1, True, None)
        (hit,) = found.hits
        assert (hit.key, hit.first, hit.last) == ("notes/oven.md", 5, 6)
        assert (hit.title, hit.text) == ("notes/oven.md: Oven", "## Wood\nBirch burns best.")
        assert (hit.position, hit.source, hit.weak) == (put.position, "views", False)
        assert found.format().startswith("notes/oven.md:5-6 (")

    ended(memory, work)


def test_semantic_search_without_an_index_says_that_it_compared_words() -> None:
    async def work(memory: Memory) -> None:
        await memory.items.put(*WORKSPACE, "a.md", "Birch burns best.")
        found = await memory.workspace.search(*A, "birch", mode="semantic")
        assert (len(found.hits), found.mode, found.degraded) == (
            1,
            "semantic",
            "only words were compared: the index is off",
        )

    ended(once(), work)


def test_the_part_that_says_a_word_is_before_those_below_a_heading_that_says_it() -> None:
    async def work(memory: Memory) -> None:
        await memory.items.put(*WORKSPACE, "a.md", "# Birch\nA tree.\n## Use\nFor ovens.\n## Age\nOld.\n")
        await memory.items.put(*WORKSPACE, "b.md", "A long text about birch, its leaves, its bark and its wood.\n")
        found = await memory.workspace.search(*A, "birch")
        assert {(hit.key, hit.first) for hit in found.hits[:2]} == {("a.md", 1), ("b.md", 1)}

    ended(once(), work)


def test_recall_finds_documents_only_where_types_name_them() -> None:
    async def work(memory: Memory) -> None:
        await memory.items.put(*WORKSPACE, "a.md", "# Wood\nBirch burns best.")
        await memory.long_term.retain(*A, "Birch is dear this year.")
        await memory.publish(
            {"space": "village", "agent": "baker", "kind": "agent.spoke", "payload": {"text": "Birch!"}}
        )

        async def found(**more: Any) -> set[str]:
            return {hit.event.kind for hit in (await memory.recall(*A, "birch", **more)).hits}

        assert await found() == {"agent.spoke", "memory.retained"}
        assert await found(types=["document"]) == {"item.put"}
        assert await found(types=["document", "fact"]) == {"item.put", "memory.retained"}
        assert await found(types=["document", "fact", "event"]) == {"item.put", "memory.retained", "agent.spoke"}
        assert await found(types=["document"], kinds=["agent.spoke"]) == set()
        assert await found(types=["document"], session="s") == set()
        (hit,) = (await memory.recall(*A, "birch", types=["document"])).hits
        assert (hit.lines, hit.event.id, hit.text) == ((1, 2), "workspace/a.md:1-2", "a.md\n# Wood\nBirch burns best.")
        assert (await memory.recall("village", "miller", "birch", types=["document"])).hits == ()

    ended(once(), work)


def test_the_past_has_its_own_documents() -> None:
    async def work(memory: Memory) -> None:
        first = await memory.items.put(*WORKSPACE, "a.md", "Birch burns best.")
        await memory.items.put(*WORKSPACE, "a.md", "Oak burns best.")
        assert await keys(memory, "birch") == []
        assert await keys(memory, "birch", as_of=first.position) == ["a.md"]
        assert await keys(memory, "oak", as_of=first.position) == []

    ended(once(), work)


# The command line.


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, home = folder_of(tmp_path / "in"), str(tmp_path / "home")
    monkeypatch.setenv("RECALLOG_INDEX", "off")
    first = recallog("workspace", "import", *A, str(folder), "--home", home)
    assert (first.code, first.out) == (0, "3 new, 0 changed, 0 unchanged\n")
    (folder / "image.png").write_bytes(b"\x89PNG")
    again = recallog("workspace", "import", *A, str(folder), "--home", home)
    assert again.code == 1
    assert "left out image.png: is not text in UTF-8: byte 0 begins no character" in again.out
    monkeypatch.setenv("RECALLOG_WORKSPACE", str(tmp_path / "out"))
    out = recallog("workspace", "export", *A, "--home", home, "--json")
    assert (out.code, json.loads(out.out)["new"]) == (0, sorted(PAGES))
    assert files_of(tmp_path / "out") == {key: text.encode() for key, text in PAGES.items()}
    found = recallog("workspace", "search", *A, "which wood burns?", "--mode", "fts", "--home", home)
    assert [line.split()[1:] for line in found.out.splitlines()][:1] == [["notes/oven.md:5-6", "Oven"]]
    assert "degraded" not in found.err
    wrong = recallog("workspace", "export", "village", "bakr", str(tmp_path / "x"), "--home", home)
    assert (wrong.code, "baker" in wrong.err) == (1, True)
