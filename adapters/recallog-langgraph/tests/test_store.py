"""The store gives the same answers as LangGraph's `InMemoryStore`."""

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from recallog import InvalidArgument
from recallog.sync import Memory
from recallog_langgraph import RecallogStore

LABELS = st.sampled_from(["a", "ab", "b", "%", "_", "/", "a/b", "é", "langgraph store"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
PREFIXES = st.lists(LABELS, max_size=2).map(tuple)
KEYS = st.sampled_from(["k", "K", "a/b", "%2F", "*", "key with blanks", "é"])
TEXTS = st.sampled_from(["plums", "the miller owes flour", "Lea visits on Friday", ""])
VALUES = st.fixed_dictionaries(
    {"text": TEXTS, "n": st.integers(-3, 3), "nested": st.fixed_dictionaries({"x": st.integers(0, 2)})},
    optional={"tags": st.lists(TEXTS, max_size=2)},
)
FILTERS = st.one_of(
    st.none(),
    st.fixed_dictionaries({"text": TEXTS}),
    st.fixed_dictionaries({"nested": st.fixed_dictionaries({"x": st.integers(0, 2)})}),
    st.fixed_dictionaries({"tags": st.lists(TEXTS, max_size=2)}),
    st.builds(
        lambda one, other: {"n": {one: 0, other: 2}},
        st.sampled_from(["$eq", "$ne", "$gt", "$gte"]),
        st.sampled_from(["$lt", "$lte", "$ne"]),
    ),
)
INDEXED = st.sampled_from([None, False, ["text"], ["tags[*]"]])
GETS = st.builds(GetOp, NAMESPACES, KEYS)
PUTS = st.builds(PutOp, NAMESPACES, KEYS, st.none() | VALUES, INDEXED)
CONDITIONS = st.lists(
    st.builds(
        MatchCondition,
        st.sampled_from(["prefix", "suffix"]),
        st.lists(LABELS | st.just("*"), min_size=1, max_size=2).map(tuple),
    ),
    max_size=2,
).map(tuple)
MANY = 1_000


def embed(texts: list[str]) -> list[list[float]]:
    """Vectors of eight dimensions that depend only on the texts."""
    return [[float(byte) - 100 for byte in hashlib.sha256(text.encode()).digest()[:8]] for text in texts]


INDEX: Any = {"dims": 8, "embed": embed, "fields": ["text"]}


def shown(result: Any) -> Any:
    """A result without its times, and a search without its order."""
    if isinstance(result, list) and result and not isinstance(result[0], tuple):
        scored = [
            (each.namespace, each.key, each.value, None if each.score is None else round(each.score, 5))
            for each in result
        ]
        return sorted(scored, key=repr)
    return result if result is None or isinstance(result, list) else (result.namespace, result.key, result.value)


def each_text_once(ops: list[Op]) -> list[Op]:
    """`InMemoryStore` fails where two values of a batch have the same text: the later ones are not indexed."""
    known: set[str] = set()
    chosen: list[Op] = []
    for op in ops:
        texts = [op.value["text"], *op.value.get("tags", ())] if isinstance(op, PutOp) and op.value else []
        chosen.append(op._replace(index=False) if known.intersection(texts) or len(set(texts)) < len(texts) else op)
        known.update(texts)
    return chosen


class LikeInMemoryStore(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.memory = Memory.in_memory()
        self.ours = RecallogStore(self.memory, space="home", agent="assistant", index=INDEX)
        self.theirs = InMemoryStore(index=INDEX)

    def teardown(self) -> None:
        self.memory.close()

    @rule(ops=st.lists(st.one_of(PUTS, GETS), min_size=1, max_size=5).map(each_text_once))
    def batch(self, ops: list[Op]) -> None:
        assert list(map(shown, self.ours.batch(ops))) == list(map(shown, self.theirs.batch(ops)))

    @rule(op=st.builds(SearchOp, PREFIXES, FILTERS, st.just(MANY), st.just(0), st.none() | TEXTS))
    def search(self, op: SearchOp) -> None:
        assert list(map(shown, self.ours.batch([op]))) == list(map(shown, self.theirs.batch([op])))

    @rule(prefix=PREFIXES, filter=FILTERS, size=st.integers(1, 3))
    def search_by_pages(self, prefix: tuple[str, ...], filter: Any, size: int) -> None:
        pages = []
        while page := self.ours.search(prefix, filter=filter, limit=size, offset=len(pages)):
            pages += page
        assert shown(pages) == shown(self.theirs.search(prefix, filter=filter, limit=MANY))

    @rule(conditions=CONDITIONS, depth=st.none() | st.integers(1, 3), limit=st.integers(1, 4), offset=st.integers(0, 2))
    def list_namespaces(self, conditions: Any, depth: int | None, limit: int, offset: int) -> None:
        (everything,) = self.theirs.batch([ListNamespacesOp(conditions, None, MANY, 0)])
        # `InMemoryStore` also lists namespaces without items, such as those that were only read.
        present = [
            each for each in everything if any(item.namespace == each for item in self.theirs.search(each, limit=MANY))
        ]
        expected = sorted({each if depth is None else each[:depth] for each in present})[offset : offset + limit]
        assert self.ours.batch([ListNamespacesOp(conditions, depth, limit, offset)]) == [expected]

    @invariant()
    def has_the_same_items(self) -> None:
        assert shown(self.ours.search((), limit=MANY)) == shown(self.theirs.search((), limit=MANY))


TestLikeInMemoryStore = LikeInMemoryStore.TestCase
TestLikeInMemoryStore.settings = settings(
    max_examples=100, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path) as opened:
        yield opened


def store_of(memory: Memory, **options: Any) -> RecallogStore:
    return RecallogStore(memory, space="home", agent="assistant", **options)


def test_a_search_finds_what_means_the_same(memory: Memory) -> None:
    store = store_of(memory)
    store.put(("ann", "likes"), "1", {"text": "Ann is allergic to nuts."})
    store.put(("ann", "likes"), "2", {"text": "The bus leaves at nine."})
    (hit,) = store.search(("ann",), query="What must the cake not have in it?", limit=1)
    assert hit.key == "1"


def test_a_store_without_an_index_ranks_nothing(memory: Memory) -> None:
    store = store_of(memory, index=False)
    store.put(("ann",), "1", {"text": "Ann is allergic to nuts."})
    (hit,) = store.search(("ann",), query="nuts")
    assert hit.score is None


def test_reads_of_a_batch_see_the_state_before_its_writes_and_the_last_write_counts(memory: Memory) -> None:
    store = store_of(memory, index=False)
    store.put(("a",), "k", {"n": 1})
    before, *_ = store.batch([GetOp(("a",), "k"), PutOp(("a",), "k", {"n": 2}), PutOp(("a",), "k", {"n": 3})])
    assert (before.value, store.get(("a",), "k").value) == ({"n": 1}, {"n": 3})


def test_it_is_used_in_an_event_loop(memory: Memory) -> None:
    async def run() -> Any:
        store = store_of(memory, index=False)
        await store.aput(("a",), "k", {"n": 1})
        return (await store.aget(("a",), "k")).value

    assert asyncio.run(run()) == {"n": 1}


def test_a_namespace_of_too_many_labels_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidArgument, match="8 labels, at most 7"):
        store_of(memory).put(("a",) * 8, "k", {"n": 1})


def test_a_label_with_a_period_is_refused(memory: Memory) -> None:
    with pytest.raises(InvalidNamespaceError):
        store_of(memory).batch([GetOp(("a.b",), "k")])


def test_an_item_without_a_number_is_not_greater_than_one(memory: Memory) -> None:
    store = store_of(memory, index=False)
    store.put(("a",), "k", {"n": "many"})
    assert store.search(("a",), filter={"n": {"$gt": 1}}) == []


def test_a_deleted_item_leaves_nothing(memory: Memory) -> None:
    store = store_of(memory)
    store.put(("a",), "k", {"text": "plums"})
    store.delete(("a",), "k")
    assert memory.items.list("home", "assistant").items == ()
