"""What all formats share: each is recognised by its content, drops nothing, and raises only what it documents."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog import Memory
from recallog_schemas import codec
from recallog_schemas.errors import InvalidInput
from recallog_service.formats import Format, Options, Source, registry
from recallog_service.formats.elsewhere import ELSEWHERE
from recallog_service.ingest import Ingested, ingest
from support import campaigns
from support.installed import without_ours
from support.written_logs import FILES
from unit import (
    test_formats_chat,
    test_formats_claude_code,
    test_formats_codex,
    test_formats_langchain,
    test_formats_logs,
)

Document = dict[str, Any]


def in_lines(*records: object) -> bytes:
    return "".join(json.dumps(each) + "\n" for each in records).encode()


def whole(document: object, **layout: Any) -> bytes:
    return json.dumps(document, **layout).encode()


MESSAGES = [{"role": "user", "content": "Is it hot?"}, {"role": "assistant", "content": "No."}]
EVENT = {"space": "village", "agent": "baker", "kind": "agent.spoke", "payload": {"text": "Hello."}}
LOCOMO = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann", "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "Hello!"}],
    },
}  # fmt: skip
TRAJECTORY = {
    "environment": "swe_main",
    "history": [{"role": "user", "content": "Fix it.", "agent": "main"}],
    "trajectory": [{"action": "ls", "observation": "a.py", "response": "Look."}],
    "info": {"exit_status": "submitted"},
}
CLAUDE = {"uuid": "c-1", "name": "Bread", "chat_messages": [{"uuid": "m", "sender": "human", "text": "Hello."}]}
TEXT = "Alice: Hello.\nBob: Hi.\nand welcome.\nAlice: Bye.\nBob: Bye.\n"

SAMPLES: list[tuple[str, bytes]] = [
    ("jsonl", in_lines(EVENT, EVENT)),
    ("jsonl", in_lines({"run_id": "village", "actor": "baker", "kind": "agent.spoke", "payload": {"text": "Hi."}})),
    ("jsonl", b""),
    ("locomo", whole([LOCOMO])),
    ("claude-code", in_lines(*test_formats_claude_code.TALK)),
    ("claude-code", in_lines(test_formats_claude_code.SUMMARY)),
    ("codex", in_lines(*test_formats_codex.TALK)),
    ("chatgpt", whole([test_formats_chat.CHATGPT])),
    ("claude", whole([CLAUDE])),
    ("swe-agent", whole(TRAJECTORY, indent=2)),
    *(("langchain", whole(test_formats_langchain.talk(form), indent=1)) for form in test_formats_langchain.FORMS),
    ("langchain", whole({"thread_id": "t", "values": {"messages": test_formats_langchain.talk()}})),
    ("openai", in_lines(test_formats_logs.completion(1, MESSAGES[1]))),
    ("openai", in_lines({"request": {"messages": MESSAGES[:1]}, "response": None})),
    ("openai", in_lines({**test_formats_logs.response(1, test_formats_logs.said("No.")), "conversation": {"id": "c"}})),
    ("openai", in_lines({"custom_id": "1", "method": "POST", "url": "/v1/chat", "body": {"messages": MESSAGES}})),
    ("openai", whole(test_formats_logs.response(1, test_formats_logs.said("No.")), indent=2)),
    ("anthropic", in_lines(test_formats_logs.message(1, {"type": "text", "text": "No."}))),
    ("anthropic", in_lines({"custom_id": "1", "params": {"messages": MESSAGES}})),
    ("chat", whole([{"messages": MESSAGES}], indent=2)),
    ("chat", in_lines({"id": "a", "messages": MESSAGES}, {"id": "b", "messages": MESSAGES})),
    ("chat", whole({"id": "a", "traj": MESSAGES})),
    ("chat", whole(MESSAGES)),
    ("chat", in_lines(*MESSAGES)),
    ("chat", whole([MESSAGES])),
    ("chat", b"[]"),
    *((each.format, each.data) for each in FILES),
    ("recallog-hooks", in_lines({"recallog_agent": "cursor", "session": "s", "message": MESSAGES[0]})),
    ("text", TEXT.encode()),
    ("text", b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode()),
]
IDS = [f"{name}-{number}" for number, (name, _) in enumerate(SAMPLES)]


def source(data: bytes) -> Source:
    return Source(data.splitlines(keepends=True))


@pytest.mark.parametrize(("name", "data"), SAMPLES, ids=IDS)
def test_a_file_is_recognised_by_its_content(name: str, data: bytes) -> None:
    assert registry.format_of(source(data).sample).name == name


@pytest.mark.parametrize(("name", "data"), SAMPLES, ids=IDS)
def test_without_the_packages_of_other_formats_a_file_is_recognised_alike_or_refused(name: str, data: bytes) -> None:
    with without_ours():
        found = registry.recognise(source(data).sample)
    assert (found and found.name) == (None if name in ELSEWHERE else name)


def test_every_format_has_a_sample() -> None:
    assert {name for name, _ in SAMPLES} == set(registry.by_name())


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\0\0", b"hello\nworld\n", b"17", b"{}", b'{"a": 1}\n{"b": 2}\n', b"{\n"]
)
def test_another_file_is_not_recognised(data: bytes) -> None:
    assert registry.recognise(source(data).sample) is None


def test_an_event_is_recognised_without_waiting_for_the_second_line() -> None:
    def lines() -> Any:
        yield in_lines(EVENT)
        raise AssertionError("a pipe would wait here")

    assert registry.format_of(Source(lines()).sample).name == "jsonl"


@pytest.mark.parametrize(("name", "data"), SAMPLES, ids=IDS)
def test_reading_twice_gives_the_same_items_and_the_sample_takes_nothing_away(name: str, data: bytes) -> None:
    chosen = registry.find_format(name)
    sampled = source(data)
    assert sampled.sample == source(data).sample
    assert read(chosen, sampled) == read(chosen, source(data))


def read(format: Format, given: Source) -> list[object]:  # noqa: A002
    try:
        return [
            (item.number, item.event and codec.encode(item.event), item.error and str(item.error), item.left_out)
            for item in format.read(given, Options())
        ]
    except InvalidInput as error:
        return [str(error)]


async def ingested(memory: Memory, name: str, data: bytes) -> Ingested:
    reading = registry.find_format(name).read(source(data), Options())
    return await ingest(memory, reading, unit=reading.unit, batch=7, keep_going=True)


@pytest.mark.parametrize(
    ("name", "data"), [each for each in SAMPLES if each[1]], ids=[i for i, s in zip(IDS, SAMPLES, strict=True) if s[1]]
)
def test_ingesting_a_file_twice_adds_nothing(name: str, data: bytes) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            first, second = await ingested(memory, name, data), await ingested(memory, name, data)
            assert first.problems == ()
            assert (second.added, second.known) == (0, first.added + first.known)
            assert second.left_out == first.left_out

    asyncio.run(work())


# Files of any content.

TOKENS = ["Alice", "User", ": ", ":", "\n", "[", "] ", "2024-05-01 10:00", "99/99/99, 99:99", "\0", "张"]

KEYS = [
    "type", "text", "id", "name", "content", "input", "role", "messages", "message", "sessionId", "uuid", "timestamp",
    "isSidechain", "isMeta", "agentId", "cwd", "leafUuid", "payload", "call_id", "arguments", "output", "summary",
    "action", "status", "mapping", "current_node", "parent", "author", "parts", "content_type", "chat_messages",
    "sender", "history", "trajectory", "observation", "agent", "lc", "kwargs", "data", "tool_calls", "values",
    "channel_values", "config", "configurable", "thread_id", "checkpoint", "request", "response", "body", "choices",
    "object", "custom_id", "params", "result", "created", "metadata", "previous_response_id", "instructions",
    "preferred_output", "kind", "space", "conversation", "sample_id", "session_1", "session_1_date_time", "speaker",
    "additional_kwargs", "system", "reward", "error", "created_at", "user", "functionCall", "toolCalls", "from",
    "value", "from_id", "ts", "user_profile", "info", "item", "source", "llm_message", "observation", "cause", "args",
    "resourceSpans", "scopeSpans", "spans", "attributes", "key", "events", "run_type", "inputs", "outputs",
]  # fmt: skip
WORDS = [
    "user", "assistant", "system", "tool", "text", "tool_use", "tool_result", "thinking", "message", "reasoning",
    "function_call", "function_call_output", "web_search_call", "response_item", "session_meta", "event_msg", "human",
    "ai", "constructor", "HumanMessage", "chat.completion", "response", "succeeded", "2026-03-01T12:00:00Z", "a", "",
    "<command-name>/x</command-name>", "<system-reminder>", "{}", '{"messages": []}', "\ud800",
]  # fmt: skip

leaves = (
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.floats() | st.sampled_from(WORDS) | st.text(max_size=5)
)
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=25,
)


def altered(data: bytes, draw: Callable[[Any], Any]) -> bytes:
    """The sample with some values replaced by anything."""
    documents = [json.loads(line) for line in data.splitlines()] if data.count(b"\n") > 1 else [json.loads(data)]
    for _ in range(draw(st.integers(1, 3))):
        place: Any = documents
        while isinstance(place, dict | list) and place:
            key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if not isinstance(place[key], dict | list) or not place[key] or draw(st.integers(0, 3)) == 0:
                place[key] = draw(anything)
                break
            place = place[key]
    return in_lines(*documents)


JSON_SAMPLES = [
    (name, data)
    for name, data in SAMPLES
    if data and name not in ("text", "aider") and b'\n  "' not in data and b"\n " not in data
]


@settings(max_examples=campaigns.examples(150))
@given(st.data())
def test_no_content_raises_anything_but_a_documented_error(data: st.DataObject) -> None:
    name, sample = data.draw(st.sampled_from(JSON_SAMPLES))
    given_bytes = altered(sample, data.draw)
    for chosen in {registry.find_format(name), registry.recognise(source(given_bytes).sample)} - {None}:
        assert chosen is not None
        check(chosen, given_bytes)


@settings(max_examples=campaigns.examples(150))
@given(st.lists(anything, max_size=4), st.sampled_from([*registry.by_name().values()]))
def test_no_json_raises_anything_but_a_documented_error(documents: list[object], chosen: Format) -> None:
    check(chosen, in_lines(*documents))
    check(chosen, whole(documents))


@settings(max_examples=campaigns.examples(100))
@given(
    st.binary(max_size=200)
    | st.lists(st.sampled_from(TOKENS))
    .map("".join).map(str.encode),
    st.sampled_from([*registry.by_name().values()]),
)  # fmt: skip
def test_no_bytes_raise_anything_but_a_documented_error(given_bytes: bytes, chosen: Format) -> None:
    registry.recognise(source(given_bytes).sample)
    check(chosen, given_bytes)


@pytest.mark.parametrize("session", ["", "# aider chat started at 2026-13-45 99:00:00\n\n#### Bread, please\n\nYes.\n"])
def test_a_history_of_aider_without_sessions_or_with_an_impossible_time_is_read(session: str) -> None:
    check(registry.find_format("aider"), session.encode())


def check(chosen: Format, data: bytes) -> None:
    """Every item is an event, an error or a count; only documented errors are raised; reading again gives the same."""
    try:
        items = list(chosen.read(source(data), Options()))
    except InvalidInput:
        return
    ids = [(item.event.space, item.event.id) for item in items if item.event is not None]
    assert chosen.name == "jsonl" or len(set(ids)) == len(ids)
    for item in items:
        assert [item.event, item.error, item.left_out].count(None) == 2
        if item.event is not None:
            codec.encode(item.event)
    assert read(chosen, source(data)) == read(chosen, source(data))


# Nothing is dropped: every record of these formats is at least one item, or the result of one.

RESULTS = ("tool_result", "function_call_output")


@settings(max_examples=campaigns.examples(100))
@given(st.data(), st.sampled_from([s for s in SAMPLES if s[0] in ("claude-code", "codex")]))
def test_every_record_is_an_event_a_result_a_count_or_an_error(data: st.DataObject, sample: tuple[str, bytes]) -> None:
    name, content = sample
    lines = content.splitlines(keepends=True)
    chosen = data.draw(st.lists(st.sampled_from(lines), unique=True, min_size=1))
    kept = b"".join(line for line in lines if line in chosen)
    try:
        items = list(registry.find_format(name).read(source(kept), Options()))
    except InvalidInput:
        return
    results = sum(
        item.event.kind == "tool.used" and "result" in item.event.payload and "arguments" in item.event.payload
        for item in items
        if item.event is not None
    )
    assert len(items) + results >= len(chosen)
