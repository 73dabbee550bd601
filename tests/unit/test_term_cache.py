"""The cache of terms: bounded by bytes, least recently used entries removed first, separate per generation."""

import random
import tracemalloc
from collections import OrderedDict
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from recallog import Memory, Settings
from recallog.retrieval import by_words
from recallog.retrieval.term_cache import MemoryTerms, TermCache
from recallog_projections.views.episodic import RememberedEvent
from recallog_schemas import codec
from support.events import event, numbered, run


def of(agent: str, words: int = 20) -> MemoryTerms:
    """Terms that share no text with those of other calls; the size depends only on the number of words."""
    weights = {f"{random.getrandbits(64):016x}": random.random() for _ in range(words)}
    return MemoryTerms(agent, "agent.spoke", f"session of {agent}", 0, False, 0, 0, weights or None)


ONE = of("baker").size_bytes


def remembered(offset: int, text: str | None = None) -> RememberedEvent:
    return RememberedEvent(offset, codec.encode(event(payload={"text": "Bread!"})), 0, 0.5, text)


def test_its_bytes_stay_within_the_bound_whatever_the_sizes() -> None:
    cache = TermCache(50 * ONE)
    for offset in range(500):
        cache.put("g", offset, of("baker", words=offset % 60))
        assert cache.size_bytes <= 50 * ONE
    assert len(cache) > 10


def test_an_entry_larger_than_the_bound_is_not_cached() -> None:
    cache = TermCache(ONE)
    cache.put("g", 0, of("baker", words=2_000))
    assert (len(cache), cache.size_bytes) == (0, 0)


def test_its_size_estimate_is_close_to_the_memory_it_uses() -> None:
    bytes_max = 4 * 1024 * 1024
    tracemalloc.start()
    try:
        cache = TermCache(bytes_max)
        for offset in range(3 * bytes_max // ONE):
            cache.put("g", offset, of(f"agent {offset}"))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.7 * bytes_max < taken < 1.05 * bytes_max


def test_the_least_recently_used_is_removed_first() -> None:
    cache = TermCache(3 * ONE)
    for offset in range(3):
        cache.put("g", offset, of("baker"))
    assert cache.get("g", 0) is not None
    cache.put("g", 3, of("baker"))
    assert [cache.get("g", offset) is not None for offset in range(4)] == [True, False, True, True]


@given(st.lists(st.integers(0, 9)), st.integers(1, 6))
def test_it_holds_the_most_recently_used_entries(offsets: list[int], most: int) -> None:
    cache, model = TermCache(most * ONE), OrderedDict[int, None]()
    for offset in offsets:
        assert (cache.get("g", offset) is not None) == (offset in model)
        if offset not in model:
            cache.put("g", offset, of("baker"))
        model[offset] = None
        model.move_to_end(offset)
        while len(model) > most:
            model.popitem(last=False)
    assert len(cache) == len(model)


def test_another_generation_gives_an_offset_another_text() -> None:
    cache = TermCache()

    def found(generation: str, text: str | None) -> float:
        compared = by_words.Compared([remembered(7, text)])
        (candidate,) = by_words.candidates(compared, generation, cache, ["oven"]).candidates
        return candidate.keyword

    assert found("old", "The oven is cold.") > 0
    assert found("new", "Nothing is cold.") == 0
    assert found("old", "The oven is cold.") > 0
    assert len(cache) == 2


def test_a_rebuilt_generation_uses_no_entry_of_the_replaced_one(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(Settings(home=tmp_path, index="off")) as memory:
            await memory.publish_many(numbered(10))
            before = await memory.recall("village", "baker", "village 3")
            again = await memory.recall("village", "baker", "village 3")
            assert (len(memory._access.term_cache), again) == (10, before)
            await memory.admin.rebuild()
            after = await memory.recall("village", "baker", "village 3")
            assert (len(memory._access.term_cache), after.hits) == (20, before.hits)
            assert after.generation != before.generation

    run(work())


def test_each_memory_has_a_cache_of_its_own(tmp_path: Path) -> None:
    async def work() -> None:
        async with (
            Memory.open(Settings(home=tmp_path, index="off")) as memory,
            Memory.open(Settings(home=tmp_path, index="off")) as other,
        ):
            await memory.publish_many(numbered(10))
            await memory.recall("village", "baker", "village 3")
            assert (len(memory._access.term_cache), len(other._access.term_cache)) == (10, 0)

    run(work())
