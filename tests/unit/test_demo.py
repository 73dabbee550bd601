"""The demo: its claims hold in two runs in a row, and its recording obeys the rules of the story."""

from pathlib import Path

import pytest
from filelock import FileLock

from recallog import Event, Memory
from recallog_demo import days, facts, lesson, village
from recallog_projections.views import visibility
from recallog_projections.views.settings import SpaceSettings
from recallog_schemas import codec
from recallog_schemas.errors import RecallogError
from support.cli import recallog, spawn
from support.events import event, run

pytestmark = pytest.mark.models("all")


@pytest.fixture(scope="module")
def recording() -> list[Event]:
    return village.recording()


# The command.


def test_the_demo_runs_twice_in_one_folder_and_all_its_claims_hold(tmp_path: Path) -> None:
    for _ in range(2):
        result = spawn("demo", "--json", cwd=tmp_path)
        assert result.code == 0
        assert all(line.startswith(("ingesting: ", "indexing: ")) for line in result.err.splitlines()), result.err
        seen = result.json
        assert seen["ok"] is True
        assert seen["crash"]["lost"] == seen["crash"]["doubled"] == 0
        assert seen["crash"]["in_ledger"] == len(village.recording())
        assert seen["without_index_because"] is None
        assert seen["recalled_by_knower"][0] == village.PRIVATE_THOUGHT
        assert village.PRIVATE_THOUGHT not in seen["recalled_by_accuser"] + seen["recalled_by_accuser_later"]
        assert [line.rpartition("] ")[2] for line in seen["lesson_used"]] == [lesson.NOTES[0]]
        assert [line.rpartition("] ")[2] for line in seen["lesson_corrected"]] == [lesson.CORRECTED]
        assert (seen["lesson_forgotten"], seen["lesson_found_after_rebuild"]) == ([], 0)
        assert tuple(seen["facts_drawn"]) == facts.FACTS
        assert tuple(seen["facts_over_two_hops"]) == facts.HOPS
        assert seen["facts_after_update"] == [*facts.HOPS[:2], facts.UPDATED]
        assert [day["finger"] for day in seen["days"]] == days.PASSED["finger"].split()
        assert tuple(seen["days_why"]) == days.WHY
        assert seen["days_summaries"] == [days.SUMMARY]
        assert seen["changes_found_in_ledger"] == [f"0:0 to 0:{len(village.recording()) - 1}"]
        assert seen["digest_before"] == seen["digest_after_rebuild"]
    assert (tmp_path / ".recallog" / "demo" / "ledger.db").exists()


def test_it_prints_its_story(tmp_path: Path) -> None:
    result = spawn("demo", "--home", tmp_path / "demo")
    assert result.code == 0
    assert "0 lost, 0 doubled" in result.out
    assert "is unavailable" not in result.out
    assert "DIFFERENT" not in result.out
    assert "did not give the expected result" not in result.out


def test_it_continues_by_words_if_the_index_cannot_start(tmp_path: Path) -> None:
    (tmp_path / "index" / "service.json" / "in the way").mkdir(parents=True)
    found = run(village.recall_in_other_words(tmp_path, lambda done, total: None))
    assert found.without_index is not None
    assert "service.json" in found.without_index
    assert found.knower.hits == ()
    assert found.later.hits[0].event.id == village.TESTIMONY
    assert found.as_expected


def test_the_lesson_is_in_the_prompts_between_its_learning_and_its_erasure(tmp_path: Path) -> None:
    learned = run(lesson.learn_and_forget(tmp_path))
    assert learned.as_expected, learned


def test_notes_age_by_their_use_and_their_tier(tmp_path: Path) -> None:
    aged = run(days.let_days_pass(tmp_path))
    assert aged.as_expected, aged


def test_an_index_that_was_left_behind_is_removed_before_the_next_run(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(village.settings(tmp_path)) as memory:
            await memory.publish_many(village.recording())
        (tmp_path / "index" / "engine").mkdir(parents=True)
        await village.remove_earlier_run(tmp_path)

    run(work())
    assert not (tmp_path / "index").exists()
    assert not (tmp_path / "ledger.db").exists()


def test_it_keeps_a_folder_whose_index_is_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with Memory.open(village.settings(tmp_path)) as memory:
            await memory.publish_many(village.recording())
        (tmp_path / "index").mkdir()
        with FileLock(tmp_path / "index" / "service.lock"):
            await village.remove_earlier_run(tmp_path)

    monkeypatch.setattr(village, "INDEX_WAIT_SECONDS", 0.0)
    with pytest.raises(RecallogError, match="in use"):
        run(work())
    assert (tmp_path / "ledger.db").exists()


def test_it_keeps_a_folder_with_other_content(tmp_path: Path) -> None:
    async def work() -> list[int]:
        async with Memory.open(tmp_path) as memory:
            await memory.publish(event(space="mine"))
            return await memory.admin.ledger_ends()

    before = run(work())
    result = recallog("demo", "--home", tmp_path)
    assert result.code == 1
    assert "mine" in result.err
    assert run(work()) == [before[0] + 1]


# The recording.


def test_the_recording_has_enough_events_agents_sessions_and_kinds(recording: list[Event]) -> None:
    assert len(recording) >= 300
    assert len({each.agent for each in recording}) >= 6
    assert len({each.session for each in recording}) >= 2
    kinds = {each.kind for each in recording}
    assert {"agent.thought", "user.injected", "judge.verdict", "agent.reflected"} <= kinds
    assert {each.space for each in recording} == {village.SPACE}


def test_its_ids_are_unique_and_its_clocks_never_go_back(recording: list[Event]) -> None:
    assert len({each.id for each in recording}) == len(recording)
    assert [each.turn for each in recording] == sorted(each.turn for each in recording)
    assert [each.at for each in recording] == sorted(each.at for each in recording)


def test_every_line_is_an_event_of_the_ledger_s_own_form() -> None:
    for data in village.RECORDING.read_bytes().splitlines():
        assert codec.decode(codec.encode(codec.decode(data))) == codec.decode(data)


def test_the_evidence_of_every_belief_was_visible_to_its_agent_before(recording: list[Event]) -> None:
    set_to = SpaceSettings()
    set_to_at: dict[str, SpaceSettings] = {}
    seen: dict[str, Event] = {}
    beliefs = 0
    for each in recording:
        if each.kind == "agent.reflected":
            beliefs += 1
            assert each.payload["based_on"], each.id
            for based_on in each.payload["based_on"]:
                assert based_on in seen, f"{each.id} rests on {based_on}, which was not yet said"
                source = seen[based_on]
                is_seen = visibility.is_shared(source, set_to_at[based_on]) or each.agent in visibility.readers(source)
                assert is_seen, f"{each.id} rests on {based_on}"
        seen[each.id], set_to_at[each.id] = each, set_to
        if each.kind in ("space.configured", "run.started") and each.payload.get("shared_kinds") is not None:
            set_to = SpaceSettings(shared_kinds=tuple(each.payload["shared_kinds"]))
    assert beliefs >= 3


def test_a_thought_has_no_audience(recording: list[Event]) -> None:
    assert all(each.audience is None for each in recording if each.kind == "agent.thought")
