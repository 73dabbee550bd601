"""Short ids of entries: a terminal shows them, and commands take them."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog import Memory
from recallog.operations.facade import all_operations
from recallog.operations.operation import Operation
from recallog_schemas.errors import InvalidArgument
from recallog_service.cli import short_ids
from support.cli import recallog
from support.events import event, run
from support.terminal import on_a_terminal

pytestmark = pytest.mark.models("tiers")

FIRST = "01a21ada-3c42-77e8-8743-651b69b4d868"
SECOND = "01a21ada-54c2-7039-9935-1730ba49c7c0"
ARCHIVED = "01b99999-54c2-7039-9935-1730ba49c7c1"
TEXTS = {
    FIRST: "The mill burned down.",
    SECOND: "Ada likes bread.",
    "abcd": "An id of a program.",
    ARCHIVED: "Rye is dear.",
}
LIST, GET, FORGET = (all_operations(Memory)[f"long_term.{name}"] for name in ("list", "get", "forget"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Entries of the baker, one of them archived."""
    folder = tmp_path_factory.mktemp("home")

    async def work() -> None:
        async with Memory.open(folder) as memory:
            for id_, text in TEXTS.items():
                await memory.long_term.retain("village", "baker", text, entry_id=id_)
            await memory.long_term.archive("village", "baker", ARCHIVED, reason="old")

    run(work())
    return folder


def test_a_terminal_shows_short_ids_and_a_pipe_and_json_show_whole_ones(home: Path) -> None:
    command = "long-term", "list", "village", "baker", "--home", home
    shown = on_a_terminal(*command).shown
    assert "69b4d868 fact The mill" in shown
    assert "abcd fact An id" in shown
    assert FIRST not in shown
    assert FIRST in recallog(*command).out
    assert [each["id"] for each in recallog(*command, "--json").json["entries"]] == ["abcd", SECOND, FIRST]


@pytest.mark.parametrize(
    ("part", "id_"),
    [("69b4d868", FIRST), ("d868", FIRST), (FIRST[:13], FIRST), ("01a21ada54", SECOND), (ARCHIVED[-8:], ARCHIVED),
     ("abcd", "abcd"), (SECOND, SECOND)],
)  # fmt: skip
def test_a_command_takes_the_beginning_or_the_end_of_an_id(home: Path, part: str, id_: str) -> None:
    found = recallog("long-term", "get", "village", "baker", part, "--home", home, "--json").json
    assert found["entry"]["id"] == id_


def test_the_commands_of_tiers_take_short_ids_too(tmp_path: Path) -> None:
    kept = recallog(
        "long-term", "retain", "village", "baker", "Rye.", "--tier", "fast", "--home", tmp_path, "--json"
    ).json
    found = recallog("tiers", "entry", "village", "baker", kept["id"][-8:], "--home", tmp_path, "--json").json
    assert found["found"]["entry"]["id"] == kept["id"]


def test_a_part_of_several_ids_is_an_error_that_lists_them(home: Path) -> None:
    result = recallog("long-term", "forget", "village", "baker", "01a21ada", "--home", home)
    assert (result.code, result.out) == (2, "")
    assert f"entry_ids: '01a21ada' may be {SECOND}, {FIRST}" in result.err


def test_a_part_of_no_id_is_an_unknown_id(home: Path) -> None:
    result = recallog("long-term", "get", "village", "baker", "ffffffff", "--home", home)
    assert result.code == 1


def test_an_id_that_another_owner_shares_is_not_the_end_of_an_own_one(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.long_term.retain("village", "baker", TEXTS[FIRST], entry_id=FIRST)
            await memory.long_term.retain("village", "miller", "Rye.", entry_id="d868", audience=["baker"])

    run(work())
    found = recallog("long-term", "get", "village", "baker", "d868", "--home", tmp_path, "--json").json
    assert found["entry"]["text"] == "Rye."


def test_the_id_of_a_new_entry_is_taken_as_it_is(tmp_path: Path) -> None:
    made = recallog(
        "long-term", "retain", "village", "miller", "Flour.", "--entry-id", "d868", "--home", tmp_path, "--json"
    )
    assert made.json["id"] == "d868"


@pytest.fixture(scope="module")
def village(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An event and an entry of the baker, and an entry of the miller."""
    folder = tmp_path_factory.mktemp("village")

    async def work() -> None:
        async with Memory.open(folder) as memory:
            await memory.publish(event(id=SECOND, payload={"text": "Fresh bread!"}))
            await memory.long_term.retain("village", "baker", TEXTS[FIRST], entry_id=FIRST)
            await memory.long_term.retain("village", "miller", TEXTS[ARCHIVED], entry_id=ARCHIVED)

    run(work())
    return folder


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["entries", "village", "baker"], "Fresh bread!"),
        pytest.param(["explain", "village", "baker"], "remembered", marks=pytest.mark.models("prompt")),
        (["timeline", "village", "baker", "--around"], f"> {SECOND}"),
        (["lineage", "village", "baker"], "Fresh bread!"),
    ],
)
def test_a_command_that_names_an_event_takes_a_part_of_its_id(
    village: Path, command: Sequence[str], shown: str
) -> None:
    found = recallog(*command, SECOND[-8:], "--home", village)
    assert (found.code, shown in found.out) == (0, True), found


def test_whole_events_are_found_by_parts_of_ids_of_entries_too(village: Path) -> None:
    assert "The mill burned down." in recallog("entries", "village", "baker", FIRST[-8:], "--home", village).out


def test_an_erasure_takes_a_part_of_the_id_of_an_entry_of_any_agent_and_no_other_one(village: Path) -> None:
    command = "erase", "village", "--dry-run", "--json", "--home", village
    whole, part = (recallog(*command, "--entry", id_).json for id_ in (ARCHIVED, ARCHIVED[-8:]))
    assert whole["names"] == part["names"] == [ARCHIVED]
    beginning = recallog(*command, "--entry", "01a2")  # that of the id of the event, too
    assert beginning.json["names"] == [FIRST]


def test_an_unknown_id_is_answered_with_the_command_that_lists_ids(village: Path) -> None:
    found = recallog("long-term", "get", "village", "baker", "ffffffff", "--home", village)
    assert found.code == 1
    assert "list the ids: recallog long-term list village baker" in found.err


@given(st.lists(st.uuids().map(str), min_size=1, max_size=6, unique=True), st.data())
def test_a_part_is_the_id_that_begins_or_ends_so(ids: Sequence[str], data: st.DataObject) -> None:
    id_ = data.draw(st.sampled_from(ids))
    length = data.draw(st.integers(4, 35))
    part = data.draw(st.sampled_from([id_[:length], id_[-length:]]))
    plain = part.replace("-", "")
    expected = [
        each for each in ids if each.replace("-", "").startswith(plain) or each.replace("-", "").endswith(plain)
    ]

    def written_out() -> str:
        return short_ids.whole(part, ids, "--entry-id")

    if len(expected) > 1:
        with pytest.raises(InvalidArgument, match="may be"):
            written_out()
    else:
        assert written_out() == (id_ if len(part) >= 4 else part)


def test_a_beginning_that_many_ids_share_is_refused_in_one_line() -> None:
    ids = [f"01a21c27-f7fc-7204-ad4e-{number:012x}" for number in range(3_000)]
    with pytest.raises(InvalidArgument, match=r"may be 01a21c27\S+(, \S+){4} and 2,995 more$"):
        short_ids.whole("01a2", ids, "--entry-id")


@pytest.mark.parametrize("operation", [LIST, GET, FORGET], ids=lambda each: each.name)
def test_what_takes_no_short_id_is_asked_for_no_list(home: Path, operation: Operation) -> None:
    async def work() -> None:
        async with Memory.open(home) as memory:
            arguments = {"space": "village", "agent": "baker", "entry_id": FIRST}
            known = {name: value for name, value in arguments.items() if name in operation.parameters}
            assert await short_ids.written_out(memory, operation, known) == known

    run(work())


def test_a_lineage_takes_short_ids_of_entries_and_whole_ids_of_events(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish(event(id="d-868", agent="baker"))
            await memory.long_term.retain("village", "baker", "The mill burned down.", entry_id=FIRST)

    run(work())
    command = "lineage", "village", "baker"
    for part, id_ in (("69b4d868", FIRST), (FIRST, FIRST), ("d-868", "d-868")):
        assert recallog(*command, part, "--home", tmp_path, "--json").json["event_id"] == id_
    further = recallog(*command, "d-868", "--further", "69b4d868", "--home", tmp_path, "--json").json
    assert [each["memory"]["id"] for each in further["nodes"]] == ["d-868", FIRST]
