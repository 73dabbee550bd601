"""The commands of the tutorials print what their transcripts show."""

import re
from pathlib import Path

import pytest

from recallog_tools.transcripts import CLUSTER, TRANSCRIPTS, TUTORIALS, Step, run_steps, stable_parts, steps_of
from support.transcripts import environment_in, recorded

ALONE = [page for page in TUTORIALS if page.stem != CLUSTER]


@pytest.mark.models("all")
@pytest.mark.parametrize("page", ALONE, ids=lambda page: page.stem)
def test_each_command_of_a_tutorial_prints_what_its_transcript_shows(page: Path, tmp_path: Path) -> None:
    steps = [step for step in steps_of(page) if not step.is_setup]
    found = run_steps(steps, tmp_path, environment_in(tmp_path))
    assert found == recorded(page)


@pytest.mark.models("all")
def test_a_simulation_that_was_stopped_continues_there(tmp_path: Path) -> None:
    """The program of the tutorial, started again after all events of a run, and after the first ones of it."""
    environment = environment_in(tmp_path)
    program = steps_of(TRANSCRIPTS.parent / "tutorials" / "simulation.md")[0]
    whole = run_steps([program, program, Step("recallog export --output all.jsonl")], tmp_path, environment)
    once, twice = re.findall(r"^\$ python.*\n((?:[^$].*\n)+)", whole, re.MULTILINE)
    assert once == twice
    for events in (4, 11):
        folder = tmp_path / str(events)
        folder.mkdir()
        lines = (tmp_path / "all.jsonl").read_text().splitlines(keepends=True)
        (folder / "begun.jsonl").write_text("".join(lines[:events]))
        found = run_steps([Step("recallog ingest begun.jsonl"), program], folder, environment)
        assert found.endswith(once), events


def test_each_tutorial_has_a_transcript_of_all_its_commands() -> None:
    assert {path.stem for path in TRANSCRIPTS.iterdir()} == {page.stem for page in TUTORIALS}
    for page in TUTORIALS:
        text = (TRANSCRIPTS / f"{page.stem}.txt").read_text()
        commands = [step.command for step in steps_of(page) if not step.command.startswith("export ")]
        assert commands
        assert all(stable_parts(f"$ {command}\n") in text for command in commands), page.stem


def test_a_page_names_its_transcript() -> None:
    for page in TUTORIALS:
        assert f"(../transcripts/{page.stem}.txt)" in page.read_text()


def test_the_stable_parts_of_two_runs_are_equal_and_of_other_answers_are_not() -> None:
    first = "0:1 in 12.5 ms at 2026-03-01T12:00:00Z on 127.0.0.1:9092 by /a/bin/recallog"
    again = "0:1 in 7 s at 2027-01-02T00:00:00.5+01:00 on 127.0.0.1:4711 by /b/c/bin/recallog"
    assert stable_parts(first) == stable_parts(again)
    assert stable_parts("added 2") != stable_parts("added 3")
