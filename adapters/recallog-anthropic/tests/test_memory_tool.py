"""The memory tool gives the same answers as the tool with local files of Anthropic's client."""

import asyncio
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.tools import ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from memory_calls import use
from model_stub import Stub, message, text_block

from recallog import Memory, sync
from recallog_anthropic import AsyncRecallogMemoryTool, RecallogMemoryTool

FILES = st.sampled_from(
    ["/memories/a.md", "/memories/b", "/memories/in/c.md", "/memories/in/deep/d", "/memories/.hidden"]
)
PATHS = FILES | st.sampled_from(
    ["/memories", "/memories/in", "/memories/x/../b", "/memories/../etc", "/etc/passwd", "/memories/"]
)
TEXTS = st.sampled_from(["", "plums", "plums\n", "one\ntwo\nthree\n", "a\n\na\n", "aaa", "x\r\ny\r\n", "héllo\n"])
OLD = st.sampled_from(["a", "aa", "one", "two\n", "plums", "x\r"])
RANGES = st.none() | st.tuples(st.integers(-1, 4), st.integers(-1, 4)).map(list)


CRASH = "crash: "
"""An error of the file system, which Anthropic's tool passes on."""


def answer(tool: Any, command: str, **fields: Any) -> str:
    try:
        return str(tool.call({"command": command, **fields}))
    except ToolError as error:
        return f"error: {error}"
    except OSError as error:
        return f"{CRASH}{error}"


def without_folders(text: str) -> str:
    """A listing without the sizes of folders, which depend on the file system there, and without empty folders."""
    if not text.startswith("Here're the files"):
        return text
    return "\n".join(line for line in text.split("\n")[2:] if not line.endswith("/"))


class LikeLocalFiles(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.memory = sync.Memory.in_memory()
        self.ours = RecallogMemoryTool(self.memory, space="home", agent="claude")
        self.theirs = BetaLocalFilesystemMemoryTool(self.folder.name)

    def teardown(self) -> None:
        self.memory.close()
        self.folder.cleanup()

    def both(self, command: str, **fields: Any) -> None:
        ours, theirs = (answer(tool, command, **fields) for tool in (self.ours, self.theirs))
        if theirs.startswith(CRASH):
            assert ours.startswith("error: ")
        else:
            assert without_folders(ours) == without_folders(theirs)
        root = Path(self.folder.name)
        for folder in sorted(root.glob("memories/**/"), reverse=True):  # documents have no empty folders
            if folder.is_dir() and folder != root / "memories" and not any(folder.iterdir()):
                folder.rmdir()

    @rule(path=FILES, text=TEXTS)
    def create(self, path: str, text: str) -> None:
        self.both("create", path=path, file_text=text)

    @rule(path=PATHS, old=OLD, new=TEXTS)
    def replace(self, path: str, old: str, new: str) -> None:
        self.both("str_replace", path=path, old_str=old, new_str=new)

    @rule(path=PATHS, line=st.integers(-1, 4), text=TEXTS)
    def insert(self, path: str, line: int, text: str) -> None:
        self.both("insert", path=path, insert_line=line, insert_text=text)

    @rule(path=PATHS)
    def delete(self, path: str) -> None:
        self.both("delete", path=path)

    @rule(old=PATHS, new=FILES)
    def rename(self, old: str, new: str) -> None:
        self.both("rename", old_path=old, new_path=new)

    @rule(path=PATHS, view_range=RANGES)
    def view(self, path: str, view_range: Any) -> None:
        self.both("view", path=path, view_range=view_range)

    @invariant()
    def has_the_same_files(self) -> None:
        self.both("view", path="/memories")


TestLikeLocalFiles = LikeLocalFiles.TestCase
TestLikeLocalFiles.settings = settings(
    max_examples=25, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[sync.Memory]:
    with sync.Memory.open(tmp_path) as opened:
        yield opened


def tool_of(memory: sync.Memory) -> RecallogMemoryTool:
    return RecallogMemoryTool(memory, space="home", agent="claude")


def test_a_folder_is_listed_two_levels_deep_with_the_sizes_of_its_files(memory: sync.Memory) -> None:
    tool = tool_of(memory)
    for path in ("a.md", "in/b.md", "in/deep/c.md", ".hidden"):
        answer(tool, "create", path=f"/memories/{path}", file_text="x" * 2048)
    assert answer(tool, "view", path="/memories").split("\n")[1:] == [
        "8K\t/memories",
        "2K\t/memories/a.md",
        "4K\t/memories/in/",
        "2K\t/memories/in/b.md",
        "2K\t/memories/in/deep/",
    ]


def test_a_file_is_not_created_below_a_file(memory: sync.Memory) -> None:
    tool = tool_of(memory)
    answer(tool, "create", path="/memories/a", file_text="")
    assert answer(tool, "create", path="/memories/a/b", file_text="") == "error: /memories/a is a file, not a directory"


def test_a_text_that_is_too_long_is_an_error_of_the_tool(memory: sync.Memory) -> None:
    assert re.match("error: .*65,?536", answer(tool_of(memory), "create", path="/memories/a", file_text="x" * 70_000))


def test_a_change_of_somebody_else_is_not_lost(memory: sync.Memory) -> None:
    tool = tool_of(memory)
    answer(tool, "create", path="/memories/a", file_text="one two")
    read = tool._files._read

    async def changed_meanwhile(key: str) -> Any:
        tool._files._read = read
        found = await read(key)
        memory.items.append("home", "claude", "workspace", "memories/a", " three")
        return found

    tool._files._read = changed_meanwhile
    answer(tool, "str_replace", path="/memories/a", old_str="one", new_str="1")
    assert memory.items.get("home", "claude", "workspace", "memories/a").item.value == "1 two three"


def test_what_claude_notes_is_found_by_a_search(memory: sync.Memory) -> None:
    answer(tool_of(memory), "create", path="/memories/ann.md", file_text="Ann is allergic to nuts.")
    (hit,) = memory.workspace.search("home", "claude", "what must Ann not eat?", limit=1).hits
    assert (hit.key, hit.text) == ("memories/ann.md", "Ann is allergic to nuts.")


def test_all_is_cleared(memory: sync.Memory) -> None:
    tool = tool_of(memory)
    answer(tool, "create", path="/memories/a", file_text="")
    tool.clear_all_memory()
    assert memory.items.list("home", "claude").items == ()


def test_the_client_runs_the_tool(memory: sync.Memory) -> None:
    stub = Stub(
        use(1, command="create", path="/memories/ann.md", file_text="likes plums"), message(text_block("Noted."))
    )
    with stub.served() as url, Anthropic(api_key="none", base_url=url) as client:
        runner = client.beta.messages.tool_runner(
            model="claude",
            max_tokens=100,
            messages=[{"role": "user", "content": "I like plums."}],
            tools=[tool_of(memory)],
        )
        assert runner.until_done().content[0].text == "Noted."
    assert stub.asked[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    (result,) = stub.asked[1]["messages"][-1]["content"]
    assert result["content"] == "File created successfully at: /memories/ann.md"


def test_the_asynchronous_client_runs_the_tool(tmp_path: Path) -> None:
    stub = Stub(
        use(1, command="create", path="/memories/a", file_text="x"),
        use(2, command="view", path="/memories/a"),
        message(text_block("Done.")),
    )

    async def work(url: str) -> None:
        async with Memory.open(tmp_path) as memory, AsyncAnthropic(api_key="none", base_url=url) as client:
            runner = client.beta.messages.tool_runner(
                model="claude",
                max_tokens=100,
                messages=[{"role": "user", "content": "Note x."}],
                tools=[AsyncRecallogMemoryTool(memory, space="home", agent="claude")],
            )
            await runner.until_done()

    with stub.served() as url:
        asyncio.run(work(url))
    (result,) = stub.asked[2]["messages"][-1]["content"]
    assert result["content"].endswith("     1\tx")


PROGRAM = """
import os, signal, sys
from recallog.sync import Memory
from recallog_anthropic import RecallogMemoryTool

folder, text, kill = sys.argv[1:]
memory = Memory.open(folder)
tool = RecallogMemoryTool(memory, space="home", agent="claude")
tool.call({"command": "create", "path": f"/memories/{text}", "file_text": text})
if kill == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
print(tool.call({"command": "view", "path": "/memories"}))
memory.close()
"""


def test_the_tool_has_the_files_of_a_killed_process(tmp_path: Path) -> None:
    def run(text: str, how: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), text, how]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    assert run("one", "kill").returncode == -signal.SIGKILL
    done = run("two", "end")
    assert done.stdout.splitlines()[2:] == ["3B\t/memories/one", "3B\t/memories/two"], done.stderr
