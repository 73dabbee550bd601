"""LangGraph's checkpoints: the states of threads, as items.

Item, below ("langgraph.checkpoints", thread, namespace)     Value
("checkpoints",) / id                                        the checkpoint without its values, and its parent
("values",) / channel and version                            the value of a channel
("writes", id) / task and number                             what a task has written since the checkpoint
("parts", digest) / number                                   a piece of a value that is larger than an item
"""

import asyncio
import base64
import hashlib
import random
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from recallog.views import ItemView
from recallog_langgraph.items import AnyMemory, Event, Items, name_of

ROOT = "langgraph.checkpoints"
CHECKPOINTS, VALUES, WRITES, PARTS = "checkpoints", "values", "writes", "parts"
MAIN = "(main)"
"""The name of the namespace of the graph itself, which is "" in LangGraph."""
PART_CHARS = 60_000
"""The number of characters of base64 in a part, so that it fits into an item of 64 KiB."""


class _Address(NamedTuple):
    """A thread, and the graph in it: "", or the path of a subgraph."""

    thread: str
    graph: str

    @classmethod
    def of(cls, config: RunnableConfig) -> "_Address":
        configured = config["configurable"]
        return cls(str(configured["thread_id"]), configured.get("checkpoint_ns") or "")

    def namespace(self, *more: str) -> Sequence[str]:
        return ROOT, name_of(self.thread), name_of(self.graph or MAIN), *map(name_of, more)

    def config(self, checkpoint_id: str) -> RunnableConfig:
        fields = {"thread_id": self.thread, "checkpoint_ns": self.graph, "checkpoint_id": checkpoint_id}
        return {"configurable": fields}


class RecallogSaver(BaseCheckpointSaver[str]):
    """Checkpoints of LangGraph in a memory of Recallog.

    ```python
    with recallog.sync.Memory.open("./memory") as memory:
        graph = builder.compile(checkpointer=RecallogSaver(memory, space="home", agent="assistant"))
    ```

    A checkpoint is written completely or not at all, even if the process is killed.
    """

    def __init__(self, memory: AnyMemory, *, space: str, agent: str, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self._items = Items(memory, space, agent)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint."""
        address = _Address.of(config)
        values = checkpoint["channel_values"]
        events: list[Event] = []
        for channel, version in new_versions.items():
            stored = {"channel": channel, "version": version}
            if channel in values:
                more = self._dumped(address, values[channel])
                events += more.parts
                stored |= more.fields
            events.append(self._items.put(address.namespace(VALUES), _value_key(channel, version), stored))
        rest = self._dumped(address, {name: value for name, value in checkpoint.items() if name != "channel_values"})
        about = self._dumped(address, get_checkpoint_metadata(config, metadata))
        whole = {
            "thread": address.thread,
            "graph": address.graph,
            "id": checkpoint["id"],
            "parent": get_checkpoint_id(config),
            "checkpoint": rest.fields,
            "metadata": about.fields,
        }
        written = self._items.put(address.namespace(CHECKPOINTS), name_of(checkpoint["id"]), whole)
        self._items.change([*events, *rest.parts, *about.parts, written])
        return address.config(checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store the writes of a task since a checkpoint. A write that is already stored is not changed."""
        address = _Address.of(config)
        namespace = address.namespace(WRITES, config["configurable"]["checkpoint_id"])
        events: list[Event] = []
        for number, (channel, value) in enumerate(writes):
            number = WRITES_IDX_MAP.get(channel, number)
            dumped = self._dumped(address, value)
            stored = {"task": task_id, "path": task_path, "number": number, "channel": channel, **dumped.fields}
            key = name_of(f"{task_id}/{number}")
            events += [*dumped.parts, self._items.put(namespace, key, stored, only_new=number >= 0)]
        self._items.change(events)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """A checkpoint by its id, or the newest one of a thread; None if there is none."""
        address = _Address.of(config)
        id_ = get_checkpoint_id(config)
        if id_ is not None:
            found = self._items.get(address.namespace(CHECKPOINTS), name_of(id_))
        else:
            # Ids increase with time, and so do the positions of changes.
            found = next(self._items.below(address.namespace(CHECKPOINTS), newest_first=True, page=1), None)
        return None if found is None else self._tuple(found.value)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints of a thread, or of all threads, the newest first."""
        count = 0
        for stored in self._listed(config):
            if before is not None and (end := get_checkpoint_id(before)) is not None and stored["id"] >= end:
                continue
            if limit is not None and count >= limit:
                return
            metadata = self._loaded(_Address(stored["thread"], stored["graph"]), stored["metadata"])
            if all(metadata.get(name) == wanted for name, wanted in (filter or {}).items()):
                count += 1
                yield self._tuple(stored)

    def delete_thread(self, thread_id: str) -> None:
        """Delete the checkpoints of a thread, and the writes of its tasks."""
        self._delete(self._items.below((ROOT, name_of(str(thread_id)))))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs, and the writes of tasks since them. Values that other checkpoints may share
        are kept."""
        runs = {str(each) for each in run_ids}
        for stored in list(self._listed(None)):
            address = _Address(stored["thread"], stored["graph"])
            if self._loaded(address, stored["metadata"]).get("run_id") in runs:
                self._delete(self._of_checkpoint(stored))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy the checkpoints of a thread, and the writes of its tasks, to another thread."""
        source, target = name_of(str(source_thread_id)), name_of(str(target_thread_id))
        oldest_first = sorted(self._items.below((ROOT, source)), key=lambda item: item.position)
        events = []
        for item in oldest_first:
            value = item.value | {"thread": str(target_thread_id)} if _kind_of(item) == CHECKPOINTS else item.value
            events.append(self._items.put((ROOT, target, *item.namespace[2:]), item.key, value))
        self._items.change(events)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete old checkpoints of threads: all (`delete`), or all except the newest of each graph in them, and those
        from which channels that store differences are rebuilt (`keep_latest`)."""
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"strategy: {strategy!r} is neither keep_latest nor delete")
        for thread in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread)
                continue
            by_graph: dict[str, list[Mapping[str, Any]]] = {}
            for stored in self._listed({"configurable": {"thread_id": thread}}):
                by_graph.setdefault(stored["graph"], []).append(stored)
            for checkpoints in by_graph.values():
                kept = self._needed(checkpoints)
                for stored in checkpoints:
                    if stored["id"] not in kept:
                        self._delete(self._of_checkpoint(stored))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `get_tuple`, in another thread."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list`, in another thread."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (each := await asyncio.to_thread(next, found, None)) is not None:
            yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `put`, in another thread."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """As `put_writes`, in another thread."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """As `delete_thread`, in another thread."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `delete_for_runs`, in another thread."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `copy_thread`, in another thread."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As `prune`, in another thread."""
        await asyncio.to_thread(self.prune, thread_ids, strategy=strategy)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """A version of a channel. It sorts after `current`, and differs from the versions of other branches of a
        thread."""
        number = int(current.partition(".")[0]) + 1 if current is not None else 1
        return f"{number:032}.{random.random():016}"

    def _listed(self, config: RunnableConfig | None) -> Iterable[Mapping[str, Any]]:
        """The stored parts of the checkpoints that a config names, the newest first."""
        below: Sequence[str]
        if config is None:
            below, wanted = [ROOT], None
        else:
            configured = config["configurable"]
            address = _Address.of(config)
            graphs = configured.get("checkpoint_ns") is not None
            below = address.namespace(CHECKPOINTS) if graphs else [ROOT, name_of(address.thread)]
            wanted = get_checkpoint_id(config)
        found = (item.value for item in self._items.below(below, newest_first=True) if _kind_of(item) == CHECKPOINTS)
        return found if wanted is None else (each for each in found if each["id"] == wanted)

    def _tuple(self, stored: Mapping[str, Any]) -> CheckpointTuple:
        address = _Address(stored["thread"], stored["graph"])
        checkpoint = self._loaded(address, stored["checkpoint"])
        versions = checkpoint["channel_versions"].items()
        values = {channel: self._value(address, channel, version) for channel, version in versions}
        present = {channel: value[0] for channel, value in values.items() if value}
        writes = [item.value for item in self._items.below(address.namespace(WRITES, stored["id"]))]
        writes.sort(key=lambda write: writes_sort_key(write["path"], write["task"], write["number"]))
        parent = stored["parent"]
        return CheckpointTuple(
            config=address.config(stored["id"]),
            checkpoint=cast("Checkpoint", {**checkpoint, "channel_values": present}),
            metadata=self._loaded(address, stored["metadata"]),
            parent_config=None if parent is None else address.config(parent),
            pending_writes=[(each["task"], each["channel"], self._loaded(address, each)) for each in writes],
        )

    def _value(self, address: _Address, channel: str, version: object) -> tuple[Any, ...]:
        """The value of a channel in a version; () if there is none."""
        item = self._items.get(address.namespace(VALUES), _value_key(channel, version))
        return () if item is None or "type" not in item.value else (self._loaded(address, item.value),)

    def _needed(self, newest_first: Sequence[Mapping[str, Any]]) -> set[str]:
        """The ids of the newest checkpoint, and of earlier ones up to one with the values of all its channels."""
        by_id = {each["id"]: each for each in newest_first}
        current: Mapping[str, Any] | None = newest_first[0]
        kept: set[str] = set()
        missing: set[str] | None = None
        while current is not None and (missing is None or missing):
            kept.add(current["id"])
            checkpoint = self._tuple(current).checkpoint
            has = checkpoint["channel_values"].keys()
            missing = set(checkpoint["channel_versions"]) - has if missing is None else missing - has
            current = by_id.get(current["parent"])
        return kept

    def _of_checkpoint(self, stored: Mapping[str, Any]) -> Iterator[ItemView]:
        address = _Address(stored["thread"], stored["graph"])
        item = self._items.get(address.namespace(CHECKPOINTS), name_of(stored["id"]))
        if item is not None:
            yield item
        yield from self._items.below(address.namespace(WRITES, stored["id"]))

    def _delete(self, items: Iterable[ItemView]) -> None:
        if events := [self._items.delete(item.namespace, item.key) for item in items]:
            self._items.change(events)

    def _dumped(self, address: _Address, value: Any) -> "_Dumped":
        type_, data = self.serde.dumps_typed(value)
        text = base64.b64encode(data).decode()
        if len(text) <= PART_CHARS:
            return _Dumped({"type": type_, "data": text}, [])
        digest = hashlib.blake2b(data, digest_size=16).hexdigest()
        pieces = [text[start : start + PART_CHARS] for start in range(0, len(text), PART_CHARS)]
        namespace = address.namespace(PARTS, digest)
        parts = [self._items.put(namespace, f"{number:06}", piece) for number, piece in enumerate(pieces)]
        return _Dumped({"type": type_, "parts": digest}, parts)

    def _loaded(self, address: _Address, fields: Mapping[str, Any]) -> Any:
        text = fields.get("data")
        if text is None:
            text = "".join(item.value for item in self._items.below(address.namespace(PARTS, fields["parts"])))
        return self.serde.loads_typed((fields["type"], base64.b64decode(text)))


class _Dumped(NamedTuple):
    """A value in the form of items."""

    fields: Mapping[str, Any]
    parts: Sequence[Event]
    """The events that write the pieces of a large value."""


def _kind_of(item: ItemView) -> str:
    return item.namespace[3]


def _value_key(channel: str, version: object) -> str:
    return name_of(f"{channel}@{version}")
