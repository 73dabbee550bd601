"""A chat completions endpoint on this machine that answers as a script says, over a real socket.

    with ChatServer(HANGS, status(429, retry_after="2")) as server:
        ...                                    # ChatEndpoint(server.url, "small")
    assert server.requests[0].evidence == ["e1", "e2"]

Each request takes the script's next entry; after the last one the server answers properly.
"""

import contextlib
import json
import socket
import socketserver
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a client. The names of headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    json: Any

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The user's message, line by line."""
        return [json.loads(line) for line in self.json["messages"][-1]["content"].split("\n")]

    @property
    def evidence(self) -> list[str]:
        """The ids of the events that it shows."""
        return [line["id"] for line in self.lines if "id" in line]


@dataclass(frozen=True, slots=True)
class Reply:
    """One step of the script. `Content-Length` is the length of the body, unless `headers` contain another one."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    silent: bool = False
    """Close the connection without a status line."""
    hangs: bool = False
    """Keep the connection open after the reply until the client closes it."""


HANGS = Reply(silent=True, hangs=True)
HANGS_HALFWAY = Reply(body=b'{"choices": [', headers={"Content-Length": "100"}, hangs=True)
DROPS = Reply(silent=True)
DROPS_HALFWAY = Reply(body=b'{"choices": [', headers={"Content-Length": "100"})


def status(code: int, text: str = "", **headers: str) -> Reply:
    """An error: `status(429, retry_after="2")` sends `Retry-After: 2`."""
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    return Reply(code, json.dumps({"error": {"message": text}}).encode(), named)


def completion(content: Any, finish_reason: str | None = "stop", **message: Any) -> Reply:
    """A chat completion whose message has any `content`."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content, **message},
        "finish_reason": finish_reason,
    }
    return Reply(body=json.dumps({"object": "chat.completion", "choices": [choice]}).encode())


def belief(text: str, *based_on: str) -> Reply:
    """A valid answer."""
    return completion(json.dumps({"belief": text, "based_on": based_on}))


def facts(*items: Any) -> Reply:
    """The facts of an extraction: a text is the content of one."""
    return completion(json.dumps({"facts": [{"content": each} if isinstance(each, str) else each for each in items]}))


def _valid_answer(request: Request) -> Reply:
    return belief(f"I have seen {len(request.evidence)} things.", *request.evidence)


class _Connections(socketserver.ThreadingTCPServer):
    """Tracks open connections, so that it can close those of waiting clients when it ends."""

    # Threads are joined, so that none outlives its test.
    daemon_threads = False

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        for connection in list(self.open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class ChatServer:
    """Serves while it is entered. `url` is its base without `/v1`; `requests` grows as they come."""

    def __init__(self, *script: Reply) -> None:
        self.requests: list[Request] = []
        self._script = iter(script)
        self._lock = threading.Lock()
        self._server = _Connections(self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.close_connections()
        self._server.server_close()

    def _next(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            return next(self._script, None) or _valid_answer(request)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                # The client may have closed the connection; some tests do.
                with contextlib.suppress(ConnectionError):
                    self._play(server._next(Request(self.path, headers, json.loads(content))))

            def _play(self, reply: Reply) -> None:
                if not reply.silent:
                    self.send_response_only(reply.status)
                    for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(reply.body)
                if reply.hangs:
                    self.rfile.read(1)

        return Handler
