"""A server that answers as Anthropic's API with what it was told, and keeps what it was asked."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Stub:
    def __init__(self, answers: Sequence[Sequence[Any]]) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    @contextmanager
    def served(self) -> Iterator[str]:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                stub.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                content = stub.answers.pop(0)
                stop = "tool_use" if any(each["type"] == "tool_use" for each in content) else "end_turn"
                body = json.dumps(
                    {
                        "id": f"msg_{len(stub.asked)}",
                        "type": "message",
                        "role": "assistant",
                        "model": "claude",
                        "content": content,
                        "stop_reason": stop,
                        "stop_sequence": None,
                        "usage": {"input_tokens": 1, "output_tokens": 1},
                    }
                ).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def use(number: int, **command: Any) -> Sequence[Any]:
    return [{"type": "tool_use", "id": f"toolu_{number}", "name": "memory", "input": command}]


def say(text: str) -> Sequence[Any]:
    return [{"type": "text", "text": text}]
