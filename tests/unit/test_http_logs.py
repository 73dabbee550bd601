"""The log of the server: every request has its id, and no line has a text, a question, a key or a name of an agent."""

import asyncio
import gc
import json
import logging
from pathlib import Path
from typing import Any

import httpx
import pytest

from recallog import Memory, Settings
from recallog.operations import pipeline
from recallog_service import logs
from recallog_service.access import Access, Grant, Guarded, keys
from recallog_service.access.stores import store_of
from recallog_service.http import tailing
from recallog_service.http.app import Application
from recallog_service.http.mounting import list_mounted
from support.cli import same_log
from support.events import event, run
from support.http import served, streaming
from support.waiting import WAIT_SECONDS

SECRET = "sesame"
"""In all that is sent: texts, questions, keys, paths and names."""
EVENTS = f"/v1/spaces/{SECRET}/events"


def lines_of(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """The lines of the server, which is in the process of its client."""
    records = (each for each in caplog.records if each.name.partition(".")[0] not in ("httpx", "httpcore"))
    return [json.loads(logs.JsonLines().format(record)) for record in records]


def key_in(home: Path) -> str:
    token, stored = keys.make("bot", Grant.everything())
    run(store_of(Settings(home=home)).put(stored))
    return token


def test_a_failure_a_refused_key_and_a_stream_are_logged_with_the_ids_of_their_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> None:
        raise ValueError(f"it said {SECRET}")

    allowed = {"Authorization": f"Bearer {key_in(tmp_path)}"}

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish(event(space=SECRET, payload={"text": SECRET}))
            app = Application(memory, Access.of(Settings(home=tmp_path)))
            async with (
                served(app) as (_, url),
                httpx.AsyncClient(base_url=url, headers=allowed, timeout=WAIT_SECONDS) as client,
            ):
                async with streaming(client, f"{EVENTS}?start=0:0", X_Request_Id="r-stream") as stream:
                    await stream.next()
                headers = {"X-Request-Id": "r-key", "Authorization": f"Bearer rl_{SECRET}_{SECRET}"}
                refused = await client.get("/v1/spaces", headers=headers)
                monkeypatch.setattr(Guarded, "call", broken)
                path = f"/v1/spaces/{SECRET}/agents/{SECRET}/recall"
                failed = await client.post(path, json={"query": SECRET}, headers={"X-Request-Id": "r-500"})
                assert [(each.status_code, each.headers["x-request-id"]) for each in (refused, failed)] == [
                    (401, "r-key"),
                    (500, "r-500"),
                ]
                assert "r-500" in failed.text
                assert SECRET not in failed.text

    with caplog.at_level(logging.DEBUG):
        run(work())
    lines = lines_of(caplog)
    assert SECRET not in json.dumps(lines)
    requests = {line["request"]: line for line in lines if line["message"] == "request"}
    assert {id_: (line["method"], line["status"]) for id_, line in requests.items()} == {
        "r-stream": ("GET", 200),
        "r-key": ("GET", 401),
        "r-500": ("POST", 500),
    }
    assert requests["r-500"]["route"] == "/v1/spaces/{space}/agents/{agent}/recall"
    (defect,) = (line for line in lines if line["level"] == "error")
    assert (defect["request"], defect["error"]) == ("r-500", "ValueError")
    assert defect["frames"][-1].endswith(" broken")


def test_a_tool_of_mcp_that_fails_by_a_defect_says_the_id_of_the_request_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> None:
        raise ValueError(f"it said {SECRET}")

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            app = Application(memory, Access.of(Settings(home=tmp_path)), mounted=list_mounted(memory))
            monkeypatch.setattr(pipeline.Call, "execute", broken)
            params = {"name": "recall_memory", "arguments": {"query": SECRET}}
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            headers = {"Accept": "application/json, text/event-stream", "X-Request-Id": "r-tool"}
            async with served(app) as (_, url), httpx.AsyncClient(base_url=url, timeout=WAIT_SECONDS) as client:
                answer = await client.post(f"/mcp?space={SECRET}&agent={SECRET}", json=call, headers=headers)
                assert "r-tool" in answer.text
                assert SECRET not in answer.text

    with caplog.at_level(logging.DEBUG):
        run(work())
    lines = lines_of(caplog)
    assert SECRET not in json.dumps(lines)
    (defect,) = (line for line in lines if line["level"] == "error")
    assert (defect["request"], defect["error"], defect["frames"][-1].endswith(" broken")) == (
        "r-tool",
        "ValueError",
        True,
    )


def test_a_stream_that_fails_after_it_has_begun_is_logged_with_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish(event(space=SECRET))
            app = Application(memory, Access.of(Settings(home=tmp_path)))
            async with served(app) as (_, url), httpx.AsyncClient(base_url=url, timeout=WAIT_SECONDS) as client:
                async with streaming(client, f"{EVENTS}?start=0:0", X_Request_Id="r-stream") as stream:
                    await stream.next()
                    monkeypatch.setattr(tailing.sse, "make_frame", broken)
                    await memory.publish(event(space=SECRET, payload={"text": SECRET}))
                    with pytest.raises((httpx.HTTPError, StopAsyncIteration)):
                        await stream.next()

    def broken(*_: object, **__: object) -> bytes:
        raise ValueError(f"it said {SECRET}")

    with caplog.at_level(logging.DEBUG):
        run(work())
    lines = lines_of(caplog)
    assert SECRET not in json.dumps(lines)
    assert any(line.get("request") == "r-stream" and line["level"] == "error" for line in lines)


def test_no_level_shows_the_details_of_libraries(capsys: pytest.CaptureFixture[str]) -> None:
    with same_log():
        for level, expected in (("debug", {"ours": 4, "theirs": 3}), ("error", {"ours": 1, "theirs": 1})):
            logs.to_stderr(level)
            for name, logger in (("ours", "recallog.http"), ("theirs", "library.conn")):
                for severity in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
                    logging.getLogger(logger).log(severity, name)
            lines = [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()]
            assert {name: lines.count(name) for name in expected} == expected


def test_a_line_of_a_library_says_where_an_error_was_raised_and_not_what_it_quotes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fails() -> None:
        raise ValueError("the payload of somebody")

    async def work() -> None:
        asyncio.get_running_loop().create_task(fails(), name="a-task")
        await asyncio.sleep(0.01)
        gc.collect()

    run(work())
    (record,) = caplog.records
    line = json.loads(logs.JsonLines().format(record))
    assert (line["logger"], line["message"]) == ("asyncio", "Task exception was never retrieved")
    assert (line["error"], line["frames"][-1].rpartition(" ")[2]) == ("ValueError", "fails")
    assert "somebody" not in json.dumps(line)
