"""A door that follows from the registry: HTTP in under 60 lines, without the name of any operation."""

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pytest
from pydantic import TypeAdapter

from recallog import Memory, Position, Settings, layout
from recallog.operations.operation import Scope, all_operations
from recallog_schemas import limits
from support import http_adapter
from support.events import event, one_loop, run
from support.http_adapter import HttpAdapter

OPERATIONS = all_operations(Memory)
READS = [name for name, each in OPERATIONS.items() if each.scope is Scope.READ]
FIELDS = {"space": "village", "agent": "baker", "kind": "agent.spoke", "payload": {"text": "Bread!"}}

ARGUMENTS: Mapping[str, Any] = {
    "space": "village",
    "agent": "baker",
    "reader": "miller",
    "author": "baker",
    "event_id": "e-7",
    "ids": ["e-7", "e-8"],
    "query": "Who owes the miller?",
    "kinds": ["agent.spoke", "agent.thought"],
    "channels": ["keyword", "temporal"],
    "types": ["fact", "lesson"],
    "min_importance": 0.1,
    "preset": "four_channel",
    "recency_weight": 0.3,
    "vector_weight": None,
    "session": "s-1",
    "whole": "true",
    "since": "2020-01-01T00:00:00+02:00",
    "until": "2999-01-01T00:00:00Z",
    "now": "2026-03-02T12:00:00Z",
    "after": "0:3",
    "as_of": "0:18",
    "before": "0:15",
    "partition": 0,
    "turn": 9,
    "window": 3,
    "top_k": 3,
    "limit": 3,
    "entries_before": 2,
    "entries_after": 500,
    "min_similarity": -0.5,
    "fusion": "rrf",
    "wait_index": "true",
    "scene": "The mill burns: what now?",
    "extra": "Be brief & kind.",
    "components": ["PRICES: Flour is 3 crowns."],
    "step": "Answer the miller.",
    "output_format": "One sentence.",
    "budget_tokens": 1000,
    "namespace": "notes",
    "key": "miller",
    "labels": ["Goals"],
    "keys": ["todo"],
    "newest_first": "true",
    "cursor": "notes//00000000000000000012",
    "entry_id": "e-1",
    "order": "newest",
    "type": "lesson",
    "min_confidence": 0.25,
    "tiers": ["fast", "slow"],
    "strategy": "fast_first",
    "mode": "fts",
    "text": "Sift the flour first.",
    "entity": "flour",
    "category": "baking",
    "source": "the miller",
    "topic": "bread",
    "importance": 0.7,
    "confidence": 0.8,
    "priority": "important",
    "red_line": "true",
    "metadata": '{"oven": 2}',
    "tier": "slow",
    "based_on": ["e-7"],
    "subject": "anna",
    "audience": ["miller"],
    "cost": 2,
}
"""A value for each name of a parameter. An operation with further names needs a line here and nothing else. None: it
does not go together with the others."""
OF_ONE: Mapping[str, Mapping[str, Any]] = {
    "long_term.list": {"cursor": "00000000000000000012"},
    "consensus.dissents": {"type": "risk_warning"},
}
"""Values of parameters of single operations."""


class Door:
    """An HTTP client of the adapter over a memory."""

    def __init__(self, memory: Memory) -> None:
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(HttpAdapter(memory)), base_url="http://recallog")

    def get(self, path: str, **arguments: Any) -> httpx.Response:
        return run(self._client.get(path, params=arguments))

    def post(self, path: str, **arguments: Any) -> httpx.Response:
        return run(self._client.post(path, json=arguments))

    def send(self, path: str, content: bytes) -> httpx.Response:
        return run(self._client.post(path, content=content))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("village")


@pytest.fixture(scope="module")
def memory(home: Path) -> Iterator[Memory]:
    """A memory in a folder whose ledger may be locked for a short time only, with events of three agents."""
    opened = Memory.open(Settings(home=home, lock_wait_seconds=0.05))
    agents = ("baker", "miller", "widow")
    events = [event(id=f"e-{n}", agent=agents[n % 3], session="s-1", audience=["baker"], turn=n) for n in range(20)]
    with one_loop():
        run(opened.publish_many(events))
        yield opened
        run(opened.close())


@pytest.fixture(scope="module")
def door(memory: Memory) -> Door:
    return Door(memory)


def without_a_client(memory: Memory, path: str, query: bytes) -> tuple[int, bytes]:
    """The status and the body of the answer to a query string that an HTTP client would not send."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    run(HttpAdapter(memory)({"method": "GET", "path": path, "query_string": query}, None, send))
    return sent[0]["status"], sent[1]["body"]


def problem(response: httpx.Response) -> tuple[int, str, Any]:
    """The status, the title and the path of an error; all its fields are there."""
    assert response.headers["content-type"] == "application/problem+json"
    found = response.json()
    assert found.keys() == {"type", "title", "status", "detail", "path", "rule", "retryable"}
    assert found["status"] == response.status_code
    assert found["type"] == f"urn:recallog:{found['title']}"
    assert found["detail"]
    assert found["retryable"] is (response.status_code == 503)
    return response.status_code, found["title"], found["path"]


def test_the_adapter_has_fewer_than_60_lines_and_names_no_operation() -> None:
    code = Path(str(http_adapter.__file__)).read_text()
    assert len(code.splitlines()) < 60
    words = re.findall(r"\w+", code.partition("class HttpAdapter:")[2].split('"""', 2)[2])
    assert OPERATIONS.keys().isdisjoint(words)


# Every query of the registry.


@pytest.mark.parametrize("everything", [False, True], ids=["required", "all"])
@pytest.mark.parametrize("name", READS)
def test_every_query_is_served(memory: Memory, door: Door, name: str, everything: bool) -> None:
    declared = OPERATIONS[name]
    arguments = {
        each: OF_ONE.get(name, ARGUMENTS).get(each, ARGUMENTS[each])
        for each, field in declared.arguments.model_fields.items()
        if (everything or field.is_required()) and ARGUMENTS[each] is not None
    }
    response = door.get(f"/{name.replace('.', '/')}", **arguments)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json"), response.text
    assert declared.to_json(TypeAdapter(declared.answer).validate_json(response.content)) == response.content
    expected = run(declared.call(memory, arguments))
    assert _without_generation(response.content) == _without_generation(declared.to_json(expected))


def _without_generation(answer: bytes) -> bytes:
    """An answer without the name of what computed it, which for an answer from the past is a new one each time."""
    return re.sub(rb'"generation":"\w+"', b"", answer)


def test_operators_actions_are_served_with_their_group_in_the_path(door: Door) -> None:
    assert door.post("/admin/status").json()["partitions"][0]["partition"] == 0
    assert door.post("/admin/plan_rebuild", what="views").json()["items"][0]["partition"] == 0
    assert problem(door.post("/admin/rebuild", what="everything")) == (422, "InvalidArgument", "what")


def test_a_published_dict_is_seen_after_its_position(door: Door) -> None:
    published = door.post("/publish", event=FIELDS | {"space": "city", "at": "2026-03-01T12:00:00Z"})
    assert published.status_code == 200
    position = TypeAdapter(Position).validate_json(published.content)
    found = door.get("/timeline", space="city", agent="baker", after=str(position), kinds=["agent.spoke"])
    assert [item["text"] for item in found.json()["items"]] == ["Bread!"]
    assert found.json()["items"][0]["position"] == published.json()
    again = door.post("/publish_many", events=[FIELDS | {"space": "city"}] * 2)
    assert [each["offset"] - position.offset for each in again.json()["items"]] == [1, 2]


# Errors.


@pytest.mark.parametrize(
    ("path", "arguments", "expected"),
    [
        ("/recall", {"space": "village", "agent": "baker"}, (422, "InvalidArgument", "query")),
        ("/episodic", {"space": "village", "agent": "baker", "window": "many"}, (422, "InvalidArgument", "window")),
        ("/episodic", {"space": "village", "agent": "baker", "windov": "3"}, (422, "InvalidArgument", "windov")),
        ("/episodic", {"space": "village", "agent": "baker", "as_of": "noon"}, (422, "InvalidArgument", "as_of")),
        ("/episodic", {"space": "village", "agent": "baker", "after": "0:999999"}, (404, "OutOfRange", "after")),
        ("/around", {"space": "village", "agent": "baker", "event_id": "e-none"}, (404, "OutOfRange", "event_id")),
        ("/no/such", {}, (404, "OutOfRange", "")),
        ("/publish", {}, (404, "OutOfRange", "")),
    ],
)
def test_a_query_that_fails_says_what_is_wrong(
    door: Door, path: str, arguments: dict[str, str], expected: tuple[int, str, str]
) -> None:
    assert problem(door.get(path, **arguments)) == expected


def test_an_operation_that_only_reads_is_not_posted(door: Door) -> None:
    assert problem(door.post("/spaces")) == (404, "OutOfRange", "")


def test_an_invalid_event_is_named_by_the_path_of_its_field(door: Door) -> None:
    wrong = FIELDS | {"payload": {"text": 5}}
    assert problem(door.post("/publish", event=wrong)) == (422, "InvalidEvent", "payload.text")
    assert problem(door.post("/publish_many", events=[FIELDS, wrong])) == (422, "InvalidEvent", "1.payload.text")


def test_an_id_of_another_event_is_a_conflict_that_names_the_field_that_differs(door: Door) -> None:
    assert problem(door.post("/publish", event=FIELDS | {"id": "e-1"})) == (409, "IdConflict", "session")


def test_an_event_that_is_too_large_is_refused(door: Door) -> None:
    large = FIELDS | {"payload": {"text": "x" * limits.EVENT_BYTES_MAX}}
    assert problem(door.post("/publish", event=large)) == (413, "EventTooLarge", "")


def test_a_ledger_that_another_process_has_locked_is_tried_again_later(home: Path, door: Door) -> None:
    with closing(sqlite3.connect(home / layout.LEDGER, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert problem(door.post("/publish", event=FIELDS)) == (503, "LockTimeout", "")
    assert door.post("/publish", event=FIELDS).status_code == 200


def test_what_no_retry_and_no_other_argument_can_mend_is_a_server_error(door: Door) -> None:
    assert problem(door.post("/admin/reindex", model="minilm"))[0] == 500


# Hostile input.

LONG = "x" * 1_000_000
DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize(
    "value",
    [
        "",
        "\n",
        "village\n",
        "\x00",
        "\ufffd",
        "٣",
        "-1",
        "9" * 5000,
        "1e999",
        "nan",
        "0:" + "9" * 400,
        "null",
        "{}",
        LONG,
    ],
    ids=lambda value: repr(value[:12]),
)
def test_a_hostile_value_is_never_a_server_error(memory: Memory, name: str, value: str) -> None:
    """Each parameter in turn has the hostile value; all others are valid."""
    declared = OPERATIONS[name]
    required = {each: ARGUMENTS[each] for each, field in declared.arguments.model_fields.items() if field.is_required()}
    for each in [*declared.parameters, "unknown"]:
        query = urlencode(required | {each: value}, doseq=True)
        status, content = without_a_client(memory, f"/{name.replace('.', '/')}", query.encode())
        assert status in (200, 404, 413, 422), f"{each}: {content[:500]!r}"


@pytest.mark.parametrize(
    "query",
    [
        b"space=%ED%A0%80&agent=b",
        b"space=\xff\xfe&agent=b",
        b"space=v&agent=b&%00=1",
        b"&&==&%%%",
        b"space=v&space[]=w",
    ],
    ids=repr,
)
def test_a_hostile_query_string_is_never_a_server_error(memory: Memory, query: bytes) -> None:
    assert without_a_client(memory, "/episodic", query)[0] == 422


def with_event(more: bytes) -> bytes:
    """The body of a call with one event that has `more` fields."""
    return b'{"event": {"space": "v", "agent": "b", "kind": "a.b", ' + more + b"}}"


NO_OBJECTS = [b"", b"null", b"[]", b"3", b"\xff", b"{", DEEP, b'{"event":' + DEEP + b"}", b'{"\\ud800": 1}', b"{1: 2}"]
NO_EVENTS = [b'{"event": NaN}', b'{"event": ' + b"9" * 9000 + b"}", f'{{"event": "{LONG}"}}'.encode()]
NO_FIELDS = [
    b'"space": "village\\n"',
    b'"session": "\\ud800"',
    b'"payload": {"n": NaN}',
    b'"payload": {"n": -Infinity}',
    b'"payload": {"n": 1' + b"0" * 4000 + b"}",
    b'"payload": {"n": ' + b'{"n":' * 150 + b"1" + b"}" * 150 + b"}",
    b'"turn": 1' + b"0" * 9000,
    f'"{LONG}": 1'.encode(),
    f'"agent": "{LONG}"'.encode(),
]


@pytest.mark.parametrize(
    "body",
    [*NO_OBJECTS, *NO_EVENTS, *map(with_event, NO_FIELDS), f'{{"{LONG}": 1}}'.encode()],
    ids=lambda body: repr(body[:70]),
)
def test_a_hostile_body_is_never_a_server_error(door: Door, body: bytes) -> None:
    assert problem(door.send("/publish", body))[0] == 422
    in_a_list = re.sub(rb'^\{"event": (.*)\}$', rb'{"events": [\1]}', body)
    assert problem(door.send("/publish_many", in_a_list))[0] == 422


def test_a_hostile_path_is_unknown(door: Door) -> None:
    for path in ("/", "/recall/", "/admin.status", "/__class__", f"/{quote(chr(10))}", "/" + "x" * 60_000):
        assert problem(door.get(path))[0] == 404
