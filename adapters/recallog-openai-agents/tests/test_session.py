"""A session gives the same answers as the SDK's `SQLiteSession`."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from agents.memory import Session
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from scripted import ScriptedModel, call, said

from agents import Agent, Runner, SessionSettings, SQLiteSession, function_tool
from recallog import Memory
from recallog_openai_agents import RecallogSession

Result = TypeVar("Result")

ITEMS = st.sampled_from(
    [
        {"role": "user", "content": "Hello"},
        {"role": "user", "content": [{"type": "input_text", "text": "What is this?"}]},
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "status": "completed",
            "content": [{"type": "output_text", "text": "A cat.", "annotations": []}],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "c_1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c_1", "output": "a cat"},
        {"type": "function_call_output", "call_id": "c_2", "output": [{"type": "input_text", "text": "a dog"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"},
        {"type": "item_reference", "id": "fc_1"},
    ]
)


class LikeSQLiteSession(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.memory = Memory.in_memory()
        self.ours = RecallogSession("monday", self.memory, space="home", agent="assistant")
        self.theirs = SQLiteSession("monday")

    def teardown(self) -> None:
        self.loop.run_until_complete(self.memory.close())
        self.theirs.close()
        self.loop.close()

    def both(self, call: Callable[[Session], Coroutine[Any, Any, Any]]) -> None:
        assert self.loop.run_until_complete(call(self.ours)) == self.loop.run_until_complete(call(self.theirs))

    @rule(items=st.lists(ITEMS, max_size=4))
    def add(self, items: list[Any]) -> None:
        self.both(lambda session: session.add_items(items))

    @rule()
    def pop(self) -> None:
        self.both(lambda session: session.pop_item())

    @rule()
    def pop_and_add_again(self) -> None:
        async def rewound(session: Session) -> None:
            if (item := await session.pop_item()) is not None:
                await session.add_items([item])

        self.both(rewound)

    @rule()
    def clear(self) -> None:
        self.both(lambda session: session.clear_session())

    @rule(limit=st.integers(0, 4))
    def newest(self, limit: int) -> None:
        self.both(lambda session: session.get_items(limit))

    @invariant()
    def has_the_same_items(self) -> None:
        self.both(lambda session: session.get_items())


TestLikeSQLiteSession = LikeSQLiteSession.TestCase
TestLikeSQLiteSession.settings = settings(
    max_examples=40, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)


def test_it_is_a_session_of_the_sdk() -> None:
    assert isinstance(RecallogSession("monday", Memory.in_memory(), space="home", agent="assistant"), Session)


def test_an_agent_has_its_history_in_the_next_run(tmp_path: Path) -> None:
    model = ScriptedModel([said("Hello Ann."), said("You are Ann.")])

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            session = RecallogSession("monday", memory, space="home", agent="assistant")
            agent = Agent(name="assistant", model=model)
            await Runner.run(agent, "I am Ann.", session=session)
            await Runner.run(agent, "Who am I?", session=session)

    asyncio.run(work())
    assert [each.get("content") for each in model.asked[1] if each["role"] == "user"] == ["I am Ann.", "Who am I?"]


def test_the_result_of_a_tool_is_recalled_in_another_session(tmp_path: Path) -> None:
    @function_tool
    def weather(city: str) -> str:
        """The weather."""
        return f"A hailstorm over {city}."

    model = ScriptedModel([call("weather", '{"city": "Oslo"}'), said("It hails.")])

    async def work() -> str:
        async with Memory.open(tmp_path) as memory:
            session = RecallogSession("monday", memory, space="home", agent="assistant")
            await Runner.run(Agent(name="assistant", model=model, tools=[weather]), "Weather?", session=session)
            return (await memory.recall("home", "assistant", "hailstorm")).hits[0].text

    assert asyncio.run(work()) == "weather(city=Oslo): A hailstorm over Oslo."


def test_settings_limit_the_history(tmp_path: Path) -> None:
    async def work() -> list[Any]:
        async with Memory.open(tmp_path) as memory:
            of = {"space": "home", "agent": "assistant", "session_settings": SessionSettings(limit=1)}
            session = RecallogSession("monday", memory, **of)
            await session.add_items([{"role": "user", "content": "one"}, {"role": "user", "content": "two"}])
            return await session.get_items()

    assert asyncio.run(work()) == [{"role": "user", "content": "two"}]


PROGRAM = """
import asyncio, os, signal, sys
sys.path.insert(0, sys.argv[1])
from agents import Agent, Runner
from recallog import Memory
from recallog_openai_agents import RecallogSession
from scripted import ScriptedModel, said

async def main(folder, text, kill):
    async with Memory.open(folder) as memory:
        session = RecallogSession("monday", memory, space="home", agent="assistant")
        model = ScriptedModel([said("Noted.")])
        await Runner.run(Agent(name="assistant", model=model), text, session=session)
        if kill == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        print([each["content"] for each in model.asked[0] if each["role"] == "user"])

asyncio.run(main(*sys.argv[2:]))
"""


def test_an_agent_remembers_what_a_killed_process_was_told(tmp_path: Path) -> None:
    def run(text: str, how: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", PROGRAM, str(Path(__file__).parent), str(tmp_path), text, how]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    assert run("I am Ann.", "kill").returncode == -signal.SIGKILL
    done = run("Who am I?", "end")
    assert done.stdout == "['I am Ann.', 'Who am I?']\n", done.stderr
