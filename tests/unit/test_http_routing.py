"""Routes found by the last name in their paths: the same answers as from a router that compares all of them."""

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route, Router
from starlette.types import ASGIApp

from recallog import Memory, Settings
from recallog_service.access import Access
from recallog_service.http import documents
from recallog_service.http.app import Application
from recallog_service.http.routing import Routes
from support.events import run
from support.waiting import WAIT_SECONDS


async def _named(request: Request) -> Response:
    return Response(f"{request.scope['route'].path} {sorted(request.path_params.items())}")


ROUTES = [
    Route("/", _named),
    Route("/a", _named),
    Route("/{x}/a", _named),
    Route("/a/{x}", _named, methods=["POST"]),
    Route("/b/a", _named),  # is hidden by one that comes before it
    Route("/{x}/{y}/b", _named, methods=["GET"]),
    Route("/{x}/{y}/b", _named, methods=["POST"]),
    Route("/c/{x:path}", _named),
    Mount("/d", routes=[Route("/a", _named)]),
]
PATHS = st.lists(st.sampled_from(["a", "b", "c", "d", "e", ""]), max_size=5).map(lambda names: "/" + "/".join(names))


async def _answer(app: ASGIApp, method: str, path: str) -> tuple[int, str, Mapping[str, str]]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        try:
            response = await client.request(method, f"http://127.0.0.1{path}")
        except HTTPException as error:
            return error.status_code, error.detail, error.headers or {}
        return response.status_code, response.text, response.headers


@given(method=st.sampled_from(["GET", "HEAD", "POST", "DELETE"]), path=PATHS)
def test_routes_answer_as_a_router_of_all_of_them(method: str, path: str) -> None:
    routers = [kind(ROUTES, redirect_slashes=False) for kind in (Routes, Router)]
    found, expected = (run(_answer(router, method, path)) for router in routers)
    assert found == expected


def test_other_requests_are_answered_while_a_document_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, may_end, times = threading.Event(), threading.Event(), []

    def document() -> dict[str, Any]:
        times.append(1)
        asked.set()
        assert may_end.wait(WAIT_SECONDS)
        return {"openapi": "3.1.0"}

    async def scenario() -> None:
        monkeypatch.setattr(documents, "openapi", document)
        settings = Settings(home=tmp_path, index="off")
        async with Memory.open(settings) as memory:
            app = Application(memory, Access.of(settings))
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
                wanted = [asyncio.create_task(client.get("/openapi.json")) for _ in range(2)]
                while not asked.is_set():
                    await asyncio.sleep(0.001)
                alive = await client.get("/healthz")
                assert not any(each.done() for each in wanted)
                may_end.set()
                shown = [(await each).json() for each in wanted]
        assert (alive.status_code, shown, len(times)) == (200, [{"openapi": "3.1.0"}] * 2, 1)

    run(scenario())
