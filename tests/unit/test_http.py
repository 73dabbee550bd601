"""The HTTP door: every operation of the registry, errors, hostile input."""

import json
import logging
import re
import socket
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from pydantic import TypeAdapter

from recallog import Memory, Position, Settings, layout
from recallog.operations import pipeline
from recallog.operations.facade import all_operations
from recallog.operations.operation import Scope
from recallog_schemas import limits
from recallog_schemas.errors import SettingsError
from recallog_service import logs
from recallog_service.access import Access
from recallog_service.http.door import Limits
from recallog_service.http.naming import LOOPBACK
from recallog_service.http.server import server_of
from support.cli import spawn
from support.events import event, one_loop, run
from support.http import ROUTES, Door, problem, raw

OPERATIONS = all_operations(Memory)
READS = [name for name, each in OPERATIONS.items() if each.scope is Scope.READ]
GETS = [name for name in READS if ROUTES[name].method == "GET"]
FIELDS = {"space": "village", "agent": "baker", "kind": "agent.spoke", "payload": {"text": "Bread!"}}

ARGUMENTS: Mapping[str, Any] = {
    "beside_messages": True,
    "include_external": True,
    "external": ["wiki"],
    "space": "village",
    "agent": "baker",
    "reader": "miller",
    "about": "the miller",
    "author": "baker",
    "event_id": "e-7",
    "ids": ["e-7", "e-8"],
    "query": "Who owes the miller?",
    "kinds": ["agent.spoke", "agent.thought"],
    "channels": ["keyword", "temporal"],
    "types": ["fact", "lesson"],
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
    "start": "0:2",
    "containing": "bread",
    "partition": 0,
    "turn": 9,
    "window": 3,
    "top_k": 3,
    "limit": 3,
    "entries_before": 2,
    "depth": 2,
    "further": ["e-8"],
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
    "dedup": "exact",
    "tier": "slow",
    "based_on": ["e-7"],
    "subject": "anna",
    "audience": ["miller"],
    "cost": 2,
    "min_importance": 0.1,
    "min_entries": 2,
    "minutes": 5,
    "filter": '{"turn": {"$gte": 0}}',
    "at": "2026-03-01T12:00:00Z",
}
"""A value for each name of a parameter. An operation with further names needs a line here and nothing else. None: it
does not go together with the others."""
OF_ONE: Mapping[str, Mapping[str, Any]] = {
    "long_term.list": {"cursor": "00000000000000000012"},
    "consensus.dissents": {"type": "risk_warning"},
    "sessions": {"cursor": "0:12"},
    "conversation.messages": {"before": "e-6"},
}
"""Values of parameters of single operations."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("village")


@pytest.fixture(scope="module")
def memory(home: Path) -> Iterator[Memory]:
    """A memory in a folder whose ledger may be locked for a short time only, with events of three agents. Queries count
    nothing: a count between two answers would make them differ."""
    opened = Memory.open(Settings(home=home, lock_wait_seconds=0.05, count_accesses=False))
    agents = ("baker", "miller", "widow")
    events = [event(id=f"e-{n}", agent=agents[n % 3], session="s-1", audience=["baker"], turn=n) for n in range(20)]
    with one_loop():
        run(opened.publish_many(events))
        yield opened
        run(opened.close())


@pytest.fixture(scope="module")
def door(memory: Memory, home: Path) -> Door:
    return Door(memory, Settings(home=home))


# Every query of the registry.


@pytest.mark.models("consensus", "conversations", "long_term")
@pytest.mark.parametrize("everything", [False, True], ids=["required", "all"])
@pytest.mark.parametrize("name", READS)
def test_every_query_is_served(memory: Memory, door: Door, name: str, everything: bool) -> None:
    declared = OPERATIONS[name]
    arguments = {
        each: OF_ONE.get(name, ARGUMENTS).get(each, ARGUMENTS[each])
        for each, field in declared.arguments.model_fields.items()
        if (everything or field.is_required()) and ARGUMENTS[each] is not None
    }
    response = door.call(name, **arguments)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json"), response.text
    assert declared.to_json(TypeAdapter(declared.answer).validate_json(response.content)) == response.content
    if ROUTES[name].method == "GET":
        arguments = {key: [value] if key == "namespace" else value for key, value in arguments.items()}
    expected = run(pipeline.call(memory, declared, arguments))
    assert _without_generation(response.content) == _without_generation(declared.to_json(expected))


def _without_generation(answer: bytes) -> bytes:
    """An answer without the name of what computed it, which for an answer from the past is a new one each time."""
    return re.sub(rb'"generation":"\w+"', b"", answer)


def test_operators_actions_are_served_with_their_group_in_the_path(door: Door) -> None:
    assert door.get("/v1/status").json()["partitions"][0]["partition"] == 0
    assert door.get("/v1/plan-rebuild", {"what": "views"}).json()["items"][0]["partition"] == 0
    assert problem(door.post("/v1/admin/rebuild", {"what": "everything"})) == (422, "InvalidArgument", "what")


def test_a_published_dict_is_seen_after_its_position(door: Door) -> None:
    published = door.call("publish", event=FIELDS | {"space": "city", "at": "2026-03-01T12:00:00Z"})
    assert published.status_code == 200
    position = TypeAdapter(Position).validate_json(published.content)
    found = door.call("timeline", space="city", agent="baker", after=str(position), kinds=["agent.spoke"])
    assert [item["text"] for item in found.json()["items"]] == ["Bread!"]
    assert found.json()["items"][0]["position"] == published.json()
    again = door.call("publish_many", events=[FIELDS | {"space": "city"}] * 2)
    assert [each["offset"] - position.offset for each in again.json()["items"]] == [1, 2]


def test_a_name_with_a_slash_is_one_segment_of_the_path(door: Door) -> None:
    position = door.call("publish", event=FIELDS | {"space": "acme/agents/x"}).json()
    found = door.get("/v1/spaces/acme%2Fagents%2Fx/agents/baker/episodic", {"after": f"0:{position['offset']}"})
    assert [each["text"] for each in found.json()["memories"]] == ["Bread!"]
    assert problem(door.get("/v1/spaces/acme/agents/x/agents/baker/episodic"))[0] == 404


# Errors.

PATH = "/v1/spaces/village/agents/baker"


@pytest.mark.parametrize(
    ("path", "arguments", "expected"),
    [
        (f"{PATH}/episodic", {"window": "many"}, (422, "InvalidArgument", "window")),
        (f"{PATH}/episodic", {"windov": "3"}, (422, "InvalidArgument", "windov")),
        (f"{PATH}/episodic", {"as_of": "noon"}, (422, "InvalidArgument", "as_of")),
        (f"{PATH}/episodic", {"space": "city"}, (422, "InvalidArgument", "space")),
        (f"{PATH}/episodic", {"after": "0:999999"}, (404, "OutOfRange", "after")),
        (f"{PATH}/around", {"event_id": "e-none"}, (404, "OutOfRange", "event_id")),
        ("/v1/no-such", {}, (404, "Forbidden", "")),
        ("/v1/publish", {}, (405, "InvalidArgument", "")),
        (f"{PATH}/recall", {"query": "who?"}, (405, "InvalidArgument", "")),
    ],
)
def test_a_query_that_fails_says_what_is_wrong(
    door: Door, path: str, arguments: dict[str, str], expected: tuple[int, str, str]
) -> None:
    assert problem(door.get(path, arguments)) == expected


def test_a_question_that_is_missing_is_named(door: Door) -> None:
    assert problem(door.post(f"{PATH}/recall", {})) == (422, "InvalidArgument", "query")


def test_an_operation_that_only_reads_is_not_posted(door: Door) -> None:
    answer = door.post("/v1/spaces", {})
    assert problem(answer) == (405, "InvalidArgument", "")
    assert "GET" in answer.headers["allow"]


def test_a_body_of_another_type_is_refused(door: Door) -> None:
    """A web page of another origin can send a form, and a text, without being asked."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        assert problem(door.send("/v1/publish", b"{}", kind))[0] == 415
    assert problem(door.send("/v1/publish", b"{}", "application/json; charset=utf-8"))[0] == 422


def test_no_answer_has_a_header_that_lets_other_origins_read_it(door: Door) -> None:
    answer = door.get("/v1/spaces", None, Origin="https://example.org")
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert problem(run(door.client.options("/v1/publish", headers={"Origin": "https://example.org"})))[0] == 405


def test_a_body_that_is_too_long_is_refused(memory: Memory, home: Path) -> None:
    small = Door(memory, Settings(home=home), limits=Limits(body_bytes=1000))
    long = b'{"event": "' + b"x" * 1000 + b'"}'
    assert problem(small.send("/v1/publish", long)) == (413, "InvalidArgument", "")

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 100

    sent = small.client.post("/v1/publish", content=parts(), headers={"Content-Type": "application/json"})
    assert problem(run(sent)) == (413, "InvalidArgument", "")


def test_an_answer_that_takes_too_long_ends_with_an_error_that_a_retry_can_mend(memory: Memory, home: Path) -> None:
    hasty = Door(memory, Settings(home=home), limits=Limits(answer_seconds=1e-9))
    assert problem(hasty.call("timeline", space="village", agent="baker", as_of="0:3"))[:2] == (
        503,
        "StorageUnavailable",
    )
    assert problem(hasty.call("publish", event=FIELDS))[:2] == (503, "UnknownOutcome")


def test_a_server_without_keys_answers_under_the_names_of_this_machine_only(memory: Memory, home: Path) -> None:
    local = Door(memory, Settings(home=home), hosts=LOOPBACK)
    assert local.get("/v1/spaces").status_code == 200
    assert local.get("/v1/spaces", None, Host="localhost:8080").status_code == 200
    assert problem(local.get("/v1/spaces", None, Host="rebound.example.org"))[0] == 421


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "memory.example.org"])
def test_a_server_without_keys_listens_on_this_machine_alone(memory: Memory, home: Path, host: str) -> None:
    async def work() -> None:
        async with server_of(memory, Access.of(Settings(home=home)), host, 0):
            raise AssertionError("the server is made")

    with pytest.raises(SettingsError, match="recallog keys create NAME --space SPACE --agent AGENT"):
        run(work())


def test_a_port_that_another_program_has_is_named(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        ended = spawn("serve", "--port", port, "--home", tmp_path, "--log-level", "error")
    assert ended.code == 3
    assert f"the server cannot listen on 127.0.0.1:{port}" in ended.err.splitlines()[-1]


def test_an_answer_has_the_id_of_its_request(door: Door) -> None:
    assert door.get("/healthz", None, **{"X-Request-Id": "r-1"}).headers["x-request-id"] == "r-1"
    assert len(door.get("/healthz").headers["x-request-id"]) == 36
    assert door.get("/healthz", None, **{"X-Request-Id": "r 1 {}"}).headers["x-request-id"] != "r 1 {}"


def test_the_log_has_no_names_and_nothing_of_what_was_sent_or_answered(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="recallog.http"):
        door.call("publish", event=FIELDS | {"payload": {"text": "My secret"}})
        door.call("recall", space="village", agent="baker", query="What is my secret?")
        door.get("/v1/no/secret")
    lines = [json.loads(logs.JsonLines().format(record)) for record in caplog.records]
    assert [line["status"] for line in lines] == [200, 200, 404]
    assert lines[1]["route"] == "/v1/spaces/{space}/agents/{agent}/recall"
    assert all(line["request"] and line["ms"] >= 0 for line in lines)
    assert not re.search("secret|village|baker", json.dumps(lines))


def test_a_defect_is_a_problem_without_a_traceback_and_is_logged_by_its_place(
    door: Door, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any) -> None:
        raise ValueError("the payload of somebody")

    monkeypatch.setattr(Access, "caller", broken)
    answer = door.get("/v1/spaces", None, **{"X-Request-Id": "r-7"})
    assert problem(answer)[:2] == (500, "InvariantViolation")
    assert "r-7" in answer.text
    assert "somebody" not in answer.text + caplog.text
    (record,) = (each for each in caplog.records if each.levelname == "ERROR")
    assert "test_http.py" in json.loads(logs.JsonLines().format(record))["frames"][-1]


# What the client has already.


def test_an_answer_that_the_client_has_is_not_sent_again(door: Door) -> None:
    first = door.get(f"{PATH}/episodic")
    tag = first.headers["etag"]
    again = door.get(f"{PATH}/episodic", None, **{"If-None-Match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    position = door.call("publish", event=FIELDS).json()
    changed = door.get(f"{PATH}/episodic", {"after": f"0:{position['offset']}"}, **{"If-None-Match": tag})
    assert (changed.status_code, changed.headers["etag"] != tag) == (200, True)


def test_an_invalid_event_is_named_by_the_path_of_its_field(door: Door) -> None:
    wrong = FIELDS | {"payload": {"text": 5}}
    assert problem(door.call("publish", event=wrong)) == (422, "InvalidEvent", "payload.text")
    assert problem(door.call("publish_many", events=[FIELDS, wrong])) == (422, "InvalidEvent", "1.payload.text")


def test_an_id_of_another_event_is_a_conflict_that_names_the_field_that_differs(door: Door) -> None:
    answer = door.call("publish", event=FIELDS | {"id": "e-1"})
    assert problem(answer) == (409, "IdConflict", "session")
    assert answer.json()["position"] == "0:1"


def test_an_event_that_is_too_large_is_refused(door: Door) -> None:
    large = FIELDS | {"payload": {"text": "x" * limits.EVENT_BYTES_MAX}}
    assert problem(door.call("publish", event=large)) == (413, "EventTooLarge", "")


def test_a_ledger_that_another_process_has_locked_is_tried_again_later(home: Path, door: Door) -> None:
    with closing(sqlite3.connect(home / layout.LEDGER, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        answer = door.call("publish", event=FIELDS)
        assert problem(answer) == (503, "LockTimeout", "")
        assert answer.headers["retry-after"] == "1"
    assert door.call("publish", event=FIELDS).status_code == 200


# The state of the server.


def test_a_server_says_whether_it_lives_and_whether_its_memory_can_answer(door: Door) -> None:
    assert door.get("/healthz").json() == {"status": "alive"}
    assert door.get("/readyz").json() == {"status": "ready"}


def test_a_server_whose_memory_is_closed_is_not_ready(tmp_path: Path) -> None:
    memory = Memory.open(tmp_path)
    closed = Door(memory, Settings(home=tmp_path))
    run(memory.close())
    assert problem(closed.get("/readyz"))[:2] == (503, "StorageUnavailable")
    assert closed.get("/healthz").status_code == 200


def test_metrics_count_requests_by_route_and_name_nobody(door: Door) -> None:
    door.get(f"{PATH}/episodic")
    shown = door.get("/metrics").text
    route = "/v1/spaces/{space}/agents/{agent}/episodic"
    assert f'recallog_http_requests_total{{method="GET",route="{route}",status="200"}}' in shown
    assert "baker" not in shown


# Hostile input.

LONG = "x" * 1_000_000
DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize("name", GETS)
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
def test_a_hostile_value_is_never_a_server_error(door: Door, name: str, value: str) -> None:
    """Each parameter in turn has the hostile value; all others are valid."""
    declared = OPERATIONS[name]
    required = {each: ARGUMENTS[each] for each, field in declared.arguments.model_fields.items() if field.is_required()}
    for each in [*declared.parameters, "unknown"]:
        given = required | {each: value}
        named = {place: quote(str(given.pop(place)), safe="") for place in ROUTES[name].in_path}
        path, query = ROUTES[name].path.format(**named), urlencode(given, doseq=True)
        status, content = raw(door.app, ROUTES[name], path, query.encode())
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
def test_a_hostile_query_string_is_never_a_server_error(door: Door, query: bytes) -> None:
    assert raw(door.app, ROUTES["episodic"], f"{PATH}/episodic", query)[0] in (404, 422)


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
    assert problem(door.send("/v1/publish", body))[0] == 422
    in_a_list = re.sub(rb'^\{"event": (.*)\}$', rb'{"events": [\1]}', body)
    assert problem(door.send("/v1/publish-many", in_a_list))[0] == 422


def test_a_hostile_path_is_unknown(door: Door) -> None:
    for path in ("/", "/v1/recall/", "/v1/admin.status", "/v1/__class__", f"/{quote(chr(10))}", "/" + "x" * 60_000):
        assert problem(door.get(path))[0] == 404


@pytest.mark.parametrize("name", ["%ED%A0%80", "%FF", "%00", "a%0A", "..", "%2E%2E", "x" * 300])
def test_a_hostile_name_in_a_path_is_invalid(door: Door, name: str) -> None:
    assert raw(door.app, ROUTES["scene"], f"/v1/spaces/{name}/scene", b"")[0] == 422


@pytest.mark.models("conversations")
def test_more_messages_than_one_call_may_have_are_refused(door: Door) -> None:
    messages = [{"role": "user", "content": "Bread!"}] * 5_001  # more than one call takes
    answer = door.call("conversation.add", space="village", agent="baker", session="s", messages=messages)
    assert problem(answer) == (422, "InvalidArgument", "messages")
