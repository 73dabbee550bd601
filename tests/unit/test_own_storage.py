"""A ledger and a database of other packages, in a venv: they meet the contracts, and everything runs on them."""

import json
import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from deploy.local.ports import HOST, free_port

from recallog_schemas import codec, triggers
from recallog_schemas.models.long_term.triggers import RETRACTION
from support import own_package
from support.events import event, run
from support.waiting import until

pytestmark = pytest.mark.models("long_term")

PACKAGES = Path(__file__).parents[1] / "packages"
LEDGER, DATABASE = PACKAGES / "recallog-plain-files", PACKAGES / "recallog-rows"
SECONDS = 60.0


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a venv that has both packages."""
    return own_package.with_packages(tmp_path_factory.mktemp("own"), LEDGER, DATABASE)


class Memories:
    """Commands on a memory of the two packages. Each machine has a folder of its own, with nothing of the memory."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.python, self.folder = python, folder

    def environment(self, machine: str = "one") -> dict[str, str]:
        return {
            **os.environ,
            "RECALLOG_LEDGER": f"files://{self.folder}/ledger",
            "RECALLOG_VIEWS": f"rows://{self.folder}/views.db",
            "RECALLOG_HOME": str(self.folder / machine),
            "COLUMNS": "120",
        }

    def started(self, *arguments: str, machine: str = "one") -> subprocess.Popen[str]:
        command = [str(self.python), "-m", "recallog_service", *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=self.environment(machine), stdout=pipe, stderr=pipe, text=True)

    def run(self, *arguments: str) -> str:
        """What a command prints."""
        process = self.started(*arguments)
        out, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, err
        return out

    def publish(self, *spaces: str) -> None:
        """Events of which each space has a retraction due: an erased entry has a source of another."""
        lines = []
        for space in spaces:
            for id_, sources in (("e-1", []), ("e-2", ["e-1"]), ("e-3", ["e-2"])):
                payload = {"text": f"About {id_}.", "sources": sources}
                lines.append(event("memory.retained", space=space, id=id_, payload=payload))
            lines.append(event("memory.erased", space=space, payload={"entries": ["e-1"]}))
        file = self.folder / "events.jsonl"
        file.write_bytes(b"\n".join(map(codec.encode, lines)) + b"\n")
        self.run("ingest", str(file))

    def records(self) -> list[bytes]:
        file = self.folder / "ledger" / "records"
        return [line.split(b"\t", 2)[2] for line in file.read_bytes().splitlines()]

    def answers(self) -> Counter[str]:
        """How many answers each trigger has."""
        events = map(json.loads, self.records())
        return Counter(each["causation_id"] for each in events if each["kind"] in triggers.CLOSINGS)

    @contextmanager
    def worker(self, machine: str, *options: str) -> Iterator["Worker"]:
        port = free_port()
        process = self.started("worker", "--port", str(port), "--log-level", "warning", *options, machine=machine)
        try:
            yield Worker(process, port)
        finally:
            process.kill()
            process.communicate()


class Worker:
    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process, self._url = process, f"http://{HOST}:{port}/health"

    @property
    def health(self) -> dict[str, object]:
        try:
            found: dict[str, object] = httpx.get(self._url, timeout=5).json()
        except httpx.TransportError:
            return {}
        return found

    @property
    def folds(self) -> bool:
        """Whether it has folded everything that the ledger has."""
        partitions = self.health.get("partitions")
        return isinstance(partitions, list) and [(p["state"], p["lag"]) for p in partitions] == [("live", 0)]

    @property
    def stands_by(self) -> bool:
        health = self.health
        return health.get("healthy") is True and health.get("partitions") == []


@pytest.fixture
def memories(python: Path, tmp_path: Path) -> Memories:
    return Memories(python, tmp_path)


def wait_for(condition: Callable[[], bool]) -> None:
    async def holds() -> bool:
        return condition()

    run(until(holds, "the workers"))


@pytest.mark.parametrize("package", [LEDGER, DATABASE], ids=lambda package: package.name)
def test_the_package_meets_the_contracts_that_it_names(python: Path, tmp_path: Path, package: Path) -> None:
    shutil.copytree(package / "tests", tmp_path / "tests")
    command = [str(python), "-m", "pytest", "-q", "-p", "no:xdist", "--rootdir", str(tmp_path), str(tmp_path / "tests")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env={**os.environ})
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr
    assert "skipped" not in done.stdout


def test_commands_work_on_them(memories: Memories) -> None:
    memories.run("publish", "village", "baker", "agent.spoke", "Ann owes me bread.")
    memories.publish("village")
    assert "Ann owes me bread." in memories.run("episodic", "village", "baker")
    assert "About e-2." in memories.run("export")
    assert b"About e-2." not in b"".join(memories.records())  # sealed by a key of the database
    status = json.loads(memories.run("status", "--json"))
    assert (status["records"], status["folded_by_workers"], status["pending_total"]) == (5, False, 1)
    assert memories.run("verify").startswith("clean 5 records")
    assert memories.run("rebuild").startswith("rebuilt 5 records")
    copied = memories.folder / "copied"
    memories.run("copy", memories.environment()["RECALLOG_LEDGER"], str(copied))
    assert (copied / "ledger.db").exists()
    assert not (memories.folder / "one" / "views.db").exists()


def test_two_processes_on_two_machines_answer_each_trigger_once(memories: Memories) -> None:
    spaces = [f"space-{number}" for number in range(20)]
    memories.publish(*spaces)
    both = [memories.started("react", machine=machine) for machine in ("one", "two")]
    for process in both:
        _, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, err
    answered = memories.answers()
    assert {triggers.parse(each).kind for each in answered} == {RETRACTION}  # type: ignore[union-attr]
    assert (len(answered), set(answered.values())) == (len(spaces), {1})
    assert memories.run("verify").startswith("clean")


def test_a_worker_takes_over_from_a_killed_one(memories: Memories) -> None:
    memories.publish("first")
    with memories.worker("one") as one:
        wait_for(lambda: one.folds and len(memories.answers()) == 1)
        with memories.worker("two") as two:
            wait_for(lambda: two.stands_by)
            memories.publish("second")
            wait_for(lambda: one.folds and len(memories.answers()) == 2)
            one.process.send_signal(signal.SIGKILL)
            memories.publish("third")
            wait_for(lambda: two.folds and len(memories.answers()) == 3)
            assert memories.run("rebuild").startswith("rebuilt")
            wait_for(lambda: two.folds)
            two.process.terminate()
            two.process.wait(SECONDS)
    assert set(memories.answers().values()) == {1}
    assert memories.run("verify").startswith("clean")
