"""The memory model of docs/extending.md, a package that is built and installed into a venv, is found at every door."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import httpx
import pytest
from deploy.local.ports import HOST, free_port

from chaos.processes import Task
from support.events import run
from support.waiting import until

GUIDE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text().partition("## A memory model")[2]
PROJECT = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)[0]
MODULE = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)[0]

SCRIPT = """
import asyncio, json
import recallog, recallog.sync
from recallog import Event, Memory, Remote
from recallog_reminders import MODEL, OPEN

async def main():
    found = {}
    async with Memory.open() as memory:
        found["set"] = (await memory.reminders.set("village", "baker", "Pay the miller.")).texts
        found["prompt"] = (await memory.context("village", "baker")).text
        await memory.admin.rebuild()
        found["rebuilt"] = (await memory.reminders.list("village", "baker")).texts
        await memory.publish(Event(space="village", agent="baker", kind="session.ended", payload={}))
        found["due"] = [each.kind for each in await memory.pending("village")]
        await memory.react()
        found["answered"] = (await memory.episodic("village", "baker")).memories[-1].text
        found["after"] = (await memory.reminders.list("village", "baker")).texts
        try:
            await memory.publish({"space": "village", "agent": "baker", "kind": "reminder.set", "payload": {"text": 1}})
        except recallog.InvalidEvent as error:
            found["invalid"] = str(error)
        found["verified"] = not (await memory.admin.verify()).findings()
    print(json.dumps(found))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a venv that has the package, and everything that this one has."""
    folder = tmp_path_factory.mktemp("own")
    package, wheels, environment = folder / "package", folder / "wheels", folder / "venv"
    package.mkdir()
    (package / "pyproject.toml").write_text(PROJECT)
    (package / "recallog_reminders.py").write_text(MODULE)
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(wheels)]
    subprocess.run(command, cwd=package, check=True, capture_output=True)
    venv.create(environment, symlinks=True)
    found = environment / "bin" / "python"
    site = Path(sysconfig.get_path("purelib", vars={"base": str(environment), "platbase": str(environment)}))
    ours = sysconfig.get_path("purelib")
    (site / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    (wheel,) = wheels.glob("*.whl")
    install = [sys.executable, "-m", "pip", "--python", str(found), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    return found


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "RECALLOG_HOME": str(tmp_path / "memory"), "RECALLOG_INDEX": "off", "COLUMNS": "120"}


def recallog(python: Path, environment: dict[str, str], *arguments: str) -> str:
    """What a command prints."""
    command = [str(python), "-m", "recallog_service", *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def test_a_program_has_its_operations_views_triggers_and_section(python: Path, environment: dict[str, str]) -> None:
    done = subprocess.run([str(python), "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["set"] == found["rebuilt"] == ["Pay the miller."]
    assert "REMINDERS\nPay the miller." in found["prompt"]
    assert found["due"] == ["reminder.due"]
    assert found["answered"] == "My reminders are done."
    assert found["after"] == []
    assert "text" in found["invalid"]
    assert found["verified"]


def test_the_synchronous_memory_has_it(python: Path, environment: dict[str, str]) -> None:
    script = (
        "from recallog.sync import Memory\n"
        "with Memory.open() as memory:\n"
        "    memory.reminders.set('village', 'baker', 'Bread!')\n"
        "    print(memory.reminders.list('village', 'baker').texts)"
    )
    done = subprocess.run([str(python), "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "('Bread!',)\n", done.stderr


def test_it_has_commands_with_help(python: Path, environment: dict[str, str]) -> None:
    assert "reminders" in recallog(python, environment, "--help")
    assert "Remind an agent of a text" in recallog(python, environment, "reminders", "--help")
    recallog(python, environment, "reminders", "set", "village", "baker", "Pay the miller.")
    shown = json.loads(recallog(python, environment, "reminders", "list", "village", "baker", "--json"))
    assert shown == {"agent": "baker", "texts": ["Pay the miller."]}


def test_a_server_has_routes_for_it_and_documents_them(
    python: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    port = free_port()
    command = [str(python), "-m", "recallog_service", "serve", "--port", str(port)]
    server = Task(command, tmp_path, tmp_path / "server.log", environment)
    try:
        url = f"http://{HOST}:{port}"
        run(until(lambda: _answers(f"{url}/readyz"), "the server answers"))
        described = httpx.get(f"{url}/openapi.json").json()
        assert [path for path in described["paths"] if "reminders" in path]
        script = (
            "import asyncio, sys\n"
            "from recallog import Remote\n"
            "async def main():\n"
            "    async with Remote(sys.argv[1]) as memory:\n"
            "        await memory.reminders.set('village', 'baker', 'Bread!')\n"
            "        print((await memory.reminders.list('village', 'baker')).texts)\n"
            "asyncio.run(main())"
        )
        done = subprocess.run(
            [str(python), "-c", script, url], env=environment, capture_output=True, text=True, check=False
        )
        assert done.stdout == "('Bread!',)\n", done.stderr
    finally:
        server.kill()


async def _answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.HTTPError:
        return False


def test_without_the_package_nothing_is_found() -> None:
    script = "import recallog; from recallog import Memory; print('reminders' in Memory.facades)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
