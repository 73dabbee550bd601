"""An embeddings endpoint as a process of its own, so that it can be stopped: `python -m support.embedding_endpoint`.

It prints its port, and answers with chosen vectors, by text, or with those of the toy embedder.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from recallog_projections.index.embedders.embedder import Passage
from support.cli import environment_of
from support.toy_embedder import ChosenVectors


@dataclass
class EmbeddingEndpoint:
    """A running endpoint."""

    process: "subprocess.Popen[bytes]"
    port: int

    @property
    def name(self) -> str:
        """The name of its embedder in settings."""
        return f"http://127.0.0.1:{self.port}/v1#toy"

    def stop(self) -> None:
        """SIGSTOP: it accepts connections and does not answer."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)


@contextmanager
def embedding_endpoint(vectors: Mapping[str, Sequence[float]] | None = None) -> Iterator[EmbeddingEndpoint]:
    """An endpoint whose vectors of some texts are chosen: up to `DIMENSION` numbers each."""
    process = subprocess.Popen(
        [sys.executable, "-m", "support.embedding_endpoint", json.dumps(vectors or {})],
        stdout=subprocess.PIPE,
        env=environment_of(PYTHONPATH=os.pathsep.join(sys.path)),
    )
    with process:
        try:
            assert process.stdout is not None
            yield EmbeddingEndpoint(process, int(process.stdout.readline()))
        finally:
            process.kill()


class _Handler(BaseHTTPRequestHandler):
    embedder = ChosenVectors({})

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        vectors = [embedding.vector.tolist() for embedding in self.embedder.embed([Passage(text) for text in texts])]
        body = json.dumps({"data": [{"index": n, "embedding": vector} for n, vector in enumerate(vectors)]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    _Handler.embedder = ChosenVectors(json.loads(sys.argv[1]))
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
