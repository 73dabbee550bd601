"""`recallog console`: it starts a server, says where, and needs the extra `server` alone."""

import json
import re
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from recallog_service.cli import serving
from support.cli import environment_of, recallog, spawn
from support.waiting import WAIT_SECONDS

pytestmark = pytest.mark.models("all")


def test_the_console_is_served_at_the_printed_address_until_ctrl_c(tmp_path: Path) -> None:
    recallog("publish", "village", "baker", "agent.spoke", "Bread!", "--home", tmp_path)
    command = [sys.executable, "-m", "recallog_service", "console", "--no-open", "--port", "0", "--home", str(tmp_path)]
    process = subprocess.Popen(command, env=environment_of(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = re.fullmatch(r"The console is at (http://127\.0\.0\.1:\d+/)\n", line)
        assert url is not None, line
        assert "village" in httpx.get(url[1], timeout=WAIT_SECONDS).text
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    finally:
        process.kill()
        process.communicate()


def test_another_port_is_taken_if_the_usual_one_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        monkeypatch.setattr(serving, "DEFAULT_PORT", other.getsockname()[1])
        assert serving._free_port() == 0
    assert serving._free_port() == serving.DEFAULT_PORT


def test_a_port_that_was_chosen_and_is_in_use_is_named(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        ended = spawn("console", "--no-open", "--port", port, "--home", tmp_path)
    assert ended.code == 3
    assert f"the server cannot listen on 127.0.0.1:{port}" in ended.err.splitlines()[-1]


@pytest.mark.parametrize("package", ["jinja2", "starlette", "uvicorn"])
@pytest.mark.parametrize("command", ["console", "serve"])
def test_without_the_packages_of_a_server_one_line_says_how_to_install_them(
    tmp_path: Path, package: str, command: str
) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; from recallog_service.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, command, "--home", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=environment_of(),
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    told = json.loads(line)["message"] if command == "serve" else line.removeprefix("error ")
    assert told == f"{package} is not installed. Install it: pip install '.[server]' in a clone of Recallog"
