"""The flip run: it sees each kind of finding, and a trial follows from its seed."""

import asyncio
import json
import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flip import folders, judge, mutations, run, trial
from flip.folders import Folders
from flip.judge import Damage, Expected, Judge, Outcome, Verdict
from flip.mutations import Mutation
from flip.questions import OPERATIONS, PUBLISH, QUESTIONS, REPAIRS, WRITTEN, Question
from flip.trial import Plan
from recallog.layout import LEDGER, views_file
from recallog_schemas.errors import InvalidEvent, StorageCorrupt

SEED = 6
TRIALS = 8
TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Ran:
    """A run of some trials."""

    base: Path
    report: dict[str, Any]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """In a process of its own, since a process that forks should have no threads."""
    base = tmp_path_factory.mktemp("flip") / "base"
    command = [
        sys.executable,
        "-m",
        "flip",
        "--trials",
        str(TRIALS),
        "--seed",
        str(SEED),
        "--base",
        str(base),
        "--json",
    ]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}, check=False, capture_output=True
    )
    assert done.returncode in (0, 1), done.stderr.decode()
    return Ran(base, json.loads(done.stdout))


@pytest.fixture(scope="module")
def whole(ran: Ran) -> tuple[Folders, Expected]:
    return run.prepare(ran.base)


@pytest.mark.models("all")
def test_damage_gives_right_answers_or_errors_that_name_it(ran: Ran) -> None:
    assert ran.report["findings"] == []
    figures = ran.report["figures"]
    assert figures["trials"] == TRIALS
    assert figures[Verdict.RIGHT] > TRIALS * len(QUESTIONS) / 2
    assert figures[Verdict.NAMED] > 0


@pytest.fixture
def judging(whole: tuple[Folders, Expected]) -> Judge:
    return Judge(whole[1], Path("/home"), [views_file()], Damage())


def question(operation: str) -> Question:
    return next(each for each in QUESTIONS if each.operation == operation)


def answer(whole: tuple[Folders, Expected], asked: Question) -> Any:
    return whole[1].by_index[asked.name]


def planned(*damages: Mutation, state: str = "closed") -> Plan:
    return Plan(0, state, damages, live=False, repair_first=None, order=tuple(range(len(QUESTIONS))))


@pytest.mark.models("all")
def test_every_operation_is_called() -> None:
    assert {each.operation for each in (*QUESTIONS, *REPAIRS, PUBLISH, *WRITTEN)} >= OPERATIONS.keys()


@pytest.mark.models("all")
def test_a_trial_follows_from_its_seed_and_number(whole: tuple[Folders, Expected]) -> None:
    assert trial.plan(SEED, 3, whole[0]) == trial.plan(SEED, 3, whole[0])
    assert trial.plan(SEED, 3, whole[0]) != trial.plan(SEED, 4, whole[0])


@pytest.mark.models("all")
def test_each_kind_of_damage_changes_the_file(whole: tuple[Folders, Expected], tmp_path: Path) -> None:
    home, rng, kinds = whole[0].of("closed"), random.Random(SEED), set[str]()
    for number in range(200):
        drawn = mutations.draw(rng, home, [LEDGER, views_file()])
        aside = tmp_path / str(number)
        aside.mkdir()
        before = (home / drawn.file).read_bytes()
        (aside / drawn.file).write_bytes(before)
        drawn.apply(aside, whole[0].of("older"))
        changed = not (aside / drawn.file).exists() or (aside / drawn.file).read_bytes() != before
        kinds |= {drawn.kind} if changed else set()
    assert kinds == mutations.KINDS.keys()


@pytest.mark.models("all")
def test_a_folder_whose_lock_and_log_are_damaged_answers_as_before(
    whole: tuple[Folders, Expected], tmp_path: Path
) -> None:
    damaged = planned(Mutation("views.lock", "extend", (), (3, 100)), Mutation("index/service.log", "delete"))
    said: list[Outcome | str] = []
    asyncio.run(trial.run(damaged, *whole, tmp_path, said.append))
    outcomes = [each for each in said if isinstance(each, Outcome)]
    assert [each for each in outcomes if each.verdict is not Verdict.RIGHT] == []
    assert len(outcomes) > len(QUESTIONS)


@pytest.mark.models("all")
def test_a_wrong_value_is_found(whole: tuple[Folders, Expected], judging: Judge) -> None:
    asked = question("episodic")
    right = answer(whole, asked)
    assert judging.answer(asked, right)[0] is Verdict.RIGHT
    assert judging.answer(asked, right | {"known": False})[0] is Verdict.WRONG
    assert judging.answer(asked, right | {"generation": "another"})[0] is Verdict.RIGHT


@pytest.mark.models("all")
def test_a_row_that_fails_its_checksum_is_known(whole: tuple[Folders, Expected]) -> None:
    rows = [row for row in folders.rows_of(whole[0].of("closed") / views_file()) if row[0] in trial.CHECKED]
    assert {row[0] for row in rows} == trial.CHECKED
    assert not any(map(trial.fails_checksum, rows))
    for row in rows:
        for column, value in enumerate(row[2:], 2):
            altered = value + b"x" if isinstance(value, bytes) else value + 1  # type: ignore[operator]
            assert trial.fails_checksum((*row[:column], altered, *row[column + 1 :]))


@pytest.mark.models("all")
def test_a_ledger_whose_damage_python_cannot_decode_is_unreadable(
    whole: tuple[Folders, Expected], tmp_path: Path
) -> None:
    content = (whole[0].of("closed") / LEDGER).read_bytes()
    assert content.count(b"number INTEGER PRIMARY KEY, name TEXT") == 1
    (tmp_path / LEDGER).write_bytes(content.replace(b"KEY, name TEXT", b"KEY, n\xedme TEXT"))
    assert judge.look(tmp_path / LEDGER, whole[1].records) == Damage(readable=False)


@pytest.mark.models("all")
def test_records_of_exchanged_pages_are_lost(whole: tuple[Folders, Expected], tmp_path: Path) -> None:
    """Reading all of them finds them, and reading them by their offsets does not."""
    (tmp_path / LEDGER).write_bytes((whole[0].of("closed") / LEDGER).read_bytes())
    with closing(sqlite3.connect(tmp_path / LEDGER)) as connection:
        sql = "SELECT pageno FROM dbstat WHERE name = 'events' AND pagetype = 'leaf' ORDER BY path"
        pages = [number for (number,) in connection.execute(sql)]
    exchanged = [(page - 1) * mutations.PAGE_BYTES for page in (pages[2], pages[9])]
    Mutation(LEDGER, "swap_pages", tuple(exchanged), (mutations.PAGE_BYTES,)).apply(tmp_path, tmp_path)
    damage = judge.look(tmp_path / LEDGER, whole[1].records)
    assert damage.readable
    assert 2 < len(damage.lost) < len(whole[1].records)


@pytest.mark.models("all")
def test_a_wrong_event_is_found_also_in_an_answer_that_a_damaged_index_may_rank_otherwise(
    whole: tuple[Folders, Expected],
) -> None:
    judging = Judge(whole[1], Path("/home"), ["index/rows.db"], Damage())
    asked = question("recall")
    right = answer(whole, asked)
    first, *others = right["hits"]
    assert judging.answer(asked, right | {"hits": others})[0] is Verdict.RANKED
    altered = first | {"event": first["event"] | {"turn": 7_000}}
    assert judging.answer(asked, right | {"hits": [altered, *others]})[0] is Verdict.WRONG


@pytest.mark.models("all")
@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (StorageCorrupt("the views file /home/views.db is damaged. Build it again: recallog rebuild"), Verdict.NAMED),
        (StorageCorrupt("a row is damaged. Build the views again: recallog rebuild"), Verdict.VAGUE),
        (StorageCorrupt("the views file /home/views.db is damaged"), Verdict.VAGUE),
        (InvalidEvent("payload.text: /home/views.db, try again"), Verdict.BLAMING),
        (KeyError("offset"), Verdict.RAW),
    ],
)
def test_an_error_names_the_file_and_a_remedy(judging: Judge, error: Exception, verdict: Verdict) -> None:
    assert judging.error(question("episodic"), error)[0] is verdict


@pytest.mark.models("all")
def test_a_damaged_record_that_a_rebuild_adopts_is_found(whole: tuple[Folders, Expected]) -> None:
    judging = Judge(whole[1], Path("/home"), [LEDGER], Damage(altered=frozenset({57})))
    rebuild = next(each for each in REPAIRS if each.operation == "admin.rebuild")
    assert judging.answer(rebuild, {"items": []})[0] is Verdict.ADOPTED
    named = StorageCorrupt("the ledger /home/ledger.db is damaged at 0:57. Restore your backup")
    assert judging.error(rebuild, named)[0] is Verdict.NAMED
    unnamed = StorageCorrupt("the ledger /home/ledger.db is damaged at 0:58. Restore your backup")
    assert judging.error(rebuild, unnamed)[0] is Verdict.VAGUE


@pytest.mark.models("all")
def test_a_ledger_that_ends_earlier_is_told_from_one_with_a_hole(whole: tuple[Folders, Expected]) -> None:
    records = len(whole[1].records)
    cut, hole = Damage(lost=frozenset(range(100, records))), Damage(lost=frozenset({100}))
    assert (cut.end(records), cut.within(records)) == (100, frozenset())
    assert (hole.end(records), hole.within(records)) == (records, {100})
    assert Damage(altered=frozenset({7}), lost=cut.lost).within(records) == {7}
