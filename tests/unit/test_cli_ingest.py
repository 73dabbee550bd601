"""Ingest and export: a file is ingested once, errors name their line, and an export can be ingested again."""

import json
from pathlib import Path
from typing import Any

import pytest

from recallog import Event
from recallog_schemas import codec
from recallog_service.formats.jsonl import without_time
from support.cli import Result, recallog, spawn
from support.events import event


def line(n: int, **fields: Any) -> str:
    fields_of_event = {"id": f"e-{n}", "space": "village", "agent": "baker", "kind": "agent.spoke", "turn": n}
    return json.dumps(fields_of_event | {"payload": {"text": f"line {n}"}} | fields)


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A hundred lines."""
    return write(tmp_path / "good.jsonl", [line(n) for n in range(1, 101)])


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A hundred lines of which the 57th lacks its text, and the 80th is no JSON."""
    lines = [line(n) for n in range(1, 101)]
    lines[56] = line(57, payload={})
    lines[79] = '{"id": "e-80", '
    return write(tmp_path / "broken.jsonl", lines)


def ingest(file: object, home: Path, *options: object, stdin: str | None = None) -> Result:
    return recallog("ingest", file, "--home", home, *options, stdin=stdin)


def json_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(found) for found in text.splitlines()]


def turns(home: Path) -> list[int]:
    return [found["turn"] for found in json_lines(recallog("export", "--home", home).out)]


# A good file.


def test_every_line_is_ingested_in_order(good: Path, home: Path) -> None:
    result = ingest(good, home)
    assert (result.code, result.err) == (0, "")
    assert "Total: 100 added" in result.out
    assert turns(home) == list(range(1, 101))


def test_ingesting_it_twice_adds_nothing(good: Path, home: Path) -> None:
    ingest(good, home)
    result = ingest(good, home, "--json")
    assert (result.code, result.json["added"], result.json["known"]) == (0, 0, 100)
    assert turns(home) == list(range(1, 101))


@pytest.mark.parametrize("batch", [1, 7, 100, 10_000])
def test_the_batch_size_does_not_change_the_result(good: Path, home: Path, batch: int) -> None:
    assert ingest(good, home, "--batch", batch, "--json").json["added"] == 100
    assert turns(home) == list(range(1, 101))


def test_lines_without_id_and_time_are_filled_in_the_same_way_each_time(tmp_path: Path, home: Path) -> None:
    bare = [{"space": "village", "agent": "baker", "kind": "agent.spoke", "payload": {"text": "again"}}] * 5
    file = write(tmp_path / "bare.jsonl", [json.dumps(fields) for fields in bare])
    assert ingest(file, home, "--json").json["added"] == 5
    assert ingest(file, home, "--json").json["added"] == 0


def test_it_reads_from_a_pipe(home: Path) -> None:
    assert ingest("-", home, "--json", stdin=f"{line(1)}\n\n{line(2)}\n").json["added"] == 2
    assert turns(home) == [1, 2]


def test_an_empty_file_adds_nothing(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "empty.jsonl"
    file.write_bytes(b"")
    assert ingest(file, home, "--json").json == {
        "added": 0, "known": 0, "ahead": 0, "other_times": 0, "first_other_times": [], "spaces": 0,
        "stopped": False, "problems": [], "left_out": {}, "cut": [], "scrubbed": {}, "classes": {},
        "file": str(file), "read_as": "jsonl",
        "chosen": None,
    }  # fmt: skip


def test_acknowledged_events_are_printed_with_their_positions(good: Path, home: Path) -> None:
    lines = ingest(good, home, "--acknowledge", "--batch", 30).out.splitlines()
    assert lines[:100] == [f"0:{n - 1} e-{n}" for n in range(1, 101)]


# An invalid line.


def test_it_stops_at_the_first_broken_line_and_ingests_those_before_it(broken: Path, home: Path) -> None:
    result = ingest(broken, home)
    assert result.code == 1
    assert "line 57: payload.text" in result.err
    assert "Traceback" not in result.err
    assert "Total: 56 added" in result.out
    assert turns(home) == list(range(1, 57))


def test_json_errors_name_the_line(broken: Path, home: Path) -> None:
    result = ingest(broken, home, "--json")
    assert result.code == 1
    assert result.json["stopped"] is True
    assert [problem["number"] for problem in result.json["problems"]] == [57]


def test_with_keep_going_broken_lines_are_skipped_and_listed(broken: Path, home: Path) -> None:
    result = ingest(broken, home, "--keep-going")
    assert result.code == 1
    assert "line 57: payload.text" in result.err
    assert "line 80: not JSON" in result.err
    assert "Total: 98 added" in result.out
    assert turns(home) == [n for n in range(1, 101) if n not in (57, 80)]


def test_a_second_run_of_the_corrected_file_adds_the_rest(broken: Path, good: Path, home: Path) -> None:
    ingest(broken, home)
    result = ingest(good, home, "--json").json
    assert (result["added"], result["known"]) == (44, 56)
    assert turns(home) == list(range(1, 101))


# An id that is used again.


@pytest.fixture
def reused(tmp_path: Path) -> Path:
    """A hundred lines of which the 57th has the id of the third with other content."""
    lines = [line(n) for n in range(1, 101)]
    lines[56] = line(57, id="e-3")
    return write(tmp_path / "reused.jsonl", lines)


@pytest.mark.parametrize("batch", [1, 10, 500])
def test_an_id_reused_inside_the_file_stops_it_at_that_line(reused: Path, home: Path, batch: int) -> None:
    result = ingest(reused, home, "--batch", batch)
    assert result.code == 1
    assert "line 57: the id 'e-3'" in result.err
    assert turns(home) == list(range(1, 57))


@pytest.mark.parametrize("batch", [1, 10, 500])
def test_with_keep_going_a_reused_id_is_skipped_and_listed(reused: Path, home: Path, batch: int) -> None:
    result = ingest(reused, home, "--batch", batch, "--keep-going", "--json")
    assert result.code == 1
    assert (result.json["added"], result.json["stopped"]) == (99, False)
    assert [problem["number"] for problem in result.json["problems"]] == [57]
    assert turns(home) == [n for n in range(1, 101) if n != 57]


def test_the_same_line_twice_is_no_conflict(tmp_path: Path, home: Path) -> None:
    same = line(1, at="2026-03-01T12:00:00Z")
    result = ingest(write(tmp_path / "twice.jsonl", [same, same]), home, "--json")
    assert (result.code, result.json["added"], result.json["known"]) == (0, 1, 1)


def exported(path: Path, *, minute: int, count: int = 9) -> Path:
    """Events with their times: every third is at that minute, the others always at 12:00."""
    times = [f"2026-03-01T12:{minute if n % 3 == 0 else 0:02d}:00Z" for n in range(1, count + 1)]
    return write(path, [line(n, at=at) for n, at in enumerate(times, 1)])


@pytest.mark.parametrize("batch", [1, 4, 500])
def test_a_file_exported_again_with_other_times_adds_nothing_and_says_so(
    tmp_path: Path, home: Path, batch: int
) -> None:
    ingest(exported(tmp_path / "first.jsonl", minute=0), home)
    again = exported(tmp_path / "again.jsonl", minute=30)
    result = ingest(again, home, "--batch", batch)
    assert (result.code, result.out) == (0, "Total: 0 added, 9 already present (read as jsonl, 1 space)\n")
    assert result.err == (
        "3 known events have another time in the ledger, which counts; the first is e-3: "
        "2026-03-01T12:30:00+00:00 in the file, 2026-03-01T12:00:00+00:00 in the ledger at 0:2. Was the file exported "
        "again with other times?\n"
    )
    found = ingest(again, home, "--batch", batch, "--json").json
    assert (found["known"], found["other_times"]) == (9, 3)
    assert [(each["number"], each["id"]) for each in found["first_other_times"]] == [(3, "e-3"), (6, "e-6"), (9, "e-9")]
    assert {each["at"] for each in json_lines(recallog("export", "--home", home).out)} == {"2026-03-01T12:00:00Z"}


def test_only_the_first_events_with_other_times_are_listed(tmp_path: Path, home: Path) -> None:
    ingest(exported(tmp_path / "first.jsonl", minute=0, count=60), home)
    found = ingest(exported(tmp_path / "again.jsonl", minute=30, count=60), home, "--json").json
    assert (found["other_times"], len(found["first_other_times"])) == (20, 5)


def test_known_events_far_apart_in_the_ledger_are_compared_too(tmp_path: Path, home: Path) -> None:
    ingest(exported(tmp_path / "first.jsonl", minute=0, count=400), home)
    some = [line(n, at="2027-01-01T00:00:00Z") for n in (400, 1, 2, 200, 401)]
    found = ingest(write(tmp_path / "some.jsonl", some), home, "--json").json
    assert (found["added"], found["known"], found["other_times"]) == (1, 4, 4)
    assert [each["position"]["offset"] for each in found["first_other_times"]] == [399, 0, 1, 199]


def test_a_line_twice_in_a_file_with_another_time_is_known_and_reported(tmp_path: Path, home: Path) -> None:
    twice = [line(1, at="2026-03-01T12:00:00Z"), line(1, at="2026-03-01T12:00:01Z")]
    found = ingest(write(tmp_path / "twice.jsonl", twice), home, "--json").json
    assert (found["added"], found["known"], found["other_times"]) == (1, 1, 1)


def test_an_id_with_other_content_in_the_ledger_stops_it(good: Path, home: Path) -> None:
    recallog("publish", "village", "smith", "agent.spoke", "mine", "--id", "e-40", "--home", home)
    result = ingest(good, home)
    assert result.code == 1
    assert "line 40: the id 'e-40'" in result.err
    assert "0:0" in result.err


# Conversations.


def said(role: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **fields}


def chats(path: Path, *conversations: object) -> Path:
    path.write_text(json.dumps(conversations))
    return path


def dialogue(topic: str, length: int = 4, **fields: Any) -> dict[str, Any]:
    """A conversation of `length` messages without ids."""
    roles = ("user", "assistant") * length
    return {"messages": [said(role, f"{topic} {n}") for n, role in zip(range(length), roles, strict=False)], **fields}


def texts(home: Path) -> list[str]:
    return [json.loads(line)["payload"]["text"] for line in recallog("export", "--home", home).out.splitlines()]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "chats.json"


@pytest.mark.parametrize("options", [(), ("--space", "mine")])
@pytest.mark.parametrize("named", [{}, {"user_id": "alice"}])
def test_a_shuffled_grown_and_extended_file_adds_only_what_is_new(
    file: Path, home: Path, options: tuple[str, ...], named: dict[str, str]
) -> None:
    bread, cake, soup = (dialogue(topic, **named) for topic in ("bread", "cake", "soup"))

    def added(*conversations: object) -> int:
        return int(ingest(chats(file, *conversations), home, "--format", "chat", "--json", *options).json["added"])

    assert added(bread, cake) == 8
    assert added(bread, cake) == 0
    assert added(cake, bread) == 0
    assert added(soup, bread, cake) == 4
    assert added(bread, dialogue("cake", 7, **named), soup) == 3
    assert sorted(texts(home)) == sorted(
        [f"{topic} {n}" for topic, count in (("bread", 4), ("cake", 7), ("soup", 4)) for n in range(count)]
    )


def test_the_choice_of_spaces_and_its_reason_are_on_stderr(file: Path, home: Path) -> None:
    of_alice = chats(file, dialogue("bread", user_id="alice"), dialogue("cake", user_id="alice"))
    result = ingest(of_alice, home, "--format", "chat", "--json")
    assert result.err == (
        "one space, user/alice: the file names one person (user_id); each conversation is a session\n"
    )
    assert result.json["spaces"] == 1
    result = ingest(of_alice, home, "--format", "chat", "--space", "mine")
    assert result.err == "one space, mine, as --space says; each conversation is a session\n"
    result = ingest(chats(file, dialogue("bread"), dialogue("cake")), home, "--format", "chat")
    assert result.err == (
        "a space for each of 2 conversations, chat/...: the file names no person; --space makes them sessions of one "
        "space\n"
    )


@pytest.mark.models("prompt")
def test_what_one_customer_said_is_not_recalled_for_another(file: Path, home: Path) -> None:
    pin, question = said("user", "My PIN is 4711.", name="Alice"), said("user", "What is the PIN?", name="Bob")
    both = chats(
        file, {"id": "a", "user": "alice", "messages": [pin]}, {"id": "b", "user": "bob", "messages": [question]}
    )
    assert ingest(both, home, "--format", "chat").code == 0
    assert "4711" in recallog("context", "chat/a", "assistant", "--home", home).out
    assert "4711" not in recallog("context", "chat/b", "assistant", "--home", home).out


@pytest.mark.parametrize("batch", [1, 500])
@pytest.mark.parametrize("id_", [{"id": "1"}, {}])
@pytest.mark.parametrize("first", ["Hello", "I am {name}."])
def test_nothing_of_another_conversation_under_a_used_name_is_added(
    file: Path, home: Path, batch: int, id_: dict[str, str], first: str
) -> None:
    def conversation(name: str) -> dict[str, Any]:
        said_first = first.format(name=name) if id_ else "Hello"  # without an id, its first words are its name
        messages = [said("system", f"Serve {name}."), said("user", said_first), said("assistant", f"Hi, {name}.")]
        return {**id_, "messages": [*messages, said("user", "Thanks.")]}

    options = ("--format", "chat", "--batch", batch, "--json")
    assert ingest(chats(file, conversation("Alice")), home, *options).json["added"] == 4
    result = ingest(chats(file, conversation("Bob"), dialogue("bread")), home, *options, "--keep-going")
    assert (result.code, result.json["added"]) == (1, 4)
    (problem,) = result.json["problems"]
    assert problem["number"] == 1
    assert (
        "The rest of this conversation is not added. If it is a different one, give it its own id" in problem["message"]
    )
    assert "Bob" not in recallog("export", "--home", home).out


def test_conversations_that_begin_alike_are_refused_with_a_request_for_ids(file: Path, home: Path) -> None:
    result = ingest(chats(file, dialogue("bread"), dialogue("cake"), dialogue("bread", 2)), home, "--format", "chat")
    assert (result.code, texts(home)) == (1, [])
    assert 'conversation 1: begins like conversation 3 and has no id; give each an "id" of its own' in result.err
    result = ingest(file, home, "--format", "chat", "--keep-going")
    assert (result.code, texts(home)) == (1, [f"cake {n}" for n in range(4)])


def test_what_no_event_holds_and_what_was_cut_is_reported(file: Path, home: Path) -> None:
    blocks = [
        {"type": "hologram"},
        {"type": "redacted_thinking"},
        {"type": "text", "text": "Yes."},
        {"type": "hologram"},
    ]
    messages = [said("user", "x" * 300_000), {"role": "assistant", "content": blocks}]
    result = ingest(chats(file, {"id": "a", "messages": messages}), home, "--format", "chat")
    assert result.code == 0
    assert "Skipped 3 records (2 hologram, 1 redacted_thinking)" in result.out
    assert "conversation 1: message 1: cut, text: " in result.err
    again = ingest(file, home, "--format", "chat", "--json")
    assert (again.json["added"], again.json["known"]) == (0, 2)
    assert again.json["left_out"] == {"hologram": 2, "redacted_thinking": 1}
    assert [cut["number"] for cut in again.json["cut"]] == [1]


# Files of the wrong type.


def test_a_chat_file_read_as_events_is_refused_with_the_right_format(tmp_path: Path, home: Path) -> None:
    file = write(tmp_path / "chat.json", [json.dumps([{"messages": [{"role": "user", "content": "Hi"}]}])])
    result = ingest(file, home, "--format", "jsonl")
    assert result.code == 1
    assert "--format chat" in result.err
    result = ingest(file, home, "--json")
    assert (result.json["read_as"], result.json["added"]) == ("chat", 1)


def test_a_binary_file_is_reported_without_a_traceback(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "picture.png"
    file.write_bytes(bytes(range(256)) * 100)
    result = ingest(file, home)
    assert result.code == 1
    assert "the format of this file is not recognised; say which it is with --format" in result.err
    assert not home.exists()


def test_an_unknown_format_is_a_usage_error(good: Path, home: Path) -> None:
    result = ingest(good, home, "--format", "xml")
    assert result.code == 2
    assert "'xml' is not a format that can be read; known are jsonl, claude-code," in result.err


@pytest.mark.parametrize("format", ["jsonl", "chat", "locomo", "text"])
def test_a_missing_file_is_a_usage_error(tmp_path: Path, home: Path, format: str) -> None:  # noqa: A002
    result = ingest(tmp_path / "nosuch.jsonl", home, "--format", format)
    assert result.code == 2
    assert "nosuch.jsonl" in result.err
    assert not home.exists()


def test_a_folder_without_a_file_of_a_known_format_is_a_usage_error(tmp_path: Path, home: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "todo.txt").write_text("Buy flour.")
    assert ingest(tmp_path / "notes", home).code == 2
    assert not home.exists()


def test_a_folder_is_read_from_its_oldest_file_on_and_says_what_it_left_out(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "logs"
    (folder / "deeper").mkdir(parents=True)
    old = [line(n, at=f"2025-01-01T00:00:0{n}Z", space="old") for n in range(3)]
    new = [line(n, at=f"2026-01-01T00:00:0{n}Z", space="new") for n in range(2)]
    write(folder / "a.jsonl", new)
    write(folder / "deeper" / "b.jsonl", old)
    write(folder / "notes.txt", ["Buy flour."])
    result = ingest(folder, home, "--json")
    assert (result.code, result.json["added"], result.json["known"], result.json["refused"]) == (0, 5, 0, 0)
    assert [(Path(each["file"]).name, each["added"]) for each in result.json["files"]] == [
        ("b.jsonl", 3),
        ("a.jsonl", 2),
    ]
    assert [Path(each).name for each in result.json["unrecognised"]] == ["notes.txt"]
    again = ingest(folder, home)
    assert again.out == "2 files with nothing new\nTotal: 0 added, 5 already present\n"
    assert "notes.txt" in again.err


@pytest.mark.models("prompt")
def test_transcripts_of_an_agent_are_read_from_its_folder_every_day(tmp_path: Path, home: Path) -> None:
    def record(kind: str, n: int, text: str) -> str:
        message = {"role": kind, "content": text}
        known = {"type": kind, "uuid": f"u-{n}", "sessionId": "4b1c0f4e-8f57-4a46-9a52-0d5f3f2f0a11", "cwd": "/app"}
        return json.dumps({**known, "timestamp": f"2026-03-01T12:00:0{n}Z", "message": message})

    folder = tmp_path / "projects" / "-app"
    folder.mkdir(parents=True)
    lines = [record("user", 1, "Why is the oven cold?"), record("assistant", 2, "HEAT is 0.")]
    write(folder / "session.jsonl", lines)
    write(folder / "broken.json", ['[{"type": "user", "sessionId": "a", '])
    first = ingest(tmp_path / "projects", home, "--json")
    assert (first.code, first.json["added"]) == (0, 2)
    write(folder / "session.jsonl", [*lines, record("user", 3, "Thanks.")])
    second = ingest(tmp_path / "projects", home)
    assert second.out == (
        "file                format       added  present\n"
        "-app/session.jsonl  claude-code      1        2\n"
        "Total: 1 added, 2 already present\n"
        "Sources: 1 user (if others wrote it, --trust import: no facts and no beliefs are made from imports)\n"
    )
    assert "HEAT is 0." in recallog("context", "project/app", "claude-code", "--home", home).out


def test_what_cannot_be_read_of_a_folder_stops_nothing_else(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    write(folder / "a.jsonl", ['{"messages": [{"role": "user", "content": "Hi."}]}', "{", "{", "{"])
    write(folder / "b.jsonl", [line(1), line(2, payload={}), line(3)])
    (folder / "c.jsonl.gz").write_bytes(b"no gzip")
    result = ingest(folder, home)
    assert (result.code, turns(home)) == (1, [1, 3])
    assert "a.jsonl: not JSON" in result.err
    assert "b.jsonl: line 2: payload.text: is required" in result.err
    assert "c.jsonl.gz: cannot read" in result.err
    assert "Total: 2 added, 0 already present, 3 refused" in result.out


def test_what_is_not_packed_as_its_name_says_is_refused(tmp_path: Path, home: Path) -> None:
    for name in ("a.jsonl.gz", "b.zip"):
        (tmp_path / name).write_bytes(b"not packed")
        result = ingest(tmp_path / name, home)
        assert (result.code, "cannot read" in result.err) == (1, True)


def test_of_many_spaces_that_were_chosen_the_first_are_named(tmp_path: Path, home: Path) -> None:
    for n in range(7):
        chats(tmp_path / f"{n}.json", dialogue(f"bread {n}", id=f"{n}"))
    result = ingest(tmp_path, home)
    assert result.err.count("1 file: one space, chat/") == 5
    assert "2 more files in other spaces; recallog spaces lists them\n" in result.err


def test_several_files_can_be_named(good: Path, tmp_path: Path, home: Path) -> None:
    other = write(tmp_path / "other.jsonl", [line(n, space="town") for n in range(3)])
    result = recallog("ingest", good, other, "--home", home, "--json")
    assert [(each["read_as"], each["added"]) for each in result.json["files"]] == [("jsonl", 100), ("jsonl", 3)]


# Export and ingest again.


def village(home: Path) -> list[Event]:
    """Events with everything that an envelope can hold, in two spaces."""
    events = [
        event(id="ü-1", at="2026-03-01T12:00:00.123456Z", payload={"text": "Brot für 3 € 🍞\n\u2028"}),
        event("tool.used", payload={"tool": "oven", "result": {"a": [1, 1.5, 1e300, None, True, -(2**63)]}}),
        event(space="town", session="s", subject="x", audience=["a", "b"], causation_id="c", correlation_id="k"),
        event("image.generated", payload={}, audience=[]),
    ]
    for each in events:
        assert recallog("publish", "-", "--home", home, stdin=codec.encode(each)).code == 0
    return events


def test_an_export_ingested_elsewhere_gives_an_equal_ledger(tmp_path: Path, home: Path) -> None:
    events = village(home)
    backup = tmp_path / "backup.jsonl"
    assert recallog("export", "--output", backup, "--home", home).code == 0
    assert [codec.decode(without_time(found)[0]) for found in backup.read_bytes().splitlines()] == events
    assert ingest(backup, tmp_path / "new", "--json").json["added"] == 4
    assert recallog("export", "--output", tmp_path / "again.jsonl", "--home", tmp_path / "new").code == 0
    assert (tmp_path / "again.jsonl").read_bytes() == backup.read_bytes()


def test_export_writes_the_same_to_a_pipe(tmp_path: Path, home: Path) -> None:
    village(home)
    recallog("export", "--output", tmp_path / "backup.jsonl", "--home", home)
    assert spawn("export", "--home", home).out.encode() == (tmp_path / "backup.jsonl").read_bytes()


def test_an_export_of_one_space_contains_only_that_space(home: Path) -> None:
    village(home)
    (found,) = recallog("export", "--space", "town", "--home", home).out.splitlines()
    assert json.loads(found)["space"] == "town"


def test_an_export_that_cannot_be_written_is_an_error(tmp_path: Path, home: Path) -> None:
    village(home)
    result = recallog("export", "--output", tmp_path / "no" / "such" / "folder.jsonl", "--home", home)
    assert result.code == 2
    assert "cannot write" in result.err


def test_who_speaks_is_the_subject_if_asked_for_and_can_be_erased(tmp_path: Path) -> None:
    home, chat = tmp_path / "home", tmp_path / "chat.txt"
    chat.write_text("[2024-05-01 10:00] Alice: I play the xylophone.\n[2024-05-01 10:01] Bob: I bake.\n")
    read = ["ingest", chat, "--space", "shop", "--subjects", "--no-index", "--json", "--home", home]
    assert recallog(*read).code == 0
    erased = recallog("erase", "shop", "--subject", "Alice", "--json", "--home", home).json
    assert erased["erased"] == 1
    shown = recallog("timeline", "shop", "Bob", "--home", home).out
    assert "xylophone" not in shown
    assert "I bake." in shown
    again = recallog(*read).json
    assert (again["added"], again["known"]) == (0, 2)
