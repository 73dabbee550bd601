"""`Host` and `Origin`: what no browser sends is refused on every route, and who may reach which server from a page."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from recallog import Memory, Settings
from recallog_service.access import Grant, keys
from recallog_service.access.stores import store_of
from recallog_service.http.mounting import MCP, list_mounted
from recallog_service.http.naming import LOOPBACK, Authority
from support.events import one_loop, run
from support.http import ROUTES, Door, problem

PATHS = [
    *(("GET", path) for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/asyncapi.json", "/nowhere")),
    *(("GET", path) for path in ("/v1/spaces/village/events", "/v1/admin/jobs", "/api/v1/memory/viewer")),
    *((route.method, route.path.format(space="village", agent="baker")) for route in ROUTES.values()),
    ("POST", MCP),
]
ODD = [
    *("", " ", "@", "/", ":", ":80", ".", "..", "-", "a b", "a\tb", "127.0.0.1 ", " 127.0.0.1", "\x00", "a\x7fb"),
    *("user@127.0.0.1", "user:secret@127.0.0.1", "127.0.0.1@evil.example", "evil.example@127.0.0.1:8765"),
    *("127.0.0.1/", "127.0.0.1/evil", "127.0.0.1?a", "127.0.0.1#a", "http://127.0.0.1", "127.0.0.1\\evil"),
    *("127.0.0.1:80:80", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:99999", "127.0.0.1:+80"),
    *("127.0.0.1:8_0", "127.0.0.1:٣", "127.0.0.1:8a", "127.0.0.1,evil.example", "127.0.0.1;a", "a..b", ".a", "-a"),
    *("::1", "::1:80", "[::1", "::1]", "[::1]]", "[[::1]]", "[]", "[::1]a", "[::1]:", "[::1%lo]", "[::1%25lo]"),
    *("[127.0.0.1]", "[v1.a]", "[::1]:80:80", "[1:2:3]", "127.1", "127.0.0.1.5", "0x7f.0.0.1", "2130706433", "0177.1"),
    *("lócalhost", "localhost%2e", "local%00host", "a" * 64, ".".join(["a" * 60] * 5), "*", "*.example.org", "(a)"),
]


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    opened = Memory.open(Settings(home=tmp_path_factory.mktemp("memory"), index="off"))
    with one_loop():
        yield opened
        run(opened.close())


def door_of(memory: Memory, home: Path, token: str | None = None, **options: object) -> Door:
    return Door(memory, Settings(home=home), token, mounted=list_mounted(memory), **options)


@pytest.fixture(scope="module")
def keyless(memory: Memory, tmp_path_factory: pytest.TempPathFactory) -> Door:
    return door_of(memory, tmp_path_factory.mktemp("keyless"), hosts=LOOPBACK)


@pytest.fixture(scope="module")
def keyed(memory: Memory, tmp_path_factory: pytest.TempPathFactory) -> Door:
    home = tmp_path_factory.mktemp("keyed")
    token, stored = keys.make("test", Grant.everything())
    run(store_of(Settings(home=home)).put(stored))
    return door_of(memory, home, token)


def sent(door: Door, method: str, path: str, *headers: tuple[str, str]) -> httpx.Response:
    """The answer to a request with just these headers, which need not be valid, and those of JSON."""
    given = [(name.encode(), value.encode("utf-8")) for name, value in headers]
    if not any(name == "Host" for name, _ in headers):
        given.append((b"Host", b"127.0.0.1:8765"))
    token = door.client.headers.get("authorization")
    more = [(b"Authorization", token.encode())] if token else []
    more += [(b"Content-Type", b"application/json"), (b"Accept", b"application/json")]
    request = httpx.Request(method, f"http://127.0.0.1{path}", headers=[*given, *more], content=b"[]")
    return run(door.client.send(request))


@pytest.mark.parametrize("host", ODD)
@pytest.mark.parametrize("site", ["keyless", "keyed"])
def test_an_odd_host_is_refused_on_every_route(site: str, host: str, request: pytest.FixtureRequest) -> None:
    door = request.getfixturevalue(site)
    for method, path in PATHS:
        assert problem(sent(door, method, path, ("Host", host)))[0] == 400, path


@pytest.mark.parametrize(
    "origin",
    [
        *("", "null,null", "NULL", "http://", "http:", "http", "//127.0.0.1", "127.0.0.1", "http:/127.0.0.1", "://a"),
        *("http://127.0.0.1 http://evil.example", "http://127.0.0.1, http://evil.example", "http://127.0.0.1/"),
        *(f"http://{host}" for host in ODD if host),
    ],
)
@pytest.mark.parametrize("site", ["keyless", "keyed"])
def test_an_odd_origin_is_refused_on_every_route(site: str, origin: str, request: pytest.FixtureRequest) -> None:
    door = request.getfixturevalue(site)
    for method, path in PATHS:
        assert problem(sent(door, method, path, ("Origin", origin)))[0] == 400, path


@pytest.mark.parametrize("name", ["Host", "Origin"])
def test_a_header_that_is_there_twice_is_refused(keyless: Door, name: str) -> None:
    value = {"Host": "127.0.0.1", "Origin": "http://127.0.0.1"}[name]
    for method, path in PATHS:
        assert problem(sent(keyless, method, path, (name, value), (name, value)))[0] == 400, path


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8765", "localhost", "LOCALHOST:1", "[::1]", "[0:0:0::1]:8765"]
)
def test_without_keys_the_names_of_this_machine_are_answered(keyless: Door, host: str) -> None:
    assert sent(keyless, "GET", "/v1/spaces", ("Host", host)).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "localhost.", "127.0.0.2", "[::2]", "a_b:80"]
)
def test_without_keys_no_other_name_is_answered(keyless: Door, host: str) -> None:
    for method, path in PATHS:
        assert problem(sent(keyless, method, path, ("Host", host)))[0] == 421, path


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "https://127.0.0.1.evil.example", "null", "http://127.0.0.2"]
)
def test_without_keys_pages_of_other_machines_are_refused_on_every_route(keyless: Door, origin: str) -> None:
    for method, path in PATHS:
        assert problem(sent(keyless, method, path, ("Origin", origin)))[0] == 403, path


def test_with_keys_the_page_of_an_application_reaches_the_routes_through_its_own_server(keyed: Door) -> None:
    """That server passes `Origin` on, and adds the key, which no page of a browser has."""
    assert sent(keyed, "GET", "/v1/spaces", ("Origin", "https://app.example.org")).status_code == 200


LISTED = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("memory.example.org", "http://evil.example"),
        ("memory.example.org", "null"),
        ("memory.example.org", "http://memory.example.org.evil.example"),
        ("memory.example.org", "http://memory.example.org:8000"),
        ("memory.example.org:8000", "https://memory.example.org"),
        ("memory.example.org", "file://memory.example.org"),
        ("127.0.0.1:8765", "http://localhost:3000"),
    ],
)
def test_mcp_refuses_pages_of_another_origin(keyed: Door, host: str, origin: str) -> None:
    assert problem(sent(keyed, "POST", MCP, ("Host", host), ("Origin", origin)))[0] == 403


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("memory.example.org", None),
        ("memory.example.org", "https://memory.example.org"),
        ("memory.example.org", "https://memory.example.org:443"),
        ("memory.example.org:8765", "http://Memory.example.org:8765"),
        ("[::1]:8765", "http://[::1]:8765"),
    ],
)
def test_mcp_answers_programs_and_pages_of_its_own_origin(tmp_path: Path, host: str, origin: str | None) -> None:
    async def work() -> None:
        async with Memory.in_memory() as opened:
            door = door_of(opened, tmp_path)
            headers = {"Host": host, "Accept": "application/json, text/event-stream"}
            headers |= {} if origin is None else {"Origin": origin}
            async with door.app._lifespan(None):
                assert (await door.client.post(MCP, json=LISTED, headers=headers)).status_code == 200

    run(work())


def test_names_are_compared_in_one_form() -> None:
    assert Authority.parse("[0:0::0001]:80") == Authority.parse("[::1]:80") == ("::1", 80)
    assert Authority.parse("Memory.Example.org") == ("memory.example.org", None)
