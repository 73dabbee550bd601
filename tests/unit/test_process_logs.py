"""The logs of servers and workers have only JSON documents, also if a process cannot start, or if Python warns."""

import json
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import typer
from deploy.local.ports import HOST, free_port

from recallog_service import logs
from recallog_service.cli import terminal
from support.cli import environment_of, recallog, same_log, spawn

KEYS = {"at", "level", "logger", "message"}
NO_ONE = f"{HOST}:1"
"""An address at which nothing listens."""


def read_lines(text: str) -> list[dict[str, str]]:
    lines = [json.loads(line) for line in text.splitlines()]
    assert all(line.keys() >= KEYS for line in lines)
    return lines


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("worker",), "set RECALLOG_LEDGER and RECALLOG_VIEWS"),
        (("serve", "--host", "0.0.0.0"), "without keys the server listens on this machine only"),
    ],
    ids=["worker", "serve"],
)
def test_a_process_that_cannot_start_logs_why(command: tuple[str, ...], why: str, tmp_path: Path) -> None:
    ended = spawn(*command, cwd=tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert why in read_lines(ended.err)[-1]["message"]
    assert read_lines(ended.err)[-1]["level"] == "critical"


@pytest.mark.parametrize("command", ["serve", "worker"])
def test_a_level_of_the_log_that_does_not_exist_is_wrong_use(command: str) -> None:
    ended = recallog(command, "--log-level", "loud")
    assert ended.code == 2
    assert "--log-level" in ended.err


def test_a_process_whose_start_the_system_refuses_logs_why(capsys: pytest.CaptureFixture[str]) -> None:
    async def start() -> None:
        raise PermissionError(13, "Permission denied")

    with same_log():
        logs.to_stderr("info")
        with pytest.raises(typer.Exit) as ended:
            terminal.run(start, as_log=True)
        (line,) = read_lines(capsys.readouterr().err)
    assert (ended.value.exit_code, line["level"]) == (3, "critical")
    assert "Permission denied" in line["message"]


@contextmanager
def lonely_worker(folder: Path, *options: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A worker whose Kafka and Redis do not answer, after it has reported so, and what it has written to stderr."""
    environment = environment_of(
        RECALLOG_LEDGER=f"kafka://{NO_ONE}/recallog.events", RECALLOG_VIEWS=f"redis://{NO_ONE}/0"
    )
    command = [sys.executable, "-m", "recallog_service", "worker", *options]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as worker:
        try:
            assert worker.stderr is not None
            written = ""
            while "cannot be reached" not in written:
                line = worker.stderr.readline()
                assert line, written
                written += line
            yield worker, written
        finally:
            worker.kill()


@pytest.mark.parametrize("level", ["info", "warning"])
def test_a_worker_writes_only_lines_of_its_log(level: str, tmp_path: Path) -> None:
    with lonely_worker(tmp_path, "--port", str(free_port()), "--log-level", level) as (worker, written):
        worker.terminate()
        out, rest = worker.communicate(timeout=60)
    assert out == ""
    assert read_lines(written + rest)


def test_restarts_of_reactors_are_counted(tmp_path: Path) -> None:
    port = free_port()
    with lonely_worker(tmp_path, "--port", str(port), "--only", "reactors"):
        page = httpx.get(f"http://{HOST}:{port}/metrics", timeout=30).text
    (restarts,) = re.findall(r"^recallog_reactor_restarts_total (\S+)$", page, re.MULTILINE)
    assert float(restarts) >= 1


def test_a_warning_of_python_is_a_line_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    with same_log(), warnings.catch_warnings():
        warnings.simplefilter("always")
        logs.to_stderr("info")
        warnings.warn("the key is sent without encryption", UserWarning, stacklevel=1)
        (line,) = read_lines(capsys.readouterr().err)
    assert "the key is sent without encryption" in line["message"]
