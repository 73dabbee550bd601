"""What a key may see through HTTP: no byte of another space or of a private memory, and no trace that there is one."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recallog import Memory, Settings, StorageUnavailable
from recallog_service.access import Access, Grant, Verb, keys
from recallog_service.access.stores import store_of
from recallog_service.http import door as doors
from recallog_service.http.app import Application
from support import guarded_world as world
from support.events import event, one_loop, run
from support.guarded_world import ANNA, AS_ANNA, BERT, HIDDEN, IN_ACME, OTHER_SPACE, SPACE, UNKNOWN_AGENT, UNKNOWN_SPACE
from support.http import ROUTES, Door, problem, served, streaming
from support.waiting import WAIT_SECONDS

PROPERTY = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
CALLED = [name for name, route in ROUTES.items() if not route.is_job]


def key_in(home: Path, grant: Grant, **more: Any) -> str:
    """A new key of the memory in a folder."""
    token, stored = keys.make("test", grant, **more)
    run(store_of(Settings(home=home)).put(stored))
    return token


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("memory")


@pytest.fixture(scope="module")
def memory(home: Path) -> Iterator[Memory]:
    opened = Memory.open(Settings(home=home, index="off", count_accesses=False))
    with one_loop():
        run(world.populate(opened))
        yield opened
        run(opened.close())


@pytest.fixture(scope="module")
def anna(memory: Memory, home: Path) -> Door:
    """The door as somebody with a key for one agent in `acme/*` uses it."""
    return Door(memory, Settings(home=home), key_in(home, AS_ANNA))


@pytest.fixture(scope="module")
def operator(memory: Memory, home: Path) -> Door:
    return Door(memory, Settings(home=home), key_in(home, Grant.everything()))


@pytest.fixture(scope="module")
def stranger(memory: Memory, home: Path, anna: Door) -> Door:
    """The door without a key, after the first key was made."""
    return Door(memory, Settings(home=home))


def shown(response: httpx.Response) -> tuple[int, str, str]:
    """What a client can compare of an answer: its status, its headers, and its body.

    The id of the request is its own, the ETag is a digest of the body, and each view of the past has a new name.
    """
    headers = {name: value for name, value in response.headers.items() if name not in ("x-request-id", "etag")}
    return response.status_code, json.dumps(headers), re.sub('"generation":"[^"]*"', "", response.text)


def call(door: Door, name: str, arguments: dict[str, Any]) -> httpx.Response:
    """The answer to an operation whose arguments may lack those of the path."""
    return door.call(name, **dict.fromkeys(ROUTES[name].in_path, "none") | arguments)


# Every route.


@pytest.mark.models("all")
@pytest.mark.parametrize("name", CALLED)
@given(data=st.data())
@PROPERTY
def test_no_answer_has_a_word_that_is_hidden_from_the_agent(anna: Door, name: str, data: st.DataObject) -> None:
    arguments = data.draw(world.arguments(ROUTES[name].operation))
    _, headers, text = shown(call(anna, name, arguments))
    assert HIDDEN not in headers + text
    assert OTHER_SPACE not in text or OTHER_SPACE in json.dumps(arguments)


@pytest.mark.models("all")
@pytest.mark.parametrize("name", CALLED)
@given(data=st.data())
@PROPERTY
def test_a_forbidden_space_or_agent_cannot_be_told_from_an_unknown_one(
    anna: Door, name: str, data: st.DataObject
) -> None:
    arguments = data.draw(world.arguments(ROUTES[name].operation))
    for parameter, hidden, unknown in (("space", OTHER_SPACE, UNKNOWN_SPACE), ("agent", BERT, UNKNOWN_AGENT)):
        if parameter in ROUTES[name].operation.parameters:
            status, headers, text = shown(call(anna, name, arguments | {parameter: hidden}))
            expected = status, headers, text.replace(hidden, unknown)
            assert shown(call(anna, name, arguments | {parameter: unknown})) == expected


HAND_WRITTEN = [
    "/v1/spaces/{space}/events",
    "/v1/spaces/{space}/agents/{agent}/stream",
    "/api/v1/memory/search-index?space={space}&agent={agent}&q=bread",
    "/api/v1/memory/search-timeline?space={space}&agent={agent}&anchor_id=o-0",
    "/api/v1/memory/entries?space={space}&agent={agent}&ids=o-0,secret-0",
    "/api/v1/memory/tier-stats?space={space}&agent={agent}",
]


@pytest.mark.models("all")
@pytest.mark.parametrize("template", HAND_WRITTEN)
@pytest.mark.parametrize(("space", "agent"), [(OTHER_SPACE, ANNA), (UNKNOWN_SPACE, ANNA), (SPACE, BERT)])
def test_what_is_forbidden_is_like_what_is_not_there(
    memory: Memory, home: Path, template: str, space: str, agent: str
) -> None:
    door = Door(memory, Settings(home=home), key_in(home, AS_ANNA))
    if agent == BERT and "agent" not in template:
        return
    answer = door.get(template.format(space=space.replace("/", "%2F"), agent=agent))
    assert shown(answer) == shown(door.get("/v1/there-is-no-such-route"))
    assert answer.status_code == 404


@pytest.mark.models("all")
def test_a_raw_tail_needs_a_key_of_all_agents(anna: Door, operator: Door) -> None:
    path = f"/v1/spaces/{SPACE.replace('/', '%2F')}/events"
    assert problem(anna.get(path))[0] == 404
    assert problem(anna.get(path, None, Accept="text/event-stream"))[0] == 404
    assert HIDDEN in operator.get(path).text


@pytest.mark.models("all")
def test_jobs_and_metrics_are_an_operators(anna: Door, operator: Door) -> None:
    for path in ("/metrics", "/v1/admin/jobs/none", "/v1/status"):
        assert problem(anna.get(path))[0] == 404
    assert problem(anna.post("/v1/admin/verify", {}))[0] == 404
    assert operator.get("/metrics").status_code == 200
    assert operator.get("/v1/status").status_code == 200


@pytest.mark.models("all")
def test_a_job_is_begun_by_who_may_and_shown_to_them_and_to_operators(
    memory: Memory, home: Path, anna: Door, operator: Door
) -> None:
    in_acme, also_in_acme = (key_in(home, IN_ACME) for _ in range(2))
    assert problem(anna.post("/v1/react", {"space": SPACE}))[0] == 404
    for path, body in (("/v1/react", {}), ("/v1/react", {"space": OTHER_SPACE}), ("/v1/admin/verify", {})):
        assert problem(operator.post(path, body, Authorization=f"Bearer {in_acme}"))[0] == 404
    begun = operator.post("/v1/react", {"space": SPACE}, Authorization=f"Bearer {in_acme}")
    assert begun.status_code == 202
    job = begun.headers["location"]
    for path in (job, "/v1/admin/jobs/none"):
        assert shown(operator.get(path, None, Authorization=f"Bearer {also_in_acme}")) == shown(anna.get("/v1/nothing"))
    assert operator.get(job, None, Authorization=f"Bearer {in_acme}").json()["operation"] == "react"
    begun_by = {
        key: operator.get("/v1/admin/jobs", None, Authorization=f"Bearer {key}").json()
        for key in (in_acme, also_in_acme)
    }
    assert [each["operation"] for each in begun_by[in_acme]["items"]] == ["react"]
    assert begun_by[also_in_acme] == anna.get("/v1/admin/jobs").json() == {"items": []}
    assert begun.json()["id"] in operator.get("/v1/admin/jobs").text
    assert operator.get(job).status_code == 200


@pytest.mark.models("all")
def test_an_agents_stream_has_nothing_that_is_hidden_from_it(memory: Memory, home: Path) -> None:
    async def work() -> None:
        app = Application(memory, Access.of(Settings(home=home)))
        path = f"/v1/spaces/{SPACE.replace('/', '%2F')}/agents/{ANNA}/stream?start=0:0"
        async with served(app) as (_, url), httpx.AsyncClient(base_url=url, timeout=WAIT_SECONDS) as client:
            async with streaming(client, path, Authorization=f"Bearer {token}") as stream:
                await memory.publish(event("agent.thought", space=SPACE, agent=BERT, payload={"text": HIDDEN}))
                await memory.publish(event(space=SPACE, agent=ANNA, payload={"text": "The end."}))
                while True:
                    frame = await stream.next()
                    assert HIDDEN not in json.dumps(frame)
                    if "The end." in frame["data"]:
                        return

    token = key_in(home, AS_ANNA)
    run(work())


# Keys.


@pytest.mark.models("all")
def test_without_a_key_nothing_is_answered_but_how_the_server_is(stranger: Door) -> None:
    for path in ("/healthz", "/readyz", "/openapi.json", "/asyncapi.json"):
        assert stranger.get(path).status_code == 200
    for path in (
        "/v1/spaces",
        "/metrics",
        "/api/v1/memory/entries",
        "/v1/spaces/x/events",
        "/v1/admin/jobs",
        "/v1/admin/jobs/x",
    ):
        answer = stranger.get(path)
        assert problem(answer)[:2] == (401, "Unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.models("all")
@pytest.mark.parametrize("header", ["Bearer rl_none_none", "Bearer ", "Basic YTpi", "rl_x_y", "Bearer a.b.c"])
def test_what_is_no_valid_key_is_refused(stranger: Door, header: str) -> None:
    answer = stranger.get("/v1/spaces", None, Authorization=header)
    assert problem(answer)[:2] == (401, "Unauthorized")
    assert "none" not in answer.text


@pytest.mark.models("all")
def test_nobody_learns_where_the_keys_are_if_they_cannot_be_read(memory: Memory, tmp_path: Path) -> None:
    door = Door(memory, Settings(home=tmp_path), key_in(tmp_path, Grant.everything()))
    (tmp_path / "keys.json").write_text("damaged")
    answer = door.get("/v1/spaces")
    assert (answer.status_code, answer.json()["title"], answer.json()["retryable"]) == (503, "StorageCorrupt", False)
    assert str(tmp_path) not in answer.text


@pytest.mark.models("all")
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_who_may_tail_is_not_told_where_a_failure_is(
    monkeypatch: pytest.MonkeyPatch, memory: Memory, home: Path, accept: str
) -> None:
    async def fail(*given: object) -> None:
        raise StorageUnavailable("cannot connect to kafka://10.0.0.7:9092")

    monkeypatch.setattr(type(memory.admin), "partition_of", fail)
    door = Door(memory, Settings(home=home), key_in(home, world.IN_ACME))
    answer = door.get(f"/v1/spaces/{SPACE.replace('/', '%2F')}/events", None, Accept=accept)
    assert problem(answer)[:2] == (503, "StorageUnavailable")
    assert "10.0.0.7" not in answer.text


@pytest.mark.models("all")
def test_what_a_key_publishes_is_by_its_agent(anna: Door) -> None:
    path = f"/v1/spaces/{SPACE.replace('/', '%2F')}/events"
    fields = {"kind": "agent.spoke", "payload": {"text": "Bread!"}, "id": "p-1"}
    assert anna.post(path, fields).status_code == 201
    assert problem(anna.post(path, {**fields, "id": "p-2", "agent": BERT}))[0] == 404
    answer = anna.call("entries", space=SPACE, agent=ANNA, ids=["p-1"])
    assert answer.json()["entries"][0]["event"]["agent"] == ANNA


@pytest.mark.models("all")
def test_a_key_with_a_limit_is_told_when_to_come_back(memory: Memory, home: Path) -> None:
    limited = Door(memory, Settings(home=home), key_in(home, Grant.everything(), calls_per_minute=2))
    assert [limited.get("/v1/spaces").status_code for _ in range(3)] == [200, 200, 429]
    assert int(limited.get("/v1/spaces").headers["retry-after"]) >= 1


@pytest.mark.models("all")
def test_a_stream_ends_when_its_key_is_revoked(memory: Memory, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "RECHECK_SECONDS", 0.0)
    token = key_in(home, Grant(spaces=("acme/*",), agent="*", verbs=frozenset({Verb.TAIL})))

    async def work() -> None:
        app = Application(memory, Access.of(Settings(home=home)))
        path = f"/v1/spaces/{SPACE.replace('/', '%2F')}/events"
        async with served(app) as (_, url), httpx.AsyncClient(base_url=url, timeout=WAIT_SECONDS) as client:
            async with streaming(client, path, Authorization=f"Bearer {token}") as stream:
                await memory.publish(event(space=SPACE, turn=1))
                assert json.loads((await stream.next())["data"])["turn"] == 1
                await store_of(Settings(home=home)).revoke(token.split("_")[1])
                await asyncio.sleep(1)
                await memory.publish(event(space=SPACE, turn=2))
                ended = await stream.next()
                assert (ended["event"], json.loads(ended["data"])["reason"]) == ("end", "unauthorized")

    run(work())
