"""The demo: it keeps its promises twice in a row, and its recording obeys the rules that the story tells of."""

import time
from collections.abc import Collection
from pathlib import Path

import pytest

from recallog import Event, Memory
from recallog_projections.visibility import sees
from recallog_schemas import codec
from recallog_schemas.kinds import DEFAULT_SHARED_KINDS
from recallog_service.demo import village
from support.cli import recallog, spawn
from support.events import event, run


@pytest.fixture(scope="module")
def recording() -> list[Event]:
    return village.recording()


# The command.


def test_the_demo_runs_twice_in_one_folder_and_all_is_as_it_says(tmp_path: Path) -> None:
    for _ in range(2):
        began = time.monotonic()
        result = spawn("demo", "--json", cwd=tmp_path)
        assert (result.code, result.err) == (0, "")
        assert time.monotonic() - began < 30
        seen = result.json
        assert seen["ok"] is True
        assert seen["crash"]["lost"] == seen["crash"]["doubled"] == 0
        assert seen["crash"]["in_ledger"] == len(village.recording())
        assert seen["digest_before"] == seen["digest_after_rebuild"]
    assert (tmp_path / ".recallog" / "demo" / "ledger.db").exists()


def test_it_tells_its_story_to_people(tmp_path: Path) -> None:
    result = recallog("demo", "--home", tmp_path / "demo")
    assert result.code == 0
    assert "0 lost, 0 doubled" in result.out
    assert "DIFFERENT" not in result.out
    assert "Something above is not as it should be" not in result.out


def test_it_spares_a_folder_that_holds_something_else(tmp_path: Path) -> None:
    async def work() -> list[int]:
        async with Memory.open(tmp_path) as memory:
            await memory.publish(event(space="mine"))
            return await memory.ledger_ends()

    before = run(work())
    result = recallog("demo", "--home", tmp_path)
    assert result.code == 1
    assert "mine" in result.err
    assert run(work()) == [before[0] + 1]


# The recording.


def test_it_is_a_village_s_life(recording: list[Event]) -> None:
    assert len(recording) >= 300
    assert len({each.agent for each in recording}) >= 6
    assert len({each.session for each in recording}) >= 2
    said = {each.kind for each in recording}
    assert {"agent.thought", "user.injected", "judge.verdict", "agent.reflected"} <= said
    assert {each.space for each in recording} == {village.SPACE}


def test_its_ids_are_unique_and_its_clocks_never_go_back(recording: list[Event]) -> None:
    assert len({each.id for each in recording}) == len(recording)
    assert [each.turn for each in recording] == sorted(each.turn for each in recording)
    assert [each.at for each in recording] == sorted(each.at for each in recording)


def test_every_line_is_an_event_of_the_ledger_s_own_form() -> None:
    for data in village.RECORDING.read_bytes().splitlines():
        assert codec.decode(codec.encode(codec.decode(data))) == codec.decode(data)


def test_every_belief_rests_on_what_its_agent_could_see_before(recording: list[Event]) -> None:
    shared: Collection[str] = DEFAULT_SHARED_KINDS
    sharing_at: dict[str, Collection[str]] = {}
    seen: dict[str, Event] = {}
    beliefs = 0
    for each in recording:
        if each.kind == "agent.reflected":
            beliefs += 1
            assert each.payload["based_on"], each.id
            for based_on in each.payload["based_on"]:
                assert based_on in seen, f"{each.id} rests on {based_on}, which was not yet said"
                assert sees(each.agent, seen[based_on], sharing_at[based_on]), f"{each.id} rests on {based_on}"
        seen[each.id], sharing_at[each.id] = each, shared
        if each.kind in ("space.configured", "run.started") and each.payload.get("shared_kinds") is not None:
            shared = each.payload["shared_kinds"]
    assert beliefs >= 3


def test_a_thought_has_no_audience(recording: list[Event]) -> None:
    assert all(each.audience is None for each in recording if each.kind == "agent.thought")
