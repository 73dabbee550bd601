"""The examples of the documentation: each runs and prints what the page shows."""

import asyncio
import contextlib
import io
import itertools
import json
import os
import re
import shlex
import shutil
import socket
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from recallog import Memory, Settings, sync
from recallog.operations.routes import routes
from recallog_agents.clients import CLIENTS
from recallog_demo import village
from recallog_schemas.errors import StorageError
from recallog_service.access import Access
from recallog_service.cli.serving import DEFAULT_PORT
from recallog_service.http.app import Application
from recallog_tools.transcripts import BLOCK
from support import coding_agents
from support.cli import environment_of, recallog
from support.events import numbered
from support.http import served

ROOT = Path(__file__).parents[2]


def blocks(document: str, language: str) -> list[str]:
    found = BLOCK.findall((ROOT / document).read_text())
    return [textwrap.dedent(code) for _, of_block, code in found if of_block == language]


def without_code(document: Path) -> str:
    return BLOCK.sub("", document.read_text())


def anchors(document: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub derives them."""
    headings = re.findall(r"^#+ (.*)$", without_code(document), re.MULTILINE)
    found = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
    assert len(found) == len(set(found)), f"two headings of {document.name} have the same anchor"
    return set(found)


def run_python(code: str, folder: Path) -> str:
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        exec(compile(code, "documentation", "exec"), {"__name__": "__main__"})
    return printed.getvalue()


@pytest.mark.models("all")
def test_the_agent_of_the_guide_prints_what_it_says_in_forty_lines(tmp_path: Path) -> None:
    agent, *snippets = blocks("docs/build-an-agent.md", "python")
    (printed,) = blocks("docs/build-an-agent.md", "text")
    assert len(agent.splitlines()) <= 40
    assert run_python("\n".join([agent, *snippets]), tmp_path) == printed


def test_the_examples_of_the_readme_print_what_it_says_in_eight_lines_and_in_three(tmp_path: Path) -> None:
    programs = blocks("README.md", "python")
    (printed,) = blocks("README.md", "text")
    assert [len([line for line in program.splitlines() if line]) for program in programs] == [8, 3]
    assert [run_python(program, tmp_path) for program in programs] == [printed, printed]


@pytest.mark.models("all")
def test_the_commands_of_the_readme_continue_its_example_and_print_what_it_says(tmp_path: Path) -> None:
    session, _ = blocks("README.md", "python")
    run_python(session, tmp_path)
    check_console("README.md", tmp_path)


@pytest.mark.models("all")
def test_each_program_of_the_page_on_several_users_prints_what_it_says(tmp_path: Path) -> None:
    programs, printed = blocks("docs/privacy/sharing.md", "python"), blocks("docs/privacy/sharing.md", "text")
    assert [run_python(program, tmp_path) for program in programs] == printed
    assert len(programs) == 2


MIGRATE = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/migrate/*.md"))


@pytest.mark.models("all")
@pytest.mark.parametrize(
    "guide",
    [
        *MIGRATE,
        "docs/consensus.md",
        "docs/conversations.md",
        "docs/facts.md",
        "docs/filters.md",
        "docs/long-term-memory.md",
        "docs/long-term-memory/automatic.md",
        "docs/stream.md",
        "docs/tiers.md",
        "docs/tiers/debate.md",
        "docs/trust.md",
        "docs/tutorials/chatbot.md",
        "docs/tutorials/coding-agent.md",
        "docs/tutorials/many-users.md",
        "docs/tutorials/simulation.md",
        "docs/working-memory.md",
        "docs/workspace.md",
    ],
)
def test_the_programs_and_commands_of_a_guide_print_what_it_says(guide: str, tmp_path: Path) -> None:
    programs, printed = blocks(guide, "python"), blocks(guide, "text")
    assert [run_python(program, tmp_path) for program in programs] == printed
    if blocks(guide, "console"):
        check_console(guide, tmp_path)


MIGRATE_WORDS_MAX = 700
THEIRS = (
    "add_episode",
    "AGX_WORKSPACE_ROOT",
    "ARAGORA_MEMORY_CAPTURE_ENABLED",
    "ARAGORA_MEMORY_CAPTURE_MAX_PER_MINUTE",
    "ARAGORA_MEMORY_CAPTURE_TOOLS",
    "ARAGORA_MEMORY_SKIP_TOOLS",
    "BaseStore",
    "ConsensusMemory",
    "ContextBuilder",
    "ContextCompactor",
    "ContinuumMemory",
    "EpisodicMemory",
    "InMemorySaver",
    "LettaAgentClient",
    "MEM0_API_KEY",
    "MEMORY_INDEX",
    "MEMORY_INDEX_BACKEND",
    "MEMORY_INDEX_CONFIG",
    "MemFS",
    "MemoryClient",
    "MemoryHook",
    "MemoryIndex",
    "MemoryStream",
    "ReflectionMemory",
    "SalienceMemory",
    "TramontaneMemory",
    "WorkspaceMemoryStore",
    "genesis_memory",
    "memory.window",
    "memory_blocks",
    "retain_batch",
    "thread.add_messages",
)
"""Names of other systems for which readers search."""


def rows_of_names(page: str) -> list[tuple[str, str]]:
    """The rows of the table of a page: their names, and what we have instead."""
    _, _, table = (ROOT / page).read_text().partition("| theirs | ours |\n| --- | --- |\n")
    return re.findall(r"^\| (.*?) \| (.*) \|\n", table.partition("\n\n")[0] + "\n", re.MULTILINE)


def test_the_pages_to_migrate_have_each_name_that_readers_search_for() -> None:
    named = {name for page in MIGRATE for theirs, _ in rows_of_names(page) for name in re.findall(r"`([^`]*)`", theirs)}
    assert set(THEIRS) <= named


def test_the_search_of_the_site_finds_each_name_as_a_whole() -> None:
    (separator,) = re.findall(r"separator: '(.*)'", (ROOT / "mkdocs.yml").read_text())
    words = {
        re.sub(r"^\W+|\W+$", "", word) for page in MIGRATE for word in re.split(separator, (ROOT / page).read_text())
    }
    assert set(THEIRS) <= words


@pytest.mark.parametrize("page", [page for page in MIGRATE if not page.endswith("README.md")])
def test_a_page_to_migrate_has_their_names_their_code_and_its_source(page: str) -> None:
    text = (ROOT / page).read_text()
    rows = rows_of_names(page)
    assert len(rows) > 10
    assert all("](" in ours or ours.startswith("none") for _, ours in rows)
    assert re.search(r"\(https://.*read in November\s2026", text, re.DOTALL)
    assert "Theirs (not executed here)" in text
    assert blocks(page, "py")
    assert "\n## Your data\n" in text


@pytest.mark.parametrize("page", MIGRATE)
def test_a_page_to_migrate_is_read_in_five_minutes(page: str) -> None:
    assert len((ROOT / page).read_text().split()) <= MIGRATE_WORDS_MAX


@pytest.mark.models("all")
def test_the_program_of_the_page_on_ingest_prints_what_it_says(tmp_path: Path) -> None:
    (program,) = blocks("docs/ingest.md", "python")
    assert run_python(program, tmp_path) in blocks("docs/ingest.md", "text")


@pytest.mark.models("all")
def test_the_page_on_beliefs_prints_what_it_says_in_the_village_of_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (program,), (printed,) = blocks("docs/beliefs.md", "python"), blocks("docs/beliefs.md", "text")
    assert run_python(program, tmp_path) == printed
    with sync.Memory.open(village.settings(tmp_path)) as memory:
        memory.publish_many(village.recording())
    monkeypatch.setenv("RECALLOG_HOME", str(tmp_path))
    check_console("docs/beliefs.md", tmp_path)


@pytest.mark.models("all")
def test_the_program_and_the_commands_of_the_page_on_lineage_print_what_it_says_of_the_demo(tmp_path: Path) -> None:
    (program,) = blocks("docs/lineage.md", "python")
    assert [run_python(program, tmp_path)] == blocks("docs/lineage.md", "text")

    async def fill() -> None:
        async with Memory.open(village.settings(tmp_path / ".recallog" / "demo")) as memory:
            await memory.publish_many(village.recording())

    asyncio.run(fill())
    check_console("docs/lineage.md", tmp_path)
    assert (tmp_path / "why.svg").read_text(encoding="utf-8").startswith("<svg ")


@pytest.mark.models("all")
def test_the_programs_of_the_page_on_languages_print_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECALLOG_INDEX", "embedded")
    monkeypatch.setenv("RECALLOG_DEADLINE_SECONDS", "60")  # a busy machine loads the model for long
    programs, printed = blocks("docs/languages.md", "python"), blocks("docs/languages.md", "text")
    assert [run_python(program, tmp_path) for program in programs] == printed


@pytest.mark.models("all")
def test_the_programs_and_cells_of_the_page_on_scripts_and_notebooks_print_what_it_says(tmp_path: Path) -> None:
    script, restart, *cells = blocks("docs/scripts-and-notebooks.md", "python")
    cells, long_work = cells[:3], cells[-1]
    printed = blocks("docs/scripts-and-notebooks.md", "text")
    found = [run_python(program, tmp_path) for program in (script, restart, "".join(cells), long_work)]
    assert found == [*printed[:2], "", printed[2]]


@pytest.mark.models("all")
def test_the_plots_of_the_page_on_scripts_and_notebooks_show_what_the_memory_has(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    cells = blocks("docs/scripts-and-notebooks.md", "python")[5:-1]
    known: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(tmp_path):
        for cell in cells:
            exec(compile(cell, "documentation", "exec"), known)
    assert list(known["minutes"]["events"]) == [2, 1, 4]
    assert known["salience"]["score"].is_monotonic_increasing
    assert known["salience"]["relevance"]["Flour is dear."] > 0
    assert list(known["grounds"]["events"]) == [2, 3]
    for plotted in ("minutes", "salience", "grounds"):
        assert "linear-gradient" in known[plotted].style.bar().to_html(), plotted


@pytest.mark.models("all")
def test_the_programs_of_the_page_on_a_memory_behind_a_server_print_what_it_says(tmp_path: Path) -> None:
    async def work() -> list[str]:
        async with Memory.open(tmp_path) as memory:
            async with served(Application(memory, Access.of(Settings(home=tmp_path)))) as (_, url):
                return [await asyncio.to_thread(run_python, program, tmp_path) for program in programs(url)]

    def programs(url: str) -> list[str]:
        found = blocks("docs/remote.md", "python")
        assert all("http://127.0.0.1:8765" in program for program in found)
        return [program.replace("http://127.0.0.1:8765", url) for program in found]

    assert asyncio.run(work()) == blocks("docs/remote.md", "text")


def test_the_chatbot_of_the_tutorial_has_at_most_thirty_lines() -> None:
    (chatbot,) = blocks("docs/tutorials/chatbot.md", "python")
    assert len([line for line in chatbot.splitlines() if line]) <= 30


def test_the_commands_of_the_producers_guide_print_what_it_says(tmp_path: Path) -> None:
    check_console("docs/producers.md", tmp_path)


def check_console(document: str, folder: Path) -> None:
    """Run the commands of the console sessions of `document`; each prints what is written below it, if anything is."""
    console = "".join(blocks(document, "console"))
    assert console
    for command, expected in re.findall(r"^\$ recallog (.*)\n((?:[^$].*\n)*)", console, re.MULTILINE):
        with contextlib.chdir(folder):
            ended = recallog(*shlex.split(command))
        assert ended.code == 0, ended.err
        assert not expected.strip() or shows(ended.out, expected), f"$ recallog {command}\n{ended.out}"


# Pages of the doors: their commands run in one shell, their programs one after another, against one server.


@contextlib.contextmanager
def server_in(folder: Path, **environment: str) -> Iterator[int]:
    """`recallog serve` in `folder`, on a free port of this machine."""
    with contextlib.closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    command = [sys.executable, "-m", "recallog_service", "serve", "--port", str(port)]
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, stderr=log, env=environment_of(**environment))
    try:
        until = time.monotonic() + 60
        while not answers(f"http://127.0.0.1:{port}/readyz"):
            assert process.poll() is None, (folder / "server.log").read_text()
            assert time.monotonic() < until, "the server has not started within a minute"
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(30)


def answers(url: str) -> bool:
    try:
        return httpx.get(url).is_success
    except httpx.TransportError:
        return False


_STEP = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_NEXT = "-- next --"
_ABOUT_STREAM = "/^event: \\(begin\\|progress\\)/,/^$/d; /^:/d; /^$/d"
_CURL = 'curl() { command curl --silent --show-error "$@"; }\n'  # it writes to no terminal


def with_command(folder: Path) -> str:
    """A search path on which `recallog` is the command of this interpreter, for programs that start it by its name."""
    command = folder / "bin" / "recallog"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nRECALLOG_INDEX=off exec {sys.executable} -m recallog_service "$@"\n')
    command.chmod(0o755)
    return f"{command.parent}{os.pathsep}{os.environ['PATH']}"


def shows(printed: str, expected: str) -> bool:
    """Whether a page shows all that was printed; `…` is any text within a line, and any lines if it is a line.

    Blanks at the ends of lines do not count.
    """
    lines = [line.rstrip() for line in expected.strip().splitlines()]
    found = "\n".join(line.rstrip() for line in printed.strip().splitlines())
    pattern = "\n".join("[^\\n]*".join(re.escape(part) for part in line.split("…")) for line in lines)
    pattern = re.sub(r"(?m)^\[\^\\n\]\*$", lambda _: r"[\s\S]*", pattern)
    return re.fullmatch(pattern, found) is not None


def test_a_page_shows_all_lines_or_says_what_it_leaves_out() -> None:
    printed = "clean 2 records, 4 rows \nwell\n"
    assert all(shows(printed, page) for page in (printed, "clean … rows\nwell", "clean 2 records…\n…", "…\nwell", "…"))
    assert not any(shows(printed, page) for page in ("clean 2 records", "clean 2 records, 4 rows", "clean …", "well"))


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", _CURL + script],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=environment_of(COLUMNS="200", PATH=with_command(folder)),
        timeout=100,
    )


def events_in(stream: str) -> str:
    return subprocess.run(["sed", _ABOUT_STREAM], input=stream, capture_output=True, text=True, check=True).stdout


def check_shell(documents: list[str], folder: Path, port: int) -> None:
    """Run the commands of the console sessions of `documents` in one shell; each prints what is written below it. Of a
    stream as many lines are read as the page shows, without comments and what is about the stream."""
    sessions = "".join(block for document in documents for block in blocks(document, "console"))
    steps = _STEP.findall(sessions.replace(str(DEFAULT_PORT), str(port)))
    assert steps
    script = "exec 2>&1\n"
    for command, expected in steps:
        if " -N " in command:
            lines = events_in(expected).count("\n")
            command = f"head -n {lines} < <(exec 2>/dev/null; {command} | sed -u '{_ABOUT_STREAM}')"
        script += f"{command}\necho\necho '{_NEXT}'\n"
    ended = shell(script, folder)
    printed = ended.stdout.split(f"{_NEXT}\n")[:-1]
    assert len(printed) == len(steps), ended.stdout
    for (command, text), found in zip(steps, printed, strict=True):
        expected = events_in(text) if " -N " in command else text
        assert shows(found, expected), f"$ {command}\n{found}"


def test_the_page_on_jobs_names_every_job() -> None:
    (named,) = re.findall(
        r"^Work that may take long is a job: (.*?)\. ", (ROOT / "docs/http/routes.md").read_text(), re.MULTILINE
    )
    jobs = {route.path.removeprefix("/v1/") for route in routes(Memory).values() if route.is_job}
    assert set(re.findall(r"`([^`]*)`", named)) == jobs


needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@needs_curl
def test_the_commands_of_the_pages_on_http_print_what_they_say(tmp_path: Path) -> None:
    with server_in(tmp_path, RECALLOG_INDEX="off") as port:
        check_shell(["docs/http.md", "docs/http/routes.md"], tmp_path, port)


@needs_curl
def test_the_commands_of_the_readme_use_a_server(tmp_path: Path) -> None:
    program, _ = blocks("README.md", "python")
    run_python(program, tmp_path)
    (script,) = (each for each in blocks("README.md", "shell") if "curl" in each)
    serve, context, stream, install = script.splitlines()
    assert serve == "recallog serve &"
    with server_in(tmp_path, RECALLOG_INDEX="off") as port:
        read = f"grep --max-count 1 '^data: .*The mill burned' < <(exec 2>/dev/null; {stream})"
        script = "\n".join([context, "echo", read, f"{install} --yes"])
        ended = shell(script.replace(str(DEFAULT_PORT), str(port)), tmp_path)
    assert (ended.returncode, ended.stderr) == (0, f"{CLIENTS['claude-code'].next}\n")
    assert ended.stdout.count("The mill burned.") >= 2, ended.stdout
    assert '"baker"' in (tmp_path / ".mcp.json").read_text()


@pytest.mark.models("all")
def test_the_commands_of_the_page_on_coding_agents_capture_what_was_said(tmp_path: Path) -> None:
    install, commands = blocks("docs/coding-agents.md", "shell")
    assert install.splitlines()[1] == "recallog install claude-code"
    with coding_agents.served(tmp_path / "memory"):
        ended = shell(commands, tmp_path)
    assert ended.returncode == 0, ended
    said = [line.rpartition("] ")[2] for line in ended.stdout.splitlines() if line.startswith("[turn")]
    assert said[:2] == ["We deploy with make ship.", "I will use make ship."]
    assert len(install.splitlines()) + len(commands.splitlines()) <= 20


@pytest.mark.models("all")
def test_the_programs_of_the_page_on_mcp_print_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_stdio, by_http = blocks("docs/mcp.md", "python")
    (printed,) = blocks("docs/mcp.md", "text")
    install, site = blocks("docs/mcp.md", "shell")
    create, install_of_site, serve = site.splitlines()
    assert serve == "recallog serve"
    monkeypatch.setenv("PATH", with_command(tmp_path))
    assert shows(run_python(by_stdio, tmp_path), printed)
    once, again = f"{install.strip()} --yes", f"{install_of_site} --yes >/dev/null"
    script = "\n".join([f"{once} >/dev/null", "cp .mcp.json started.json", create, again, "echo $RECALLOG_KEY"])
    ended = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    started, connected = (json.loads((tmp_path / name).read_text()) for name in ("started.json", ".mcp.json"))
    assert "mcp --space village --agent baker" in " ".join(started["mcpServers"]["recallog"]["args"])
    assert connected["mcpServers"]["recallog"]["url"] == f"http://127.0.0.1:{DEFAULT_PORT}/mcp"
    monkeypatch.setenv("RECALLOG_KEY", ended.stdout.strip())
    with server_in(tmp_path, RECALLOG_INDEX="off") as port:
        found = run_python(by_http.replace(str(DEFAULT_PORT), str(port)), tmp_path)
    assert shows(found, printed.splitlines()[1])


def test_the_projection_of_the_contributors_guide_works(tmp_path: Path) -> None:
    (example,) = blocks("CONTRIBUTING.md", "python")
    run_python(example, tmp_path)


@pytest.mark.models("all")
@pytest.mark.parametrize(
    "document",
    sorted(
        path.relative_to(ROOT).as_posix()
        for path in ROOT.glob("**/*.md")
        if not any(part.startswith(".") or part in ("build", "node_modules") for part in path.relative_to(ROOT).parts)
    ),
)
def test_links_lead_somewhere(document: str) -> None:
    source = ROOT / document
    for target, anchor in re.findall(r"\]\((?!https?://)([^)#]*)(?:#([^)]*))?\)", without_code(source)):
        found = source.parent / target if target else source
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), f"{target}#{anchor}"


WORDS_MAX = 1_500
"""Of a page: ten minutes of reading."""
LISTS = ("docs/adr/README.md", "docs/glossary.md")


@pytest.mark.parametrize("document", sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md")))
def test_a_page_is_read_in_ten_minutes(document: str) -> None:
    if document not in LISTS and not document.startswith("docs/reference/"):
        assert len((ROOT / document).read_text().split()) <= WORDS_MAX


def test_the_navigation_of_the_site_leads_to_every_page() -> None:
    _, _, navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")
    named = re.findall(r"([\w/-]+\.md)$", navigation, re.MULTILINE)
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")}
    generated = {page for page in pages if re.match(r"reference/|adr/0", page)}
    assert sorted(set(named) - generated) == sorted({*pages - generated, "index.md"})
    assert len(named) == len(set(named))


@pytest.mark.parametrize("folder", ["", "docs", "schemas", "projections", "streams", "memory", "service", "deploy"])
def test_nothing_is_installed_from_a_package_index_that_does_not_have_it(folder: str) -> None:
    pattern = "**/*" if folder else "*.md"
    for path in (ROOT / folder).glob(pattern):
        if path.suffix in (".md", ".py"):
            assert not re.search(r"pip install (-\S+ )*['\"]?recallog\b", path.read_text()), path


def subclasses(error: type[Exception]) -> set[type[Exception]]:
    return {error}.union(*map(subclasses, error.__subclasses__()))


RUNBOOK = (ROOT / "docs/runbook.md", *sorted((ROOT / "docs/runbook").glob("*.md")))


@pytest.mark.parametrize("error", sorted(each.__name__ for each in subclasses(StorageError) - {StorageError}))
def test_each_error_of_storage_has_a_line_in_the_runbook(error: str) -> None:
    assert any(f"`{error}`" in page.read_text() for page in RUNBOOK)


OPERATORS = (
    *RUNBOOK,
    *(ROOT / "docs" / f"{name}.md" for name in ("alerts", "deploying", "securing-a-cluster", "sizing", "watching")),
    *sorted((ROOT / "docs/cluster").glob("*.md")),
)
"""The pages for operators."""


@pytest.mark.parametrize("page", OPERATORS, ids=lambda page: page.stem)
def test_the_commands_of_the_pages_for_operators_exist(page: Path) -> None:
    commands = re.findall(r"`recallog ([^`]*)`", without_code(page))
    for script in blocks(str(page.relative_to(ROOT)), "shell"):
        commands += re.findall(r"(?:^|&& |-- | views )recallog ([^#\n|>&]*)", script, re.MULTILINE)
    for command in commands:
        words = shlex.split(command)
        help_ = recallog(*itertools.takewhile(lambda word: not word.startswith("--"), words), "--help")
        assert help_.code == 0, command
        assert all(re.search(rf"{word}\b", help_.out) for word in words if word.startswith("--")), command


def test_the_runbook_saves_the_records_of_a_damaged_ledger(tmp_path: Path) -> None:
    async def publish() -> None:
        async with Memory.open(tmp_path / ".recallog") as memory:
            await memory.publish_many(numbered(60))

    asyncio.run(publish())
    with contextlib.closing(sqlite3.connect(tmp_path / ".recallog/ledger.db")) as connection, connection:
        connection.execute("UPDATE events SET value = replace(value, 'a', 'b') WHERE offset = 57")
    (script,) = blocks("docs/runbook.md", "shell")
    run = f"{sys.executable} -m recallog_service"
    ended = [
        subprocess.run(
            shlex.split(line.replace("recallog", run, 1), comments=True),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "RECALLOG_INDEX": "off"},
        )
        for line in script.splitlines()
    ]
    assert [each.returncode for each in ended] == [1, 0, 0]
    assert ended[0].stderr.startswith("left out 0:57: ")
    assert ended[2].stdout.startswith("clean 59 records")


def test_every_target_of_the_readme_is_in_the_makefile() -> None:
    assert set(re.findall(r"`?make ([a-z-]+)", (ROOT / "README.md").read_text())) <= set(targets_of_the_makefile())


def test_every_target_of_the_makefile_is_declared_once() -> None:
    (declared,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert sorted(targets_of_the_makefile()) == sorted(declared.split())


def targets_of_the_makefile() -> list[str]:
    return re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
