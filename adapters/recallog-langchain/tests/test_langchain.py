"""A retriever and a chat history of LangChain in a memory."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables.history import RunnableWithMessageHistory

from recallog.sync import Memory
from recallog_langchain import RecallogChatMessageHistory, RecallogRetriever

CALL = AIMessage(
    "", id="run-1", tool_calls=[{"name": "weather", "args": {"city": "Oslo"}, "id": "c-1", "type": "tool_call"}]
)
MESSAGES: list[BaseMessage] = [
    SystemMessage("Be kind."),
    HumanMessage("Is it warm?", name="ann", id="h-1", additional_kwargs={"x": 1}),
    HumanMessage(
        [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}},
        ]
    ),
    CALL,
    ToolMessage("A hailstorm.", tool_call_id="c-1", artifact={"raw": [1]}),
    ToolMessage("Out of order.", tool_call_id="c-1", status="error"),
    AIMessage(
        "No.",
        response_metadata={"model": "m"},
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    ),
    ChatMessage("Hm.", role="narrator"),
]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path) as opened:
        yield opened


def history_of(memory: Memory, session: str = "monday") -> RecallogChatMessageHistory:
    return RecallogChatMessageHistory(session, memory, space="home", agent="assistant")


def retriever_of(memory: Memory, **more: object) -> RecallogRetriever:
    of = {"space": "home", "agent": "assistant", "options": {"wait_index": True}}
    return RecallogRetriever(memory=memory, **of, **more)


def test_messages_come_back_as_they_were_added(memory: Memory) -> None:
    history_of(memory).add_messages(MESSAGES)
    assert history_of(memory).messages == MESSAGES


def test_the_same_message_twice_is_two_messages(memory: Memory) -> None:
    history = history_of(memory)
    history.add_messages([MESSAGES[1]])
    history.add_messages([MESSAGES[1]])
    assert history.messages == [MESSAGES[1], MESSAGES[1]]


def test_a_chunk_becomes_a_message(memory: Memory) -> None:
    history_of(memory).add_messages([AIMessageChunk("Hello")])
    assert [(type(each), each.content) for each in history_of(memory).messages] == [(AIMessage, "Hello")]


def test_what_another_program_has_added_is_a_message_too(memory: Memory) -> None:
    memory.conversation.add("home", "assistant", "monday", {"role": "user", "content": "Hello"})
    assert history_of(memory).messages == [HumanMessage("Hello")]


def test_a_cleared_history_is_empty(memory: Memory) -> None:
    history = history_of(memory)
    history.add_messages(MESSAGES)
    history.clear()
    assert history.messages == []


def test_it_is_used_asynchronously(memory: Memory) -> None:
    async def work() -> list[BaseMessage]:
        history = history_of(memory)
        await history.aadd_messages(MESSAGES[:1])
        return await history.aget_messages()

    assert asyncio.run(work()) == MESSAGES[:1]


def test_a_chain_has_its_history(memory: Memory) -> None:
    model = FakeListChatModel(responses=["Hello Ann.", "You are Ann."])
    chain = RunnableWithMessageHistory(model, lambda session: history_of(memory, session))
    for text in ("I am Ann.", "Who am I?"):
        chain.invoke([HumanMessage(text)], {"configurable": {"session_id": "monday"}})
    assert [each.content for each in history_of(memory).messages] == [
        "I am Ann.",
        "Hello Ann.",
        "Who am I?",
        "You are Ann.",
    ]


def test_the_result_of_a_tool_is_found(memory: Memory) -> None:
    history_of(memory).add_messages(MESSAGES[:5])
    (found, *_) = retriever_of(memory).invoke("hailstorm")
    assert found.page_content == "«weather(city=Oslo): A hailstorm.»"


def test_a_document_says_where_it_is_from(memory: Memory) -> None:
    history_of(memory).add_messages([HumanMessage("I am allergic to nuts.", name="ann")])
    (found,) = retriever_of(memory, top_k=1).invoke("What is Ann allergic to?")
    assert (found.page_content, found.metadata["author"], found.metadata["session"]) == (
        "I am allergic to nuts.",
        "ann",
        "monday",
    )


def test_what_has_nothing_to_do_with_the_question_is_left_out(memory: Memory) -> None:
    history_of(memory).add_messages([HumanMessage("The bus leaves at nine.")])
    question = "Who painted the ceiling?"
    assert (retriever_of(memory).invoke(question), len(retriever_of(memory, weak=True).invoke(question))) == ([], 1)


def test_a_retriever_is_used_asynchronously(memory: Memory) -> None:
    history_of(memory).add_messages([HumanMessage("I am allergic to nuts.")])
    assert [each.page_content for each in asyncio.run(retriever_of(memory).ainvoke("nuts"))] == [
        "I am allergic to nuts."
    ]


PROGRAM = """
import os, signal, sys
from langchain_core.messages import HumanMessage
from recallog.sync import Memory
from recallog_langchain import RecallogChatMessageHistory

folder, text, kill = sys.argv[1:]
memory = Memory.open(folder)
history = RecallogChatMessageHistory("monday", memory, space="home", agent="assistant")
history.add_messages([HumanMessage(text)])
if kill == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
print([each.content for each in history.messages])
memory.close()
"""


def test_a_history_has_what_a_killed_process_has_added(tmp_path: Path) -> None:
    def run(text: str, how: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), text, how]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    assert run("I am Ann.", "kill").returncode == -signal.SIGKILL
    done = run("Who am I?", "end")
    assert done.stdout == "['I am Ann.', 'Who am I?']\n", done.stderr
