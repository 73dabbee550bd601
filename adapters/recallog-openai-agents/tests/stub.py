"""A server that answers as OpenAI's Responses API, with what it was told."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def served(*texts: str) -> Iterator[str]:
    answers = list(texts)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            content = [{"type": "output_text", "text": answers.pop(0), "annotations": []}]
            said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
            body = json.dumps(
                {
                    "id": "resp_1",
                    "object": "response",
                    "created_at": 1,
                    "model": "m",
                    "output": [said],
                    "parallel_tool_calls": True,
                    "tool_choice": "auto",
                    "tools": [],
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
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
