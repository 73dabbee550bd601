"""Faults of the chaos run that the tests inject themselves: a full disk, and a clock that jumps, of one process."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaos.clocks import Clock, compile_shim
from chaos.copies import copied_values
from chaos.full_disk import fill_disk, free_disk
from recallog_schemas import codec
from support.events import event, publish_in

pytestmark = [pytest.mark.models("all"), pytest.mark.skipif(sys.platform != "linux", reason="prlimit and LD_PRELOAD")]

WRITER = """
import sys
for line in sys.stdin:
    try:
        with open("file", "a") as file:
            file.write(line * 20_000)
        print("written", flush=True)
    except OSError as error:
        print(error.strerror, flush=True)
"""
CLOCK = """
import sys, time
for line in sys.stdin:
    print(time.time() - time.monotonic(), flush=True)
"""
HOUR = 3600.0


class Child:
    """A program that answers each line with a line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.pid = process.pid
        self._process = process

    def ask(self) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print("line", file=self._process.stdin, flush=True)
        return self._process.stdout.readline().strip()


@contextmanager
def child(program: str, folder: Path, **environment: str) -> Iterator[Child]:
    command = ["env", *(f"{name}={value}" for name, value in environment.items()), sys.executable, "-c", program]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, text=True, restore_signals=False) as process:
        yield Child(process)
        process.kill()


def test_a_disk_is_full_for_one_process_until_it_is_freed(tmp_path: Path) -> None:
    with child(WRITER, tmp_path) as writer:
        answers = [writer.ask()]
        fill_disk(writer.pid)
        answers.append(writer.ask())
        (tmp_path / "other").write_text("of this process")
        free_disk(writer.pid)
        answers.append(writer.ask())
    assert answers == ["written", "File too large", "written"]
    assert (tmp_path / "file").read_text() == "line\n" * 40_000


def test_freeing_the_disk_of_a_process_that_has_ended_is_no_error(tmp_path: Path) -> None:
    with child(WRITER, tmp_path) as writer:
        pass
    free_disk(writer.pid)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_clock_jumps_in_both_directions_and_the_monotonic_clock_does_not(tmp_path: Path) -> None:
    shim = compile_shim(tmp_path)
    assert shim is not None
    clock = Clock(tmp_path, shim)
    with child(CLOCK, tmp_path, **clock.environment) as timed:
        before = float(timed.ask())
        clock.jump(HOUR)
        ahead = float(timed.ask())
        clock.jump(-HOUR)
        behind = float(timed.ask())
        clock.jump(0)
        after = float(timed.ask())
    assert [round((each - before) / HOUR, 2) for each in (ahead, behind, after)] == [1, -1, 0]


def test_the_values_of_a_copy_are_the_records_of_each_space_in_order(tmp_path: Path) -> None:
    events = [event(space=space, id=f"e-{number}") for number in range(5) for space in ("village", "city")]
    publish_in(tmp_path, *events)
    expected = {space: [codec.encode(each) for each in events if each.space == space] for space in ("village", "city")}
    assert copied_values(tmp_path) == expected
