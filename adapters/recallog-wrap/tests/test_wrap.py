"""Clients of OpenAI and Anthropic with a memory."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from model_stub import (
    ANTHROPIC_END,
    DONE,
    WAIT,
    Stub,
    anthropic_events,
    chunk,
    completion,
    event,
    message,
    output,
    response,
)
from openai import AsyncOpenAI, InternalServerError, OpenAI

import recallog
from recallog import InvalidArgument
from recallog.sync import Memory
from recallog_wrap.remembering import HEADING

OF = {"space": "home", "agent": "assistant"}
HELLO = {"role": "user", "content": "I am Ann."}
NOTED = {"role": "assistant", "content": "Noted."}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path) as opened:
        yield opened


def wrapped(client: Any, memory: Memory, **options: Any) -> Any:
    return recallog.wrap(client, **OF, **{"session": "monday", "memory": memory, "recalled": 0} | options)


def openai(url: str) -> OpenAI:
    return OpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0)


def async_openai(url: str) -> AsyncOpenAI:
    return AsyncOpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0)


def anthropic(url: str) -> Anthropic:
    return Anthropic(api_key="none", base_url=url, max_retries=0)


def stored(memory: Memory, session: str = "monday") -> list[Any]:
    return list(memory.conversation.messages("home", "assistant", session).messages)


def chat(client: Any, *messages: Any, **options: Any) -> Any:
    return client.chat.completions.create(model="m", messages=list(messages), **options)


def test_a_completion_is_stored(memory: Memory) -> None:
    stub = Stub(completion("Noted."))
    with stub.served() as url:
        assert chat(wrapped(openai(url), memory), HELLO).choices[0].message.content == "Noted."
    assert stored(memory) == [HELLO, NOTED]


def test_a_history_that_is_passed_again_is_stored_once(memory: Memory) -> None:
    stub = Stub(completion("Noted."), completion("Ann."))
    with stub.served() as url:
        client = wrapped(openai(url), memory)
        first = chat(client, HELLO).choices[0].message
        chat(client, {"role": "system", "content": "Be kind."}, HELLO, first, {"role": "user", "content": "Who am I?"})
    assert [each["content"] for each in stored(memory)] == ["I am Ann.", "Noted.", "Who am I?", "Ann."]


def test_a_stream_of_a_completion_is_stored(memory: Memory) -> None:
    stub = Stub([chunk(role="assistant"), chunk(content="No"), chunk(content="ted."), DONE])
    with stub.served() as url:
        parts = list(chat(wrapped(openai(url), memory), HELLO, stream=True))
    assert (len(parts), stored(memory)) == (3, [HELLO, NOTED])


def test_calls_of_tools_in_a_stream_are_stored(memory: Memory) -> None:
    calls = [{"index": 0, "id": "c-1", "type": "function", "function": {"name": "weather", "arguments": ""}}]
    more = [{"index": 0, "function": {"arguments": '{"city": "Oslo"}'}}]
    stub = Stub([chunk(role="assistant", tool_calls=calls), chunk(tool_calls=more), DONE], completion("It hails."))
    with stub.served() as url:
        client = wrapped(openai(url), memory)
        list(chat(client, HELLO, stream=True))
        call = {"id": "c-1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
        called = {"role": "assistant", "tool_calls": [call]}
        chat(client, HELLO, called, {"role": "tool", "tool_call_id": "c-1", "content": "A hailstorm."})
    (hit, *_) = memory.recall("home", "assistant", "hailstorm").hits
    assert hit.text == "weather(city=Oslo): A hailstorm."


def test_a_stream_that_is_closed_early_is_stored_as_far_as_it_arrived(memory: Memory) -> None:
    stub = Stub([chunk(role="assistant"), chunk(content="No"), WAIT])
    with stub.served() as url:
        with chat(wrapped(openai(url), memory), HELLO, stream=True) as stream:
            next(each for each in stream if each.choices[0].delta.content)
        assert stored(memory) == [HELLO, {"role": "assistant", "content": "No"}]


def test_a_task_that_is_cancelled_has_stored_what_arrived(memory: Memory) -> None:
    stub = Stub([chunk(role="assistant"), chunk(content="No"), WAIT])

    async def read(client: Any, has_arrived: asyncio.Event) -> None:
        async with await chat(client, HELLO, stream=True) as stream:
            async for each in stream:
                if each.choices[0].delta.content:
                    has_arrived.set()

    async def work(url: str) -> None:
        has_arrived = asyncio.Event()
        task = asyncio.create_task(read(wrapped(async_openai(url), memory), has_arrived))
        await has_arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with stub.served() as url:
        asyncio.run(work(url))
    assert stored(memory) == [HELLO, {"role": "assistant", "content": "No"}]


def test_the_asynchronous_client_remembers(memory: Memory) -> None:
    stub = Stub(completion("Noted."), [chunk(content="Ann."), DONE])

    async def work(url: str) -> None:
        client = wrapped(async_openai(url), memory)
        await chat(client, HELLO)
        stream = await chat(client, HELLO, NOTED, {"role": "user", "content": "Who am I?"}, stream=True)
        assert [each.choices[0].delta.content async for each in stream] == ["Ann."]

    with stub.served() as url:
        asyncio.run(work(url))
    assert [each["content"] for each in stored(memory)] == ["I am Ann.", "Noted.", "Who am I?", "Ann."]


def test_a_response_is_stored(memory: Memory) -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "c-1", "name": "weather", "arguments": '{"city": "Oslo"}'}
    stub = Stub(response(call), response(output("It hails.")))
    with stub.served() as url:
        client = wrapped(openai(url), memory)
        first = client.responses.create(model="m", input="Weather?")
        result = {"type": "function_call_output", "call_id": "c-1", "output": "A hailstorm."}
        asked = [{"role": "user", "content": "Weather?"}, *first.output, result]
        assert client.responses.create(model="m", input=asked).output_text == "It hails."
    assert [each.get("type", each.get("role")) for each in stored(memory)] == [
        "user",
        "function_call",
        "function_call_output",
        "assistant",
    ]


def test_a_stream_of_a_response_is_stored_as_far_as_it_arrived(memory: Memory) -> None:
    begun = output("") | {"content": [], "status": "in_progress"}
    place = {"output_index": 0, "item_id": "msg_1", "content_index": 0, "logprobs": []}
    stub = Stub(
        [
            event({"type": "response.output_item.added", "output_index": 0, "item": begun, "sequence_number": 1}),
            event({"type": "response.output_text.delta", "delta": "No", "sequence_number": 2, **place}),
            WAIT,
        ]
    )
    with stub.served() as url:
        with wrapped(openai(url), memory).responses.create(model="m", input="I am Ann.", stream=True) as stream:
            next(each for each in stream if each.type == "response.output_text.delta")
        assert stored(memory) == [HELLO, {"role": "assistant", "content": "No"}]


def test_a_message_of_anthropic_is_stored(memory: Memory) -> None:
    stub = Stub(message({"type": "text", "text": "Noted."}))
    with stub.served() as url:
        wrapped(anthropic(url), memory).messages.create(model="claude", max_tokens=9, messages=[HELLO])
    assert stored(memory) == [HELLO, NOTED]


def test_a_stream_of_anthropic_is_stored(memory: Memory) -> None:
    stub = Stub([*anthropic_events("No", "ted."), *ANTHROPIC_END])
    with stub.served() as url:
        client = wrapped(anthropic(url), memory)
        with client.messages.stream(model="claude", max_tokens=9, messages=[HELLO]) as stream:
            assert "".join(stream.text_stream) == "Noted."
    assert stored(memory) == [HELLO, NOTED]


def test_a_stream_of_anthropic_that_is_given_up_is_stored_as_far_as_it_arrived(memory: Memory) -> None:
    stub = Stub([*anthropic_events("No"), WAIT])

    async def work(url: str) -> None:
        client = wrapped(AsyncAnthropic(api_key="none", base_url=url), memory)
        async with client.messages.stream(model="claude", max_tokens=9, messages=[HELLO]) as stream:
            async for _ in stream.text_stream:
                break

    with stub.served() as url:
        asyncio.run(work(url))
        assert stored(memory) == [HELLO, {"role": "assistant", "content": "No"}]


def test_what_was_recalled_precedes_the_question_and_is_not_stored(memory: Memory) -> None:
    memory.conversation.add("home", "assistant", "sunday", {"role": "user", "content": "I am allergic to nuts."})
    memory.recall("home", "assistant", "nuts", wait_index=True)
    asked = {"role": "user", "content": "Which cake has no nuts?"}
    stub = Stub(completion("Plum cake."))
    with stub.served() as url:
        chat(wrapped(openai(url), memory, recalled=5, recall_seconds=60), asked)
    sent = stub.asked[0]["messages"][0]["content"]
    assert sent.startswith(HEADING)
    assert sent.endswith("user] I am allergic to nuts.\n\nWhich cake has no nuts?")
    assert stored(memory)[0] == asked


@pytest.mark.parametrize("name", ["responses", "anthropic"])
def test_what_was_recalled_precedes_the_question_in_each_api(memory: Memory, name: str) -> None:
    memory.conversation.add("home", "assistant", "sunday", {"role": "user", "content": "I am allergic to nuts."})
    memory.recall("home", "assistant", "nuts", wait_index=True)
    question = {"role": "user", "content": [{"type": "input_text" if name == "responses" else "text", "text": "Nuts?"}]}
    stub = Stub(response(output("No.")) if name == "responses" else message({"type": "text", "text": "No."}))
    with stub.served() as url:
        options = {"recalled": 5, "recall_seconds": 60}
        if name == "responses":
            wrapped(openai(url), memory, **options).responses.create(model="m", input=[question])
        else:
            wrapped(anthropic(url), memory, **options).messages.create(model="c", max_tokens=9, messages=[question])
    (sent,) = stub.asked[0]["input" if name == "responses" else "messages"]
    assert [part["text"].startswith(HEADING) for part in sent["content"]] == [True, False]


def test_memories_that_come_too_late_are_left_out(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    stub = Stub(completion("Noted."))
    with stub.served() as url:
        chat(wrapped(openai(url), memory, recalled=5, recall_seconds=0), HELLO)
    assert (stub.asked[0]["messages"], "nothing was recalled" in caplog.text) == ([HELLO], True)


def test_an_error_of_the_api_stores_nothing(memory: Memory) -> None:
    with Stub(500).served() as url, pytest.raises(InternalServerError):
        chat(wrapped(openai(url), memory), HELLO)
    assert stored(memory) == []


def test_a_memory_that_fails_costs_no_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    memory = Memory.open(tmp_path)
    memory.close()
    with Stub(completion("Noted.")).served() as url:
        assert chat(wrapped(openai(url), memory, recalled=5), HELLO).choices[0].message.content == "Noted."
    assert "was not stored" in caplog.text


def test_a_function_names_the_session_of_each_request(memory: Memory) -> None:
    names = iter(["monday", "friday"])
    with Stub(completion("Noted."), completion("Noted.")).served() as url:
        client = wrapped(openai(url), memory, session=lambda: next(names))
        chat(client, HELLO)
        chat(client, HELLO)
    assert stored(memory, "monday") == stored(memory, "friday") == [HELLO, NOTED]


def test_the_client_that_was_wrapped_remembers_nothing(memory: Memory) -> None:
    with Stub(completion("Noted.")).served() as url:
        client = openai(url)
        wrapped(client, memory)
        chat(client, HELLO)
    assert stored(memory) == []


def test_what_is_not_a_client_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidArgument, match="str is not a client of OpenAI or Anthropic"):
        wrapped("https://example.com", memory)


PROGRAM = """
import os, signal, sys
import recallog
from openai import OpenAI

url, folder, text, kill = sys.argv[1:]
client = OpenAI(api_key="none", base_url=url)
client = recallog.wrap(client, space="home", agent="assistant", home=folder, recall_seconds=60)
client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
if kill == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_client_remembers_what_a_killed_process_was_told(tmp_path: Path) -> None:
    stub = Stub(completion("Noted."), completion("Plum cake."))

    def run(url: str, text: str, how: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", PROGRAM, f"{url}/v1", str(tmp_path), text, how]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    with stub.served() as url:
        assert run(url, "I am allergic to nuts.", "kill").returncode == -signal.SIGKILL
        done = run(url, "Which cake has no nuts?", "end")
    assert done.returncode == 0, done.stderr
    assert "I am allergic to nuts." in stub.asked[1]["messages"][0]["content"]
