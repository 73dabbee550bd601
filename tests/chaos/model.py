"""A process that serves a model: `python -m chaos.model PORT`. It answers requests of reflectors after a moment."""

import json
import random
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECONDS_MAX = 0.3
"""How long an answer takes at most, so that kills hit requests in progress."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send(b"{}")

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        lines = [json.loads(line) for line in asked["messages"][-1]["content"].split("\n")]
        evidence = [line["id"] for line in lines if "id" in line]
        time.sleep(random.uniform(0, SECONDS_MAX))
        belief = {"belief": f"I have seen {len(evidence)} things.", "based_on": evidence}
        message = {"role": "assistant", "content": json.dumps(belief)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self._send(json.dumps({"object": "chat.completion", "choices": [choice]}).encode())

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base's
        """Logs nothing."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), _Handler).serve_forever()
