"""LangGraph's store: values of an agent under a namespace and a key, as items.

Item                                                 Value
("langgraph.store", *namespace) / key                the value as it was put
("langgraph.vectors", *namespace) / key              the vectors of its texts
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)

from recallog import InvalidArgument
from recallog.views import ItemView
from recallog_langgraph import filters
from recallog_langgraph.items import AnyMemory, Event, Items
from recallog_langgraph.vectors import Vectorizer
from recallog_schemas import limits

ROOT = "langgraph.store"
VECTORS = "langgraph.vectors"
LABELS_MAX = limits.ITEM_NAMESPACE_NAMES_MAX - 1


class RecallogStore(BaseStore):
    """A store of LangGraph in a memory of Recallog.

    ```python
    with recallog.sync.Memory.open("./memory") as memory:
        graph = builder.compile(store=RecallogStore(memory, space="home", agent="assistant"))
    ```

    Namespaces have at most 7 labels, values at most 64 KiB. Namespaces and keys are kept in the normal form NFC.
    """

    supports_ttl = False

    def __init__(
        self,
        memory: AnyMemory,
        *,
        space: str,
        agent: str,
        index: IndexConfig | Literal[False] | None = None,
    ) -> None:
        """`index` defines the texts that searches with a query compare. By default, these are all texts of a value,
        compared by Recallog's own model, which runs on this machine. With an `IndexConfig`, they are the texts of its
        fields, compared by its embeddings. With False, such searches do not rank."""
        self._items = Items(memory, space, agent)
        self._vectorizer = None if index is False else Vectorizer(index)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations. Reads see the state before the writes. If a key is written twice, the last write
        counts."""
        asked = list(ops)
        for op in asked:
            validate_op_namespace(op)
        results = [self._answer(op) for op in asked]
        self._put({(op.namespace, op.key): op for op in asked if isinstance(op, PutOp)}.values())
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`, in another thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _answer(self, op: Op) -> Result:
        match op:
            case GetOp():
                found = self._items.get((ROOT, *_checked(op.namespace)), op.key)
                return None if found is None else Item(**_fields(found))
            case SearchOp():
                return self._search(op)
            case ListNamespacesOp():
                return self._namespaces(op)
            case PutOp():
                return None
            case _:
                raise ValueError(f"{type(op).__name__}: is not an operation of stores")

    def _search(self, op: SearchOp) -> list[SearchItem]:
        prefix = _checked(op.namespace_prefix)
        found = self._items.below((ROOT, *prefix), newest_first=True)
        chosen = (each for each in found if filters.passes(each.value, op.filter))
        scored = self._ranked(op.query, prefix, chosen) if op.query else ((each, None) for each in chosen)
        shown: list[SearchItem] = []
        for number, (each, score) in enumerate(scored):
            if number >= op.offset + op.limit:
                break
            if number >= op.offset:
                shown.append(SearchItem(**_fields(each), score=score))
        return shown

    def _ranked(
        self, query: str, prefix: Sequence[str], found: Iterator[ItemView]
    ) -> Iterator[tuple[ItemView, float | None]]:
        """The items whose texts are most similar first, then those without vectors, the newest first."""
        chosen = list(found)
        if self._vectorizer is None or not chosen:
            return iter([(each, None) for each in chosen])
        vectors = {(each.namespace[1:], each.key): each.value for each in self._items.below((VECTORS, *prefix))}
        scores = self._vectorizer.score(query, [vectors.get((each.namespace[1:], each.key), ()) for each in chosen])
        pairs = list(zip(chosen, scores, strict=True))
        return iter(sorted(pairs, key=lambda pair: float("-inf") if pair[1] is None else pair[1], reverse=True))

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        prefixes = [each.path for each in conditions if each.match_type == "prefix" and "*" not in each.path]
        below = max(prefixes, key=len, default=())
        known = dict.fromkeys(each.namespace[1:] for each in self._items.below((ROOT, *_checked(below))))
        matching = [each for each in known if all(filters.matches(each, condition) for condition in conditions)]
        listed = sorted({each if op.max_depth is None else each[: op.max_depth] for each in matching})
        return listed[op.offset : op.offset + op.limit]

    def _put(self, ops: Iterable[PutOp]) -> None:
        listed = list(ops)
        events: list[Event] = []
        for op, vectors in zip(listed, self._vectors_of(listed), strict=True):
            events += self._changed(ROOT, op, op.value)
            events += self._changed(VECTORS, op, vectors or None)
        if events:
            self._items.change(events)

    def _changed(self, root: str, op: PutOp, value: object | None) -> list[Event]:
        namespace = (root, *_checked(op.namespace))
        if value is not None:
            return [self._items.put(namespace, op.key, value)]
        return [self._items.delete(namespace, op.key)] if self._items.get(namespace, op.key) is not None else []

    def _vectors_of(self, ops: Sequence[PutOp]) -> list[list[str]]:
        if self._vectorizer is None:
            return [[] for _ in ops]
        return self._vectorizer.vectors_of([_indexed(op) for op in ops])


def _indexed(op: PutOp) -> tuple[Mapping[str, Any], Sequence[str] | None]:
    """The value of an operation, and the fields that searches compare; None means the fields of the store."""
    if op.value is None or op.index is False:
        return {}, ()
    return op.value, op.index


def _checked(namespace: Sequence[str]) -> Sequence[str]:
    if len(namespace) > LABELS_MAX:
        raise InvalidArgument(
            f"namespace: has {len(namespace)} labels, at most {LABELS_MAX} are possible; join some of them",
            path="namespace",
            rule="too_long",
        )
    return namespace


def _fields(item: ItemView) -> dict[str, Any]:
    return {
        "namespace": item.namespace[1:],
        "key": item.key,
        "value": item.value,
        "created_at": item.at,  # as in `InMemoryStore`: a put creates the item again
        "updated_at": item.at,
    }
