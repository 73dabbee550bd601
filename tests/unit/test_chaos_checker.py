"""The checker of the chaos run: each kind of error in a history or a view is found and named."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from chaos import history, own_writes
from chaos.campaign import KAFKA, MODEL, REDIS, ActionKind, Campaign
from chaos.check import check
from chaos.events import NUMBER, contradiction, event_of
from chaos.evidence import Dump, Evidence, TopicRecord, dump
from chaos.history import Acknowledged
from chaos.processes import json_of
from chaos.reader import Truth, WrongAnswer
from recallog_projections.tables import Table
from recallog_projections.views import activity, episodic, settings
from recallog_schemas import Event, Position, codec
from recallog_schemas.views import EpisodicView, Remembered
from recallog_streams import dead_letters
from support.folding import finish, folded, ledger_at

pytestmark = pytest.mark.models("all")

SEED, SPACES, EVENTS = 7, ("village", "city"), 60
BY_SPACE = dict.fromkeys(SPACES, EVENTS)


def published() -> list[tuple[str, int, Event, str]]:
    """All events of two spaces that share a partition; some repeated, and one with conflicting content."""
    written = []
    for number in range(EVENTS):
        for space in SPACES:
            written.append((space, number, event_of(SEED, space, number), history.FIRST))
            if number % 9 == 8:
                written.append((space, number - 3, event_of(SEED, space, number - 3), history.AGAIN))
    space, number, event, _ = next(one for one in written if not one[2].id.endswith("/answer"))
    written.append((space, number, contradiction(event, 1), history.CONTRADICTION))
    return written


@pytest.fixture
def evidence() -> Evidence:
    """The evidence of a run without errors."""
    written = published()
    acknowledged = [
        Acknowledged(space, number, event.id, 0, offset, why)
        for offset, (space, number, event, why) in enumerate(written)
    ]
    topic = [
        TopicRecord(offset, event.space.encode(), codec.encode(event)) for offset, (*_, event, _) in enumerate(written)
    ]
    return Evidence(acknowledged, {0: topic}, {0: views_of(topic)})


def views_of(topic: list[TopicRecord]) -> Dump:
    """The views that the projector builds for a partition."""
    projector, generation = folded(ledger_at([record.value for record in topic], unique_ids=False))
    return finish(dump(projector.store, generation))


def found(evidence: Evidence) -> list[str]:
    """The names of the checks that have findings."""
    return sorted({finding.partition(":")[0].partition(",")[0] for finding in check(evidence, BY_SPACE)[1]})


def change(evidence: Evidence, table: str, doctor: Callable[[bytes], bytes | None], log: bool = False) -> None:
    """Put another row, or none, in address of the first one of a table."""
    rows = evidence.dumps[0].logs[table] if log else evidence.dumps[0].rows[table]
    address = min(rows)
    changed = doctor(rows.pop(address))
    if changed is not None:
        rows[address] = changed


def test_a_run_without_fault_has_no_findings_and_the_figures_of_the_sent_events(evidence: Evidence) -> None:
    facts, findings = check(evidence, BY_SPACE)
    assert findings == []
    assert (facts.records, facts.duplicates, facts.dead_letters, facts.spaces) == (len(published()), 12, 1, 2)


def test_an_acknowledged_event_that_the_topic_lost_is_found(evidence: Evidence) -> None:
    kept = [record for record in evidence.topic[0] if record.offset != 17]
    evidence.topic[0] = [record._replace(offset=offset) for offset, record in enumerate(kept)]
    evidence.dumps[0] = views_of(evidence.topic[0])
    _, findings = check(evidence, BY_SPACE)
    assert f"lost: {evidence.acknowledged[17].space}" in findings[0]


def test_a_lost_tail_of_the_topic_is_found(evidence: Evidence) -> None:
    evidence.topic[0] = evidence.topic[0][:-5]
    evidence.dumps[0] = views_of(evidence.topic[0])
    assert "acknowledged" in found(evidence)


def test_an_event_that_was_never_acknowledged_is_found(evidence: Evidence) -> None:
    evidence.acknowledged = [one for one in evidence.acknowledged if (one.space, one.number) != ("city", 30)]
    assert found(evidence) == ["acknowledged"]


def test_an_unpublished_event_is_found(evidence: Evidence) -> None:
    stranger = event_of(SEED, "city", EVENTS)
    evidence.topic[0].append(TopicRecord(len(evidence.topic[0]), b"city", codec.encode(stranger)))
    evidence.dumps[0] = views_of(evidence.topic[0])
    assert found(evidence) == ["acknowledged"]


def test_two_events_of_a_space_that_have_changed_order_are_found(evidence: Evidence) -> None:
    topic = evidence.topic[0]
    firsts = [found for found in evidence.acknowledged if (found.space, found.why) == ("city", history.FIRST)]
    one, other = firsts[20].offset, firsts[21].offset
    topic[one], topic[other] = (
        TopicRecord(one, b"city", topic[other].value),
        TopicRecord(other, b"city", topic[one].value),
    )
    evidence.acknowledged = [
        event._replace(offset={one: other, other: one}.get(event.offset, event.offset))
        for event in evidence.acknowledged
    ]
    evidence.dumps[0] = views_of(topic)
    assert found(evidence) == ["in_order"]


def test_a_hole_in_the_offsets_is_found(evidence: Evidence) -> None:
    *before, last = evidence.topic[0]
    evidence.topic[0] = [*before, last._replace(offset=last.offset + 1)]
    assert "in_order" in found(evidence)


def test_a_record_under_the_key_of_another_space_is_found(evidence: Evidence) -> None:
    evidence.topic[0][3] = evidence.topic[0][3]._replace(key=b"elsewhere")
    assert found(evidence) == ["in_order"]


@pytest.mark.parametrize("table", [activity.SPACES, activity.AGENTS, activity.KINDS], ids=lambda table: table.name)
def test_an_event_that_was_counted_twice_is_found(evidence: Evidence, table: Table[Any]) -> None:
    def once_more(row: bytes) -> bytes:
        span = table.decode(row)
        return table.encode(msgspec.structs.replace(span, events=span.events + 1))

    change(evidence, table.name, once_more)
    assert "counted" in found(evidence)


def test_a_lost_memory_is_found(evidence: Evidence) -> None:
    change(evidence, episodic.OWN.name, lambda _: None, log=True)
    assert set(found(evidence)) >= {"remembered", "folded"}


def test_a_duplicated_memory_is_found(evidence: Evidence) -> None:
    entries = evidence.dumps[0].logs[episodic.SHARED.name]
    space, owner, last = max(entries)
    entries[space, owner, f"{int(last) + 1:020d}"] = entries[space, owner, last]
    assert set(found(evidence)) >= {"remembered", "folded"}


def test_two_memories_that_have_changed_order_are_found(evidence: Evidence) -> None:
    entries = evidence.dumps[0].logs[episodic.SHARED.name]
    one, other, *_ = sorted(entries)
    entries[one], entries[other] = entries[other], entries[one]
    assert "remembered" in found(evidence)


def test_a_memory_of_another_space_is_found(evidence: Evidence) -> None:
    entries = evidence.dumps[0].logs[episodic.SHARED.name]
    entries[min(entries)] = entries[max(entries)]
    assert set(found(evidence)) >= {"remembered", "folded"}


def test_a_wrong_dead_letter_is_found(evidence: Evidence) -> None:
    letters = evidence.dumps[0].rows[dead_letters.TABLE.name]
    letter = dead_letters.DeadLetterRow(0, "invalid", "but it is not")
    letters["", "", dead_letters.key_of(0)] = dead_letters.TABLE.encode(letter)
    assert set(found(evidence)) >= {"dead_lettered", "folded"}


def test_a_missing_dead_letter_is_found(evidence: Evidence) -> None:
    evidence.dumps[0].rows[dead_letters.TABLE.name].clear()
    assert set(found(evidence)) >= {"dead_lettered", "folded"}


def test_a_changed_setting_is_found(evidence: Evidence) -> None:
    change(evidence, settings.AGENTS.name, lambda _: None)
    assert found(evidence) == ["folded"]


def test_views_that_have_not_reached_the_end_are_found(evidence: Evidence) -> None:
    evidence.dumps[0] = views_of(evidence.topic[0][:-1])
    assert "folded" in found(evidence)


def test_a_space_in_the_wrong_partition_is_found(evidence: Evidence) -> None:
    evidence.topic = {0: [], 1: evidence.topic[0]}
    evidence.dumps = {0: views_of([]), 1: evidence.dumps[0]}
    assert found(evidence) == ["acknowledged"]


# Choices of the seed


def test_a_seed_determines_events_and_actions() -> None:
    assert [event_of(3, "city", n) for n in range(200)] == [event_of(3, "city", n) for n in range(200)]
    assert event_of(3, "city", 5).payload[NUMBER] == 5
    assert Campaign(3).actions() == Campaign(3).actions()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("campaign", [Campaign, Campaign.quick])
def test_a_campaign_contains_all_its_kills_of_each_kind(campaign: Callable[[int], Campaign], seed: int) -> None:
    planned = campaign(seed)
    kills = [targets for action in planned.actions() if action.kind == "kill" for targets in action.targets]
    counted = [target for target in kills if target not in (*planned.producer_names, *planned.appender_names, MODEL)]
    assert kills.count(MODEL) >= 2
    assert len(counted) == planned.kills
    assert {REDIS, KAFKA} < set(counted)
    assert sum(targets in planned.worker_names for targets in counted) >= 4 * planned.kills // 10
    assert {action.kind for action in planned.actions()} == set(get_args(ActionKind))
    stopped = [action.targets[0].partition("-")[0] for action in planned.actions() if action.kind == "stop"]
    assert Counter(stopped) == dict.fromkeys(("worker", REDIS, KAFKA), planned.stops // 3)


@pytest.mark.parametrize("seconds", [60, 600, 3_600])
def test_a_campaign_that_lasts_has_calm_after_each_storm_and_about_the_time_that_was_asked_for(seconds: int) -> None:
    planned = Campaign.lasting(SEED, seconds)
    actions = planned.actions()
    calm = [number for number, action in enumerate(actions) if action.after_seconds >= planned.calm_seconds]
    assert calm == [*range(calm[0], len(actions), calm[0])]
    assert sum(action.after_seconds for action in actions) < 1.3 * seconds + 120
    assert {action.kind for action in actions} >= {"kill", "wipe", "fill", "rebuild"}


# Answers to the reader.

SPACE, BAKER = "space-000", "baker"


def answer(numbers: Sequence[int], checkpoint: int = EVENTS) -> EpisodicView:
    """The memories of the baker with these events of the space, at offsets that are their numbers."""
    memories = tuple(
        Remembered.model_construct(position=Position(0, number), event=event_of(SEED, SPACE, number), text="")
        for number in numbers
    )
    return EpisodicView.model_construct(checkpoint=Position(0, checkpoint), memories=memories)


@pytest.fixture
def truth() -> Truth:
    return Truth(Campaign(SEED, events=EVENTS, spaces=1))


@pytest.fixture
def own() -> list[int]:
    """The numbers of the events that the baker certainly remembers."""
    made = {number: event_of(SEED, SPACE, number) for number in range(EVENTS)}
    return [number for number, event in made.items() if event.agent == BAKER and own_writes.is_visible(event)]


def test_right_answers_are_right(truth: Truth, own: list[int]) -> None:
    truth.check(SPACE, BAKER, answer([], -1))
    for end in range(len(own) + 1):
        truth.check(SPACE, BAKER, answer(own[max(0, end - 5) : end], EVENTS + end))


def test_the_newest_memory_is_what_was_published_or_later() -> None:
    earlier, event, later = (event_of(SEED, SPACE, number) for number in (3, 4, 5))
    other = event.model_copy(update={"payload": {**event.payload, "text": "no"}})
    found = [own_writes.is_at_least(newest, event) for newest in (earlier, event, later, other)]
    assert found == [False, True, True, False]


def test_wrong_answers_are_found(truth: Truth, own: list[int]) -> None:
    changed = answer(own)
    changed.memories[3].event.payload["text"] = "no, it was different"
    for wrong, why in (
        (answer(own[:3] + own[4:]), "own events"),
        (answer([*own[:3], own[4], own[3]]), "out of order"),
        (answer([*own[:3], own[2]]), "out of order"),
        (changed, "no event of the run"),
    ):
        with pytest.raises(WrongAnswer, match=why):
            truth.check(SPACE, BAKER, wrong)


def test_an_answer_that_is_older_than_an_earlier_one_is_found(truth: Truth, own: list[int]) -> None:
    truth.check(SPACE, BAKER, answer(own))
    with pytest.raises(WrongAnswer, match="earlier up to"):
        truth.check(SPACE, BAKER, answer(own[:3], own[3]))


def test_a_history_cut_off_by_a_kill_is_read_up_to_the_cut_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "history"
    history.Writer(path).note("started")
    with path.open("ab") as file:
        file.write(b'{"what": "acknowledged", "events": [["ci')
    assert [line["what"] for line in history.Tail(path).lines()] == ["started"]
    history.Writer(path).note("started")
    assert [line["what"] for line in history.Tail(path).lines()] == ["started", "started"]


def test_the_json_of_a_command_is_found_behind_its_progress_and_warnings(tmp_path: Path) -> None:
    home = tmp_path / "home"
    settings = {"RECALLOG_HOME": str(home), "RECALLOG_INDEX": "off"}
    json_of(tmp_path, settings, "publish", "publish", "village", "baker", "agent.spoke", "Bread!", "--json")
    (home / "views.db").write_bytes(b"no views")
    assert json_of(tmp_path, settings, "verify", "verify", "--json")["records"] == 1
    assert "warning: " in (tmp_path / "verify.log").read_text()
