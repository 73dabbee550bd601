"""The memory model of the guide, a package that is built and installed into a venv, is found at every door."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from deploy.local.ports import HOST, free_port

from chaos.processes import Task
from recallog import Memory, Settings
from support import own_package
from support.events import event, run
from support.own_package import output_of
from support.waiting import until

PAID, BREAD = "Pay the miller.", "Take bread to the smith."

SCRIPT = f"""
import asyncio, json
from datetime import UTC, datetime
import recallog
from recallog import Event, Memory, Position

async def main():
    found = {{}}
    async with Memory.open() as memory:
        reminders = memory.reminders

        async def recalled(agent="baker", **at):
            view = await memory.recall("village", agent, "Was the miller paid?", types=["reminder"], **at)
            return [[hit.text, hit.source] for hit in view.hits]

        async def indexed():
            if await memory.start_index():
                await memory.recall("village", "baker", "bread", wait_index=True)

        found["set"] = (await reminders.set("village", "baker", {PAID!r})).texts
        (id,) = (await reminders.set("village", "baker", {BREAD!r})).ids[:1]
        (end,) = await memory.admin.ledger_ends()
        past = [Position(0, end - 1), datetime.now(UTC)]
        found["prompt"] = (await memory.context("village", "baker")).text
        await indexed()
        found["recalled"] = await recalled()
        found["of another"] = await recalled("miller")
        found["searched"] = [hit.preview for hit in (await memory.search("village", "baker", "the miller")).hits]
        await memory.admin.rebuild()
        if memory._components.index is not None:
            await memory.admin.rebuild("index")
        found["rebuilt"] = (await reminders.list("village", "baker")).texts
        found["recalled again"] = await recalled()
        found["verified"] = not (await memory.admin.verify()).findings()
        await reminders.forget("village", "baker", id)
        try:
            await reminders.forget("village", "baker", id)
        except recallog.Refused as error:
            found["forgotten before"] = (error.reason, await memory.admin.ledger_ends())
        found["forgotten"] = (await reminders.list("village", "baker")).texts
        await indexed()
        found["recalled later"] = await recalled()
        found["past"] = [(await reminders.list("village", "baker", as_of=at)).texts for at in past]
        found["recalled in the past"] = [await recalled(as_of=at) for at in past]
        await memory.publish(Event(space="village", agent="baker", kind="session.ended", payload={{}}))
        found["due"] = [each.kind for each in await memory.pending("village")]
        await memory.react()
        found["answered"] = (await memory.episodic("village", "baker")).memories[-1].text
        found["after"] = (await reminders.list("village", "baker")).texts
        try:
            await memory.publish({{"space": "village", "agent": "baker", "kind": "reminder.set", "payload": {{}}}})
        except recallog.InvalidEvent as error:
            found["invalid"] = str(error)
    print(json.dumps(found))

asyncio.run(main())
"""

CLIENT = """
import asyncio, json, sys
from mcp import Client, StdioServerParameters

async def main():
    arguments = ["-m", "recallog_service", "mcp", "--space", "village", "--agent", "baker"]
    async with Client(StdioServerParameters(command=sys.executable, args=arguments, env=ENVIRONMENT)) as client:
        tools = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
        answer = await client.call_tool("set_reminder", {"text": "Pay the miller."})
    print(json.dumps([tools["set_reminder"], answer.content[0].text]))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a venv that has the package."""
    return own_package.installed(tmp_path_factory.mktemp("own"))


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Settings without an index. One that is started ends with its program."""
    home = str(tmp_path / "memory")
    return {
        **os.environ,
        "RECALLOG_HOME": home,
        "RECALLOG_INDEX": "off",
        "RECALLOG_INDEX_IDLE_SECONDS": "0",
        "COLUMNS": "120",
    }


def recallog(python: Path, environment: dict[str, str], *arguments: str) -> str:
    """What a command prints."""
    command = [str(python), "-m", "recallog_service", *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


@pytest.mark.models("prompt")
@pytest.mark.parametrize("index", ["off", "embedded"])
def test_a_program_has_all_its_parts(python: Path, environment: dict[str, str], index: str) -> None:
    found = json.loads(output_of(python, {**environment, "RECALLOG_INDEX": index}, SCRIPT))
    source = "views" if index == "off" else "index"
    assert found["set"] == [PAID]
    assert f"REMINDERS\n{PAID}\n{BREAD}" in found["prompt"]
    assert found["recalled"][0] == found["recalled again"][0] == [PAID, source]
    assert found["of another"] == []
    assert PAID in found["searched"]
    assert found["rebuilt"] == [PAID, BREAD]
    assert found["verified"]
    assert found["forgotten"] == [BREAD]
    reason, (end,) = found["forgotten before"]
    assert (reason, end) == ("unknown", end)
    assert found["past"] == [[BREAD]] * 2
    for hits in (found["recalled later"], *found["recalled in the past"]):
        assert PAID not in [text for text, _ in hits]
    assert found["due"] == ["reminder.due"]
    assert found["answered"] == "My reminders are done."
    assert found["after"] == []
    assert "text" in found["invalid"]


def test_where_the_process_of_the_index_lacks_the_package_words_are_compared(
    python: Path, environment: dict[str, str]
) -> None:
    script = (
        "from recallog.sync import Memory\n"
        "with Memory.open() as memory:\n"
        "    memory.reminders.set('village', 'baker', 'Pay the miller.')\n"
        "    found = memory.recall('village', 'baker', 'Was the miller paid?')\n"
        "    print([hit.text for hit in found.hits], found.degraded)"
    )

    async def work() -> str:
        settings = Settings(home=Path(environment["RECALLOG_HOME"]), index="embedded", index_idle_seconds=0)
        async with Memory.open(settings) as memory:
            await memory.publish(event(agent="smith"))
            await memory.recall("village", "smith", "bread", wait_index=True)
            return await asyncio.to_thread(output_of, python, {**environment, "RECALLOG_INDEX": "embedded"}, script)

    answer = run(work())
    assert "['Pay the miller.'] only words were compared: the process that serves the index, " in answer
    assert "lacks the memory model reminders. Install its package" in answer


def test_the_model_of_an_mcp_client_has_a_tool(python: Path, environment: dict[str, str]) -> None:
    schema, answer = json.loads(output_of(python, environment, CLIENT.replace("ENVIRONMENT", repr(environment))))
    assert schema["properties"].keys() == {"text"}
    assert schema["required"] == ["text"]
    assert PAID in answer


@pytest.mark.models("all")
def test_the_reference_describes_it(python: Path, environment: dict[str, str], tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    path = {**environment, "PYTHONPATH": f"{root / 'tools'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    command = [str(python), "-m", "recallog_tools.generate", str(tmp_path)]
    subprocess.run(command, env=path, check=True, capture_output=True)
    pages = {each.stem: each.read_text() for each in (tmp_path / "docs" / "reference").iterdir()}
    assert "Remind an agent of a text in its prompts." in pages["reminders"]
    assert "MCP tool: `set_reminder`." in pages["reminders"]
    assert "ReminderList" in pages["views"]
    assert "reminder.set" in pages["kinds"]
    assert "from recallog_reminders import" in (tmp_path / "memory" / "recallog" / "sync" / "__init__.pyi").read_text()


def test_the_synchronous_memory_has_it(python: Path, environment: dict[str, str]) -> None:
    script = (
        "from recallog.sync import Memory\n"
        "with Memory.open() as memory:\n"
        "    memory.reminders.set('village', 'baker', 'Bread!')\n"
        "    print(memory.reminders.list('village', 'baker').texts)"
    )
    assert output_of(python, environment, script) == "('Bread!',)\n"


def test_it_has_commands_with_help(python: Path, environment: dict[str, str]) -> None:
    assert "reminders" in recallog(python, environment, "--help")
    assert "Remind an agent of a text" in recallog(python, environment, "reminders", "--help")
    recallog(python, environment, "reminders", "set", "village", "baker", "Pay the miller.")
    shown = json.loads(recallog(python, environment, "reminders", "list", "village", "baker", "--json"))
    assert shown["texts"] == [PAID]


def test_a_server_has_routes_for_it_and_documents_them(
    python: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    port = free_port()
    command = [str(python), "-m", "recallog_service", "serve", "--port", str(port)]
    server = Task(command, tmp_path, tmp_path / "server.log", environment)
    try:
        url = f"http://{HOST}:{port}"
        run(until(lambda: _answers(f"{url}/readyz"), "the server answers"))
        described = httpx.get(f"{url}/openapi.json", timeout=60).json()
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
        assert output_of(python, environment, script, url) == "('Bread!',)\n"
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
