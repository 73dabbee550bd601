"""Valid inputs of each kind, which are then damaged."""

import json
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from recallog import Memory
from recallog.index import messages
from recallog.operations.facade import all_operations
from recallog_schemas import codec
from support import real_data
from support.events import MOMENT
from support.random_events import bytes_of_an_event, bytes_of_document_000, random_answer, random_event

OLD_LEDGER = Path(__file__).parents[1] / "golden" / "document_000.jsonl"

QUESTIONS = (
    "who owes the miller?", "What did the Baker say yesterday, at 5 pm on 3 March 2026?", "bread",
    "the day before last Monday", "/etc/nginx/nginx.conf --dry-run ERR_42 v1.2.3", "¿Quién compró pan?", "面包在哪里？",
    "昨日パンを食べましたか", "كم الخبز؟", "in the last two weeks I was in the mill; what did we do there?",
    'did she say "never again"?', "D1:3", "baker@mill.example",
)  # fmt: skip

EVENT = {"space": "village", "agent": "baker", "kind": "agent.spoke", "payload": {"text": "Bread!"}, "id": "e-new"}

TIMES = (
    "2026-03-01T12:00:00Z",
    "2026-03-01T13:00:00.123456+01:00",
    "20260301T120000Z",
    "2026-W09-7T12:00Z",
    "0:41",
    "41",
)

URLS = (
    "kafka://broker:9092/recallog.events?partitions=32&replication=3&min_insync=2&client_id=x",
    "kafka://user:p%40ss@a:1,b:2,[::1]:3/t?security_protocol=SASL_SSL&sasl_mechanism=SCRAM-SHA-512&timeout_seconds=5",
    "redis://user:secret@127.0.0.1:6379/0?socket_timeout=5", "rediss://[::1]:6380/1", "unix:///tmp/redis.sock?db=1",
    "http://127.0.0.1:6333", "https://qdrant.example:443/prefix?timeout=5", "memory://", "embedded", "off", "minilm",
    "onnx:/models/x?query=query:+&passage=passage:+", "http://localhost:8080/v1#model",
    "sentence-transformers:all-MiniLM-L6-v2",
)  # fmt: skip


def events(rng: random.Random) -> list[bytes]:
    """Records: of this envelope and of the first one, with all fields and with few, and answers to triggers."""
    found = [codec.encode(random_event(rng)) for _ in range(24)]
    found += [
        random_answer(rng),
        bytes_of_an_event(rng),
        bytes_of_document_000(rng),
        *OLD_LEDGER.read_bytes().split(b"\n"),
    ]
    found.append(
        bytes_of_an_event(
            rng,
            kind="tool.used",
            subject="person:7",
            correlation_id="c-1",
            audience=["miller", "smith"],
            session="s-1",
            payload={
                "tool": "search",
                "ok": True,
                "arguments": {"q": "flour", "n": [1, 2.5, None]},
                "result": "x" * 900,
            },
        )
    )
    return [data for data in found if data]


def _call(name: str, arguments: str, number: int) -> dict[str, Any]:
    return {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


def chats() -> list[bytes]:
    """Files of the chat format, in the forms of several programs, and real ones where there is real data."""
    plain = [
        {"role": "system", "content": "You are a baker."},
        {"role": "user", "content": "Two loaves, please.", "timestamp": "2026-03-01T12:00:00Z", "name": "Ann"},
        {"role": "assistant", "content": None, "tool_calls": [_call("oven", '{"loaves": 2}', 1)]},
        {"role": "tool", "tool_call_id": "c1", "content": "error: the oven is cold"},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "Sorry."}, {"type": "image_url", "image_url": {"url": "x"}}],
        },
    ]
    blocks = [
        {"role": "user", "content": [{"type": "text", "text": "Bake."}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "oven", "input": {"n": 2}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "done", "is_error": False}],
        },
    ]
    agent = [
        {"role": "user", "content": "Fix it.", "agent": "main", "message_type": "observation"},
        {"role": "assistant", "content": "Look.\n```\nls\n```", "thought": "Look.", "action": "ls\n", "agent": "main"},
        {"role": "user", "content": "a.py\n[exit code: 1]", "agent": "main", "message_type": "observation"},
    ]
    tree = {
        "a": {"id": "a", "message": None, "parent": None, "children": ["b"]}, "b": {"id": "b", "parent": "a",
        "children": [], "message": {"author": {"role": "user"}, "create_time": 1767225600.5,
        "content": {"content_type": "text", "parts": ["Hi"]}}},
    }  # fmt: skip
    documents: list[Any] = [
        plain, {"messages": plain, "id": "chat-1", "user_id": "ann"}, [{"id": 7, "messages": blocks}, {"id": 8,
        "messages": plain}], {"history": agent, "info": {}}, [{"title": "Bread", "mapping": tree,
        "create_time": 1767225600, "current_node": "b"}], {"conversations": [{"from": "human", "value": "Hi"},
        {"from": "gpt", "value": "Hello"}]}, [{"uuid": "u", "name": "n", "chat_messages": [{"sender": "human",
        "text": "Hi", "created_at": MOMENT}]}],
    ]  # fmt: skip
    documents += [[each] for each in _real("taubench-airline.json")]
    one_a_line = b"\n".join(json.dumps({"messages": each}).encode() for each in (plain, blocks))
    messages_a_line = b"\n".join(json.dumps(each).encode() for each in plain)
    return [*(json.dumps(each).encode() for each in documents), one_a_line, messages_a_line]


def locomo() -> list[bytes]:
    """A file of the LoCoMo format, and the beginning of a real one where there is real data."""
    turns = [
        {"speaker": "Ann", "dia_id": "D1:1", "text": "Hello!"},
        {
            "speaker": "Bob",
            "dia_id": "D1:2",
            "text": "Hi.",
            "img_url": ["http://x"],
            "blip_caption": "a loaf",
            "query": "bread",
        },
    ]
    conversation = {
        "speaker_a": "Ann", "speaker_b": "Bob", "session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_2": turns[:1], "session_2_date_time": "10:00 am on 9 May, 2023",
    }  # fmt: skip
    question = {"question": "Who said hello?", "answer": "Ann", "evidence": ["D1:1"], "category": 1}
    found = [json.dumps([{"sample_id": "conv-1", "conversation": conversation, "qa": [question]}]).encode()]
    for sample in _real("locomo-tuning.json"):
        given = sample["conversation"]
        begins = {key: value[:9] if isinstance(value, list) else value for key, value in list(given.items())[:8]}
        found.append(json.dumps([{"sample_id": sample["sample_id"], "conversation": begins}]).encode())
    return found


@cache
def _real(name: str) -> Sequence[Any]:
    """The first two items of a file of real data; none without real data."""
    folder = real_data.folder()
    return () if folder is None else json.loads((folder / name).read_bytes())[:2]


def lines(rng: random.Random) -> list[bytes]:
    """Files of the JSONL format: exports, and events as producers write them."""
    bare = [b'{"space":"village","agent":"baker","kind":"agent.spoke","payload":{"text":"Bread!"}}'] * 3
    return [
        b"\n".join(rng.sample(events(rng), 6)),
        b"\n".join([*bare, *rng.sample(events(rng), 2)]) + b"\n",
        OLD_LEDGER.read_bytes(),
    ]


def index_messages() -> list[bytes]:
    """Handshakes, calls and frames of the index protocol, each with its length."""
    arguments = json.dumps(
        {"space": "village", "agent": "baker", "query": "bread", "as_of": {"partition": 0, "offset": 1}}
    )
    sent = (
        messages.Handshake("t" * 32), messages.Health(), messages.Perform("recall", arguments.encode(), 2_000),
        messages.StillWorking(), messages.Progressed(3, 9), messages.Result(b'{"items":[]}'), messages.Gone(),
        messages.Failed("InvalidArgument", "space: no name", {"path": "space", "rule": "x"}),
        messages.Failed("ModelFailed", "x", {"reason": "x", "retryable": True, "retry_after_seconds": None}),
    )  # fmt: skip
    return [messages.frame_message(message) for message in sent]


def settings_lines() -> list[bytes]:
    """Lines of settings, as a client starts the index service with them."""
    fields = {
        "home": "/tmp/nowhere", "embedder": "minilm", "embedder_api_key": None, "index_token_vectors": True,
        "index_idle_seconds": 300.0, "lock_wait_seconds": 30.0, "deadline_seconds": 2.0,
    }  # fmt: skip
    return [msgspec.json.encode(fields) + b"\n"]


ARGUMENTS: dict[str, Sequence[Any]] = {
    "space": ["village", "city"], "agent": ["baker", "miller"], "reader": ["smith"], "author": ["miller"],
    "query": QUESTIONS, "scene": ["The mill.", *QUESTIONS], "extra": ["x"], "step": ["x"],
    "components": [["A: x", {"heading": "B", "text": "y"}]], "output_format": ["JSON"], "ids": [["e-1",
    "e-2"]], "event_id": ["e-1", "e-17"], "event": [EVENT], "events": [[EVENT, EVENT]], "window": [3, "3"],
    "limit": [5], "top_k": [5], "entries_before": [2, "3"], "entries_after": [2], "budget_tokens": [500, 40],
    "turn": [3], "partition": [0], "before": ["0:9", {"partition": 0, "offset": 9}], "after": ["0:1", "5"],
    "as_of": ["0:3", *TIMES], "since": TIMES[:1], "until": TIMES[:2], "now": TIMES[:1], "position": ["0:0"],
    "session": ["morning"], "kinds": [["agent.spoke", "shop.opened"]], "min_similarity": [0.3, "0.5"],
    "channels": [["keyword", "structure"]], "fusion": ["rrf", "weighted"], "wait_index": ["true", False],
    "namespace": ["notes", "session/s-1", ["notes", "a/b"], "working"], "key": ["miller", "todo"], "to": ["smith"],
    "value": ["x", {"owes": [9, None]}, ["one"], 7], "text": ["x", '{"Goals": "x"}', "{}"], "base": [0, "2", "0" * 64],
    "label": ["Goals", "session_facts"], "content": ["x", ["one"]], "labels": [["Goals"]], "keys": [["todo"]],
    "json_text": [True], "newest_first": [True], "cursor": ["notes//00000000000000000001", "notes/a"],
    "skip_reflection_loops": [True], "what": ["views", "index"], "accept": [True], "model": ["minilm"],
}  # fmt: skip
"""Values of the parameters of operations, by name."""


def arguments(rng: random.Random) -> list[bytes]:
    """Calls of operations, as JSON objects: {"recall": {"space": …}}, most of them with all that is required."""
    found = []
    for name, operation in all_operations(Memory).items():
        known = {key: each for key, each in operation.parameters.items() if key in ARGUMENTS}
        given = {
            key: rng.choice(ARGUMENTS[key])
            for key, each in known.items()
            if each.default is each.empty or rng.random() < 0.4
        }
        found.append(json.dumps({name: given}).encode())
    return found
