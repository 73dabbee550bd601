"""A server with the interfaces of the APIs: it gives scripted answers, and keeps what it was asked."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WAIT = "wait"
"""Among the events of an answer: the server waits until the client has gone, or the test has ended."""


class Stub:
    def __init__(self, *answers: Any) -> None:
        """An answer is the JSON of a body, the events of a stream, or the number of an error."""
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.is_over = threading.Event()

    @contextmanager
    def served(self) -> Iterator[str]:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                stub.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                answer = stub.answers.pop(0)
                if isinstance(answer, int):
                    self._send(answer, "application/json", [b'{"error": {"message": "no", "type": "x"}}'])
                elif isinstance(answer, dict):
                    self._send(200, "application/json", [json.dumps(answer).encode()])
                else:
                    self._send(200, "text/event-stream", answer)

            def _send(self, status: int, kind: str, parts: Sequence[Any]) -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("connection", "close")
                self.end_headers()
                for part in parts:
                    if part == WAIT:
                        stub.is_over.wait(60)
                        continue
                    self.wfile.write(part)
                    self.wfile.flush()

            def log_message(self, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            self.is_over.set()
            server.shutdown()
            thread.join()
            server.server_close()


def event(data: Any) -> bytes:
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data)}\n\n".encode()


DONE = b"data: [DONE]\n\n"


def chunk(**delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return event({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})


def completion(text: str | None, **more: Any) -> Any:
    message = {"role": "assistant", "content": text, "refusal": None, "annotations": [], **more}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def response(*output: Any) -> Any:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "status": "completed",
    }


def output(text: str) -> Any:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


def message(*content: Any) -> Any:
    calls = any(each["type"] == "tool_use" for each in content)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": list(content),
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def text_block(text: str) -> Any:
    return {"type": "text", "text": text}


def anthropic_events(*texts: str) -> list[Any]:
    start = {"type": "message_start", "message": message() | {"stop_reason": None}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}} for text in texts
    ]
    return [event(each) for each in [start, block, *deltas]]


ANTHROPIC_END = [
    event({"type": "content_block_stop", "index": 0}),
    event(
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 1},
        }
    ),
    event({"type": "message_stop"}),
]
