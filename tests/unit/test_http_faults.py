"""What goes wrong around a server, and not in it, is never answered with status 500: every route under every fault."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from recallog import Memory, Settings
from recallog_service.access import Access, Grant, keys
from recallog_service.access.stores import store_of
from recallog_service.http.app import Application
from recallog_service.http.mounting import MCP, list_mounted
from support import guarded_world as world
from support.events import run
from support.http import ROUTES
from support.read_only import fill, read_only, small_disk

FIXED = [
    *("/healthz", "/readyz", "/metrics", "/nowhere", "/v1/admin/jobs"),
    *(
        "/v1/admin/jobs/none",
        "/v1/spaces/acme%2Fshop/events",
    ),
    "/api/v1/memory/search-index?space=acme/shop&agent=anna&q=bread",
    "/api/v1/memory/search-timeline?space=acme/shop&agent=anna&anchor_id=seen-0",
    "/api/v1/memory/entries?space=acme/shop&agent=anna&ids=seen-0",
    *(f"/api/v1/memory/{name}?space=acme/shop&agent=anna" for name in ("tier-stats", "pressure")),
]
Fault = Callable[[Path], AbstractContextManager[Path]]
"""Damages a folder, or what it is on; the folder to be served afterwards."""


def arguments(name: str) -> dict[str, Any]:
    """What an operation requires."""
    fields = ROUTES[name].operation.arguments.model_fields
    given = {each: world.POOLS[each][0] for each in fields if fields[each].is_required() and each in world.POOLS}
    event = {"space": world.SPACE, "agent": world.ANNA, "kind": "agent.spoke", "payload": {"text": "bread"}}
    more = {"event": event, "events": [event], "target": "memory://", "model": "minilm"}
    return given | {each: more[each] for each in more if each in fields}


def changed(*names: str, change: Callable[[Path], object]) -> Fault:
    @contextmanager
    def fault(home: Path) -> Iterator[Path]:
        for name in names:
            for path in home.glob(name):
                if not path.name.endswith("-shm"):  # processes that have mapped it end by a signal if it is cut
                    change(path)
        yield home

    return fault


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garble(path: Path) -> None:
    path.write_bytes(b"\xff" * path.stat().st_size)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


@contextmanager
def gone(home: Path) -> Iterator[Path]:
    shutil.rmtree(home)
    yield home


@contextmanager
def a_file(home: Path) -> Iterator[Path]:
    shutil.rmtree(home)
    home.write_text("no folder")
    yield home


@contextmanager
def full(home: Path) -> Iterator[Path]:
    with small_disk(home.with_name("disk")) as disk:
        served = shutil.copytree(home, disk / "memory")
        fill(disk)
        yield served


LEDGER, VIEWS, KEYS = ("ledger.db", "ledger.db-*"), ("views*",), ("keys.json",)
FAULTS: dict[str, Fault] = {
    "a read-only mount": read_only,
    "a full disk": full,
    "a folder that is gone": gone,
    "a folder that is a file": a_file,
    **{
        f"{what} {how}": changed(*names, change=change)
        for what, names in (("the ledger", LEDGER), ("the views", VIEWS), ("the keys", KEYS), ("all", ("*.*",)))
        for how, change in (
            ("cut", cut),
            ("empty", lambda path: path.write_bytes(b"")),
            ("garbled", garble),
            ("gone", Path.unlink),
            ("replaced by folders", replace_by_folder),
            ("replaced by links to themselves", replace_by_loop),
        )
    },
}


@asynccontextmanager
async def client_of(settings: Settings, token: str) -> AsyncIterator[httpx.AsyncClient]:
    async with Memory.open(settings) as memory:
        app = Application(memory, Access.of(settings), mounted=list_mounted(memory))
        headers = {"Authorization": f"Bearer {token}"}
        transport = httpx.ASGITransport(app)
        async with (
            app._lifespan(None),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client,
        ):
            yield client


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder that is not damaged, and a key for it."""
    home = tmp_path_factory.mktemp("original")
    token, stored = keys.make("test", Grant.everything())

    async def work() -> None:
        settings = settings_of(home)
        await store_of(settings).put(stored)
        async with Memory.open(settings) as memory:
            await world.populate(memory)
            await memory.episodic(world.SPACE, world.ANNA)

    run(work())
    return home, token


def settings_of(home: Path) -> Settings:
    return Settings(home=home, index="off", lock_wait_seconds=0.05)


async def answers(client: httpx.AsyncClient) -> list[httpx.Response]:
    """The answers of every route; of each job also how it has ended, and of each stream its beginning."""
    found = [await client.get(path) for path in FIXED]
    headers = {"Accept": "application/json, text/event-stream"}
    tool = {"name": "recall_memory", "arguments": {"query": "bread"}}
    for method, params in (("tools/list", {}), ("tools/call", tool)):
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        found.append(await client.post(f"{MCP}?space=acme/shop&agent=anna", json=asked, headers=headers))
    for name, route in ROUTES.items():
        path, query, body = route.request(arguments(name))
        answer = await client.request(route.method, path, params=query or None, json=body)
        found.append(answer)
        while route.is_job and answer.status_code in (200, 202):
            answer = await client.get(answer.headers.get("location", str(answer.url)))
            if answer.json().get("state") != "running":
                found.append(answer)
                break
            await asyncio.sleep(0.01)
    return found


def check(answer: httpx.Response, fault: str) -> None:
    where = f"{fault}: {answer.request.method} {answer.request.url}: {answer.text[:400]}"
    assert answer.status_code < 500 or answer.status_code == 503, where
    if answer.status_code >= 400:
        found = answer.json()
        assert found["status"] == answer.status_code, where
        assert (found["retryable"] and answer.status_code == 503) is ("retry-after" in answer.headers), where
    elif "/admin/jobs/" in str(answer.request.url):
        assert (answer.json()["problem"] or {}).get("status") not in (500, 502), where


@pytest.mark.models("all")
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("is_served", [False, True], ids=["before the start", "while it is served"])
def test_no_fault_of_the_surroundings_is_a_defect_of_the_server(
    tmp_path: Path, original: tuple[Path, str], fault: str, is_served: bool
) -> None:
    token, home = original[1], shutil.copytree(original[0], tmp_path / "memory")

    async def work() -> None:
        if is_served and fault not in ("a read-only mount", "a full disk"):
            async with client_of(settings_of(home), token) as client:
                await client.get("/v1/spaces")
                with FAULTS[fault](home):
                    for answer in await answers(client):
                        check(answer, fault)
        else:
            with FAULTS[fault](home) as served:
                async with client_of(settings_of(served), token) as client:
                    for answer in await answers(client):
                        check(answer, fault)

    run(work())
