"""An index with two methods over mem0: `index(events)` and `search(query, k)`.

Each event is one memory of mem0, with its text as it is (`infer=False`, no model reads it) and the whole event in its
metadata, so that a hit gives the event back. The ledger stays the source: the folder of mem0 can be deleted, and the
next queries fill it again.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

os.environ["MEM0_TELEMETRY"] = "False"  # read when mem0 is first imported

from mem0 import Memory
from mem0.memory import main, telemetry

from recallog import Event
from recallog.extending import Passage
from recallog_projections.index.embedders.registry import embedder

main.MEM0_TELEMETRY = telemetry.MEM0_TELEMETRY = False  # the program may have imported mem0 before

RUN = "recallog"
"""The `run_id` of all memories. mem0 searches only within a run, a user or an agent."""
_UNUSED = {"provider": "openai", "config": {"api_key": "unused", "openai_base_url": "http://127.0.0.1:9/v1"}}
"""mem0 constructs a model and an embedder. This one is never asked, and could not reach anybody."""


class LocalEmbeddings:
    """Recallog's own model, which runs on this machine, as an embedding model of mem0."""

    def __init__(self) -> None:
        self._embedder = embedder("minilm")
        self.dimension = self._embedder.dimension

    def embed(self, text: str, memory_action: Literal["add", "search", "update"] | None = None) -> list[float]:
        return self.embed_batch([text], memory_action)[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = "add") -> list[list[float]]:
        passages = [Passage(text, is_query=memory_action == "search") for text in texts]
        return [[float(each) for each in found.vector] for found in self._embedder.embed(passages)]


class Mem0Index:
    """An index for `Memory.open(index=…)`. The memory calls one method at a time."""

    def __init__(self, memory: Memory) -> None:
        """`memory` is a memory of mem0 that you have configured. It may have other runs too."""
        self._memory = memory

    @classmethod
    def local(cls, folder: str | Path) -> "Mem0Index":
        """An index in a folder, with Recallog's own model: no key, no server, no telemetry."""
        embeddings = LocalEmbeddings()
        store = {"path": str(folder), "embedding_model_dims": embeddings.dimension, "on_disk": True}
        memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": {"collection_name": "events", **store}},
                "llm": _UNUSED,
                "embedder": _UNUSED,
                "history_db_path": ":memory:",
            }
        )
        memory.embedding_model = embeddings
        return cls(memory)

    def index(self, events: Sequence[Event], /) -> None:
        """Add events. One that was added before is left as it is."""
        for event in events:
            one = {"run_id": RUN, "space": event.space, "event": event.id}
            if event.text.strip() and not self._memory.get_all(filters=one, top_k=1)["results"]:
                metadata = {"space": event.space, "event": event.id, "whole": event.model_dump_json()}
                said = [{"role": "user", "content": event.text}]
                self._memory.add(said, run_id=RUN, metadata=metadata, infer=False)

    def search(self, query: str, k: int, /) -> Sequence[Event]:
        """The `k` events that are most relevant to a query, best first."""
        if not query.strip():
            return []
        found: dict[str, Any] = self._memory.search(query, top_k=k, filters={"run_id": RUN}, threshold=0.0)
        return [Event.model_validate_json(hit["metadata"]["whole"]) for hit in found["results"]]

    def close(self) -> None:
        """Release the folder, which only one process can use at a time."""
        client = getattr(self._memory.vector_store, "client", None)
        if client is not None:
            client.close()
        self._memory.close()
