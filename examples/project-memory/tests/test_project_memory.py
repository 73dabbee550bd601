"""The memory of a project, over a small one: its notes, sessions, decisions, open items and hooks."""

import io
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from project_memory import main

CACHE = "# Why there is no cache\n\nWe removed the cache because two nodes disagreed about prices.\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two notes, in which the commands run."""
    monkeypatch.setenv("RECALLOG_INDEX", "off")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "cache.md").write_text(CACHE)
    (tmp_path / "README.md").write_text("# Shop\n\nSells plums.\n")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "other.md").write_text("Not ours.")
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """The exit code of a command, and what it prints."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    return int(ended.value.code or 0), capsys.readouterr().out.strip()


def transcript(*said: tuple[str, str]) -> str:
    """A session log as Claude Code writes it."""
    lines: Sequence[dict[str, object]] = [
        {
            "type": role,
            "uuid": f"u{number}",
            "sessionId": "one",
            "cwd": "/home/ann/shop",
            "timestamp": f"2026-03-01T12:00:{number:02}Z",
            "message": {"role": role, "content": text},
        }
        for number, (role, text) in enumerate(said)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


def test_a_question_is_answered_by_a_note_with_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "load") == (0, "2 notes changed, 0 removed, 0 events added")
    assert call(capsys, "load") == (0, "0 notes changed, 0 removed, 0 events added")
    code, printed = call(capsys, "why", "Why did we remove the cache?")
    assert (code, printed.splitlines()[0]) == (0, "docs/cache.md:1-3")
    assert "two nodes disagreed about prices" in printed
    assert call(capsys, "why", "zeppelin") == (1, "(nothing)")


def test_a_note_that_changes_or_goes_is_no_longer_quoted(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "load")
    (project / "docs" / "cache.md").write_text("# The cache is back\n\nPrices are versioned now.\n")
    (project / "README.md").unlink()
    assert call(capsys, "load") == (0, "1 notes changed, 1 removed, 0 events added")
    assert "disagreed" not in call(capsys, "why", "Why is there no cache?")[1]
    assert call(capsys, "why", "plums") == (1, "(nothing)")


def test_sessions_are_read_as_they_grow_and_answer_with_their_date(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [("user", "Deploy with make ship, never by hand."), ("assistant", "I will use make ship.")]
    logs = project / "logs"
    logs.mkdir()
    (logs / "one.jsonl").write_text(transcript(*said[:1]))
    assert call(capsys, "load", "logs")[1].endswith("1 events added")
    (logs / "one.jsonl").write_text(transcript(*said))
    assert call(capsys, "load", "logs")[1].endswith("1 events added")
    printed = call(capsys, "why", "How do we deploy by hand?")[1]
    assert printed.splitlines()[0] == "user in session one, 2026-03-01"
    assert "I will use make ship." in call(capsys, "brief")[1]


def test_a_note_that_is_too_long_is_left_out_and_the_others_are_read(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "long.txt").write_text("Zebras are striped.")
    (project / "quotes.txt").write_text("Zebras are fast.")
    assert call(capsys, "load")[1].startswith("4 notes changed")
    (project / "long.txt").write_text("x" * 70_000)
    (project / "quotes.txt").write_text('"' * 60_000)  # as JSON it is twice as long
    (project / "README.md").write_text("# Shop\n\nSells pears.\n")
    with pytest.raises(SystemExit):
        main(["load"])
    shown = capsys.readouterr()
    assert shown.out.startswith("1 notes changed, 2 removed")
    assert [line.partition(":")[0] for line in shown.err.splitlines()] == ["left out long.txt", "left out quotes.txt"]
    assert call(capsys, "why", "What are zebras?") == (1, "(nothing)")  # what a long note said before is not quoted


def test_a_decision_is_found_until_another_replaces_it(capsys: pytest.CaptureFixture[str]) -> None:
    _, first = call(capsys, "decide", "Prices are floats.", "--because", "they are fast.")
    assert call(capsys, "why", "Why are prices floats?")[1].startswith(f"decision {first}, ")
    _, second = call(capsys, "decide", "Prices are integers of cents.", "--because", "floats lost one.")
    code, _ = call(capsys, "decide", "Prices have a currency.", "--replaces", first)
    assert code == 0
    printed = call(capsys, "decisions")[1]
    assert second in printed
    assert "Prices are floats." not in printed
    assert "they are fast" not in call(capsys, "why", "Why are prices floats?")[1]


def test_a_decision_that_cannot_be_kept_replaces_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    _, first = call(capsys, "decide", "Prices are floats.")
    assert call(capsys, "decide", "Prices are floats.", "--replaces", first) == (0, first)
    assert call(capsys, "decide", " ", "--replaces", first) == (2, "")
    assert call(capsys, "decisions")[1].startswith(f"{first}  ")


def test_an_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["load", "nowhere"])
    assert (ended.value.code, capsys.readouterr().err) == (2, "error cannot read nowhere: No such file or directory\n")


def test_a_link_is_not_a_note(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "load")
    (project / "key.md").symlink_to(project / "README.md")
    assert call(capsys, "load") == (0, "0 notes changed, 0 removed, 0 events added")


def test_what_is_open_is_listed_until_it_is_closed_and_then_remembered(capsys: pytest.CaptureFixture[str]) -> None:
    _, first = call(capsys, "open", "Measure the start.")
    _, second = call(capsys, "open", "Translate the receipt.")
    assert call(capsys, "close", first, "--done", "It takes two seconds.") == (0, "closed")
    assert call(capsys, "close", first) == (1, "(nothing)")
    assert call(capsys, "open") == (0, f"{second}  Translate the receipt.")
    assert "It takes two seconds." in call(capsys, "why", "What was measured at the start?")[1]


def test_hooks_get_the_brief_at_the_start_and_memories_at_a_prompt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def hook(name: str, **fields: str) -> str:
        monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"hook_event_name": name, **fields})))
        code, printed = call(capsys, "hook")
        assert code == 0
        return str(json.loads(printed)["hookSpecificOutput"]["additionalContext"]) if printed else ""

    call(capsys, "load")
    call(capsys, "decide", "Prices are integers of cents.")
    _, item = call(capsys, "open", "Translate the receipt.")
    start = hook("SessionStart", source="startup")
    assert "Prices are integers of cents." in start
    assert f"{item}  Translate the receipt." in start
    assert "docs/cache.md:1-3" in hook("UserPromptSubmit", prompt="Can I add a cache for prices?")
    assert hook("Stop") == ""
