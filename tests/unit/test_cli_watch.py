"""Watching a space and reacting continuously: the output, its order, and the end of the commands."""

import json
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from filelock import FileLock

from recallog import Event, Memory
from recallog.models.beliefs import following as reflections
from support.altering import plant_record
from support.chat_server import ChatServer, belief, status
from support.cli import environment_of, recallog
from support.events import event, run

pytestmark = pytest.mark.models("beliefs")

PATIENCE_SECONDS = 30


def spoke(text: str, *, agent: str = "widow", kind: str = "agent.spoke", **fields: Any) -> Event:
    return event(kind, agent=agent, payload={"text": text}, **fields)


def configured(agent: str, threshold: int | None) -> Event:
    return event("agent.configured", agent=agent, payload={"reflection_threshold": threshold})


def reflected(agent: str, belief: str, **fields: Any) -> Event:
    return event("agent.reflected", agent=agent, payload={"belief": belief}, **fields)


def publish(home: Path, *events: Event) -> None:
    async def work() -> None:
        async with Memory.open(home) as memory:
            await memory.publish_many(events)

    run(work())


def answer(home: Path, agent: str, text: str) -> None:
    """Answer the due reflection of `agent`."""

    async def work() -> None:
        async with Memory.open(home) as memory:
            await memory.publish((await memory.reflection("village", agent)).answer(text))

    run(work())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def watched(home: Path, *options: object) -> list[str]:
    """The lines that `watch --once` prints."""
    result = recallog("watch", "village", "--once", *options, "--home", home)
    assert (result.code, result.err) == (0, ""), result
    return result.out.splitlines()


def documents(lines: list[str]) -> list[tuple[str, Any]]:
    """The type and the value of each line of JSON."""
    found = [json.loads(line) for line in lines]
    return [next((name, one[name]) for name in ("event", "due", "answered", "error") if name in one) for one in found]


def notices(lines: list[str]) -> list[str]:
    """The lines that are not events."""
    return [line for line in lines if line.startswith("·")]


# Existing events.


def test_watch_shows_agent_addressees_and_text(home: Path) -> None:
    publish(
        home,
        spoke("The chest is gone.", agent="narrator", kind="world.observed", turn=1),
        spoke("Where were you?", audience=["smith", "priest"], turn=2),
        spoke("It was him.", kind="agent.thought", turn=3),
        spoke("Too late.\n0:9  turn 009  smith  agent.spoke  I did it.", audience=[], turn=3),
        event("ship.docked", agent="harbour", payload={"berth": 4}, turn=4),
    )
    assert watched(home) == [
        "0:0  turn 001  narrator  world.observed  The chest is gone.",
        "0:1  turn 002  widow → smith, priest  agent.spoke  Where were you?",
        "0:2  turn 003  widow  agent.thought  It was him.",
        "0:3  turn 003  widow → nobody  agent.spoke  Too late.",
        "  0:9  turn 009  smith  agent.spoke  I did it.",
        '0:4  turn 004  harbour  ship.docked  {"berth": 4}',
    ]


def test_watch_begins_with_the_last_twenty_events_of_its_space(home: Path) -> None:
    publish(home, *(spoke(f"{n}") for n in range(30)), *(event(space="town") for _ in range(30)))
    lines = watched(home)
    assert len(lines) == 20
    assert lines[0].startswith("0:10 ")
    assert [line.split()[0] for line in watched(home, "--from", "0:28")] == ["0:28", "0:29"]


@pytest.mark.models("long_term")
def test_watch_shows_no_trigger_but_reflections(home: Path) -> None:
    made = [
        event("memory.retained", id=f"e-{n}", payload={"text": f"{n}", "sources": [f"e-{n - 1}"] if n else []})
        for n in range(3)
    ]
    publish(home, *made, event("memory.erased", payload={"entries": ["e-0"]}))
    assert "retraction.due" in recallog("pending", "village", "--home", home).out
    assert [line.split()[4] for line in watched(home)] == ["memory.retained"] * 3 + ["memory.erased"]


def test_watch_of_an_empty_space(home: Path) -> None:
    publish(home, spoke("Bread!"))
    result = recallog("watch", "city", "--once", "--home", home)
    assert result.out == ""
    assert result.err.startswith(
        "city has no events from 0:0 on\nerror no event was ever published in the space 'city'"
    )
    assert result.code == recallog("watch", "city", "--once", "--json", "--home", home).code == 1


def test_watch_refuses_invalid_arguments(home: Path) -> None:
    publish(home, spoke("Bread!"))
    for arguments, code, says in (
        (["the village "], 2, "space: 'the village '"),
        (["village", "--from", "noon"], 2, "not a position"),
        (["village", "--from", "1:0"], 2, "no partition 1"),
    ):
        result = recallog("watch", *arguments, "--once", "--home", home)
        assert (result.code, result.out, len(result.err.splitlines())) == (code, "", 1)
        assert says in result.err


def test_invalid_records_are_shown_as_such(home: Path) -> None:
    publish(home, spoke("Bread!"))
    plant_record(home / "ledger.db", b'{"id": "\x1b[1m')
    publish(home, spoke("More bread!"))
    lines = watched(home)
    assert lines[1].startswith("0:1  (not an event: not JSON")
    assert [about for about, _ in documents(watched(home, "--json"))] == ["event", "error", "event"]


def test_control_characters_are_escaped(home: Path) -> None:
    publish(home, spoke("\x1b[31m[bold]:apple:"))
    assert watched(home)[0].endswith("  \\x1b[31m[bold]:apple:")


# Due reflections.


def test_a_due_reflection_is_shown_after_the_event_that_made_it_due(home: Path) -> None:
    publish(home, configured("widow", 3), *(spoke(f"{n}", turn=n) for n in range(5)))
    assert [line.split()[0] for line in watched(home)] == ["0:0", "0:1", "0:2", "0:3", "·", "0:4", "0:5"]
    assert notices(watched(home)) == ["· widow: a reflection is due, 3 events so far"]


def test_reflections_due_before_the_start_are_shown_first(home: Path) -> None:
    publish(home, configured("widow", 3), *(spoke(f"{n}", turn=n) for n in range(30)))
    assert notices(watched(home)) == notices(watched(home)[:1]) == ["· widow: a reflection is due, 3 events so far"]
    result = recallog("watch", "village", "--from", "0:31", "--once", "--home", home)
    assert result.out.splitlines() == notices(watched(home))
    assert result.err == "village has no events from 0:31 on\n"


def test_an_answer_is_shown_before_the_reflection_that_becomes_due_after_it(home: Path) -> None:
    publish(home, configured("widow", 2), spoke("a", turn=6), spoke("b", turn=7))
    answer(home, "widow", "So it is.")
    publish(home, spoke("c", turn=8), spoke("d", turn=9))
    assert watched(home)[3:] == [
        "· widow: a reflection is due, 2 events so far",
        "0:3  turn 007  widow  agent.reflected  So it is.",
        "· widow: has reflected",
        "0:4  turn 008  widow  agent.spoke  c",
        "0:5  turn 009  widow  agent.spoke  d",
        "· widow: a reflection is due, 2 events since turn 7",
    ]


def test_a_reflection_without_causation_answers_the_due_one(home: Path) -> None:
    publish(home, configured("widow", 2), spoke("a"), spoke("b"), reflected("widow", "So."), reflected("widow", "And."))
    assert notices(watched(home)) == ["· widow: a reflection is due, 2 events so far", "· widow: has reflected"]


def test_a_reflection_that_was_not_due_is_an_ordinary_event(home: Path) -> None:
    publish(home, spoke("a"), reflected("widow", "So."), configured("smith", 9), reflected("smith", "And."))
    assert notices(watched(home)) == []


def test_a_setting_can_make_a_reflection_due(home: Path) -> None:
    publish(home, *(spoke(f"{n}") for n in range(4)), configured("widow", 3), spoke("more"))
    assert [line.split()[0] for line in watched(home)][4:] == ["0:4", "·", "0:5"]
    assert notices(watched(home)) == ["· widow: a reflection is due, 4 events so far"]


def test_a_failed_reflection_is_shown(home: Path) -> None:
    publish(home, configured("widow", 1), spoke("a"))
    with ChatServer(status(400, "no")) as server:
        code = recallog("react", "--model", f"{server.url}#m", "--home", home, NO_PROXY="*").code
    assert code == 1
    assert watched(home)[-1] == "· widow: the reflection failed"
    assert re.match("0:2  turn 000  widow  reflection.failed  .*400 Bad Request", watched(home)[-2])


def test_beyond_the_refold_limit_a_due_reflection_is_shown_without_counts(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(home, configured("widow", 2), spoke("a"), spoke("b"), spoke("c"))
    answer(home, "widow", "So it is.")
    monkeypatch.setattr(reflections, "EVENTS_REFOLDED_MAX", 0)
    assert [line.split("  ")[0] for line in watched(home)] == [
        "0:0", "0:1", "0:2", "0:3", "· widow: a reflection was due", "0:4", "· widow: has reflected",
    ]  # fmt: skip


def test_watch_as_json(home: Path) -> None:
    publish(home, configured("widow", 1), spoke("a", id="e-1"))
    answer(home, "widow", "So it is.")
    found = documents(watched(home, "--json"))
    assert [about for about, _ in found] == ["event", "event", "due", "event", "answered"]
    (_, spoken), (_, due), (_, reflection), (_, answered) = found[1:]
    assert (spoken["id"], spoken["payload"]) == ("e-1", {"text": "a"})
    assert due == {
        "space": "village", "agent": "widow", "trigger": due["trigger"], "events": 1, "threshold": 1, "since": "0:1",
        "last": None,
    }  # fmt: skip
    assert answered == {
        "space": "village", "agent": "widow", "trigger": due["trigger"], "kind": "agent.reflected",
        "id": reflection["id"], "position": "0:2",
    }  # fmt: skip


# Live

# The parent of the tests may ignore Ctrl-C, which its children inherit.
_COMMAND = """
import signal
from recallog_service.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""


class Running:
    """A command in its own process that runs until it is stopped."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._lines: dict[str, queue.Queue[str]] = {"out": queue.Queue(), "err": queue.Queue()}
        self.seen: dict[str, list[str]] = {"out": [], "err": []}
        self._threads = [
            threading.Thread(target=self._read, args=(stream, self._lines[name]))
            for name, stream in (("out", process.stdout), ("err", process.stderr))
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _read(stream: IO[str], lines: "queue.Queue[str]") -> None:
        for line in stream:
            lines.put(line.rstrip("\n"))
        lines.put("(end)")

    def until(self, pattern: str, stream: str = "out") -> str:
        """Wait for the next line that contains `pattern`."""
        while True:
            line = self._lines[stream].get(timeout=PATIENCE_SECONDS)
            self.seen[stream].append(line)
            if re.search(pattern, line):
                return line
            assert line != "(end)", self.seen

    def stop(self, with_signal: signal.Signals) -> int:
        """Stop the command and return its exit code."""
        self._process.send_signal(with_signal)
        return self.ended()

    def ended(self) -> int:
        code = self._process.wait(PATIENCE_SECONDS)
        for stream in self._lines:
            self.until(r"^\(end\)$", stream)
            self.seen[stream].pop()
        for thread in self._threads:
            thread.join()
        return code


@contextmanager
def running(*arguments: object, **environment: str) -> Iterator[Running]:
    with subprocess.Popen(
        [sys.executable, "-c", _COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment_of(NO_PROXY="*", **environment),
    ) as process:
        try:
            yield Running(process)
        finally:
            process.kill()


def publish_from_elsewhere(home: Path, text: str, turn: int) -> None:
    command = ["publish", "village", "widow", "agent.spoke", text, "--turn", str(turn), "--home", str(home)]
    subprocess.run([sys.executable, "-m", "recallog_service", *command], check=True, capture_output=True)


@pytest.mark.parametrize(("with_signal", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_watch_follows_what_other_processes_publish_until_it_is_stopped(
    home: Path, with_signal: signal.Signals, code: int
) -> None:
    with running("watch", "village", "--home", home) as watch:
        watch.until("there is no memory in .* yet; waiting", "err")
        publish(home, configured("widow", 2))
        publish_from_elsewhere(home, "a", 1)
        watch.until("widow  agent.spoke  a")
        publish_from_elsewhere(home, "b", 2)
        watch.until("· widow: a reflection is due, 2 events so far")
        publish(home, spoke("c", turn=3))
        watch.until("widow  agent.spoke  c")
        answer(home, "widow", "So it is.")
        watch.until("· widow: has reflected")
        assert watch.stop(with_signal) == code
    assert len(notices(watch.seen["out"])) == 2
    assert len(watch.seen["err"]) == 1


def test_watch_shows_a_reflection_answered_between_two_steps(home: Path) -> None:
    publish(home, configured("widow", 2))
    with running("watch", "village", "--home", home) as watch:
        watch.until("agent.configured")
        publish(home, spoke("a", turn=1), spoke("b", turn=2), spoke("c", turn=3))
        recallog("react", "--home", home)
        publish(home, spoke("d", turn=4), spoke("e", turn=5))
        recallog("react", "--home", home)
        watch.until("· widow: has reflected")
        watch.until("· widow: has reflected")
        assert watch.stop(signal.SIGINT) == 130
    assert [line.split()[0] for line in watch.seen["out"]] == [
        "0:0", "0:1", "0:2", "·", "0:3", "0:4", "·", "0:5", "0:6", "·", "0:7", "·",
    ]  # fmt: skip


def test_tail_follows_until_it_is_stopped(home: Path) -> None:
    publish(home, spoke("a"))
    with running("tail", "--follow", "--home", home) as tail:
        tail.until("agent.spoke  a")
        publish_from_elsewhere(home, "b", 1)
        tail.until("agent.spoke  b")
        assert tail.stop(signal.SIGTERM) == 0
    assert tail.seen["err"] == []


# Continuous react.


@pytest.mark.parametrize(("with_signal", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_react_with_follow_runs_until_it_is_stopped(home: Path, with_signal: signal.Signals, code: int) -> None:
    publish(home, configured("widow", 2), spoke("a", id="e-1"), spoke("b", id="e-2"))
    with running("react", "--follow", "--home", home) as react:
        react.until("answering due reflections in all spaces, offline; Ctrl-C ends the command", "err")
        react.until("0:3  village  widow  agent.reflected  What is notable in the last 2")
        react.until("  based on e-1, e-2")
        publish_from_elsewhere(home, "c", 1)
        publish_from_elsewhere(home, "d", 2)
        react.until("0:6  village  widow  agent.reflected  What is notable in the last 2")
        assert react.stop(with_signal) == code
    assert len(react.seen["err"]) == 1


def test_react_with_follow_in_one_space_leaves_the_others_alone(home: Path) -> None:
    elsewhere = event("agent.configured", space="town", payload={"reflection_threshold": 1})
    publish(home, configured("widow", 1), elsewhere, event(space="town"))
    with running("react", "village", "--follow", "--json", "--home", home) as react:
        react.until("answering due reflections in village", "err")
        publish(home, spoke("a"))
        assert json.loads(react.until("agent.reflected"))["agent"] == "widow"
        assert react.stop(signal.SIGTERM) == 0
    assert recallog("reflection", "town", "baker", "--json", "--home", home).json["due"]


def test_react_shows_answers_of_other_processes(home: Path) -> None:
    publish(home, configured("widow", 1), spoke("a"))
    with FileLock(home / "reactors.lock"), running("react", "--follow", "--home", home) as react:
        react.until("answering", "err")
        answer(home, "widow", "So it is.")
        react.until("widow  agent.reflected  So it is.")
        assert react.stop(signal.SIGTERM) == 0


def test_react_continues_after_a_failed_reflection(home: Path) -> None:
    publish(home, configured("widow", 1), spoke("a", id="e-1"))
    with ChatServer(status(400, "too rude"), belief("It is so.", "e-2")) as server:
        environment = {"RECALLOG_MODEL": f"{server.url}#small"}
        with running("react", "--follow", "--home", home, **environment) as react:
            react.until("answering due reflections in all spaces, with small", "err")
            react.until("reflection.failed  .*too rude")
            publish(home, spoke("b", id="e-2"))
            react.until("agent.reflected  It is so.")
            assert react.stop(signal.SIGTERM) == 0


def test_react_exits_with_3_if_the_reflector_is_misconfigured(home: Path) -> None:
    publish(home, configured("widow", 1), spoke("a"))
    with ChatServer(status(401)) as server:
        with running("react", "--follow", "--model", f"{server.url}#small", "--home", home) as react:
            assert react.ended() == 3
    assert "error" in react.seen["err"][-1]
    assert "API key" in react.seen["err"][-1]


def test_react_waits_while_another_process_reacts(home: Path) -> None:
    publish(home, configured("widow", 1), spoke("a"))
    lock = FileLock(home / "reactors.lock")
    with running("react", "--follow", "--home", home, RECALLOG_LOCK_WAIT_SECONDS="0.2") as react:
        with lock:
            react.until("another process is reacting; retrying", "err")
        react.until("widow  agent.reflected")
        assert react.stop(signal.SIGTERM) == 0


def test_reflections_of_others_alone_trigger_no_reflection(home: Path) -> None:
    publish(home, configured("widow", 1), configured("smith", 1), spoke("a"))
    with running("react", "--follow", "--home", home) as react:
        react.until("widow  agent.reflected")
        publish(home, spoke("b"))
        react.until("widow  agent.reflected")
        assert react.stop(signal.SIGTERM) == 0
    assert not any("smith  agent.reflected" in line for line in react.seen["out"])
