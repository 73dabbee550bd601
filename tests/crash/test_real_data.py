"""Ingesting real conversations from the command line; a second run adds nothing."""

import json
from pathlib import Path

from support import real_data
from support.cli import recallog

AIRLINE = "taubench-airline.json"
CHAT = ("--format", "chat", "--messages-key", "traj")


def ingested_twice(home: Path, *arguments: object) -> int:
    """The number of events that the file holds."""
    first = recallog("ingest", *arguments, "--home", home, "--json")
    assert first.code == 0
    assert first.json["problems"] == []
    assert first.json["known"] == 0
    second = recallog("ingest", *arguments, "--home", home, "--json")
    assert (second.code, second.json["added"]) == (0, 0)
    assert second.json["known"] == first.json["added"]
    return int(first.json["added"])


def verified(home: Path) -> dict[str, int]:
    """Check that every view equals a new fold without dead letters; returns the number of events of each space."""
    assert recallog("verify", "--home", home).code == 0
    assert recallog("dead-letters", "list", "--json", "--home", home).json["items"] == []
    return {space["space"]: space["events"] for space in recallog("spaces", "--json", "--home", home).json["items"]}


def test_each_conversation_of_locomo_is_a_space(tmp_path: Path) -> None:
    added = ingested_twice(tmp_path, real_data.path("locomo-tuning.json"), "--format", "locomo")
    spaces = verified(tmp_path)
    assert len(spaces) == 3
    assert sum(spaces.values()) == added == 1451 + 2 * 70 + 3  # turns, starts and ends of sessions, settings


def test_both_speakers_of_locomo_remember_the_whole_conversation(tmp_path: Path) -> None:
    ingested_twice(tmp_path, real_data.path("locomo-tuning.json"), "--format", "locomo")
    (space, *_) = verified(tmp_path)
    agents = [agent["name"] for agent in recallog("agents", space, "--json", "--home", tmp_path).json["items"]]
    speakers = [agent for agent in agents if agent != "narrator"]
    assert len(speakers) == 2
    memories = [
        recallog("timeline", space, speaker, "--kind", "agent.spoke", "--json", "--home", tmp_path).json["items"]
        for speaker in speakers
    ]
    assert memories[0] == memories[1]
    assert {item["event"]["agent"] for item in memories[0]} == set(speakers)


def test_each_run_of_taubench_is_a_space(tmp_path: Path) -> None:
    added = ingested_twice(tmp_path, real_data.path(AIRLINE), *CHAT)
    spaces = verified(tmp_path)
    assert len(spaces) == 200
    runs = json.loads(real_data.path(AIRLINE).read_bytes())
    messages = [message for run in runs for message in run["traj"]]
    texts = sum(bool(message["content"]) for message in messages if message["role"] != "tool")
    calls = sum(len(message.get("tool_calls") or []) for message in messages)
    assert sum(spaces.values()) == added == texts + calls + len(runs)  # each run ends with its reward
    assert all(space.startswith("chat/") for space in spaces)
    kinds = recallog("status", "--space", next(iter(spaces)), "--json", "--home", tmp_path).json["kinds"]
    assert {"user.injected", "agent.spoke", "session.ended"} <= {kind["name"] for kind in kinds}


def test_the_runs_of_taubench_are_sessions_of_a_space_that_is_named(tmp_path: Path) -> None:
    added = ingested_twice(tmp_path, real_data.path(AIRLINE), *CHAT, "--space", "airline")
    assert verified(tmp_path) == {"airline": added}
    assert len(recallog("sessions", "airline", "--json", "--home", tmp_path).json["items"]) == 200


def test_a_real_ledger_exported_and_ingested_again_is_equal(tmp_path: Path) -> None:
    recallog("ingest", real_data.path(AIRLINE), *CHAT, "--home", tmp_path / "a")
    recallog("export", "--output", tmp_path / "a.jsonl", "--home", tmp_path / "a")
    assert recallog("ingest", tmp_path / "a.jsonl", "--home", tmp_path / "b").code == 0
    recallog("export", "--output", tmp_path / "b.jsonl", "--home", tmp_path / "b")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert (tmp_path / "a.jsonl").stat().st_size > 1_000_000
