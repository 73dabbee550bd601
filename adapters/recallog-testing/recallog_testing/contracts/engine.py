"""The contract of engines. An adapter's test class inherits the suite and implements `make`.

The tests of a class share an engine, and most of them a collection, in which each uses a separate space: points of
other spaces must not change a result.
"""

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID, uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from recallog_projections.index.engines.engine import (
    EVERYBODY,
    Engine,
    Filter,
    Hit,
    Point,
    Search,
    Sparse,
    StoredPoint,
)
from recallog_schemas.errors import IndexLost
from recallog_testing.running import one_loop, run

DIMENSION = 32
NOON = 1_772_366_400_000_000
"""Microseconds since 1970. Bounds of this size must not be rounded."""

AGENTS = ["baker", "miller", "Zoë 🥖"]
KINDS = ["agent.spoke", "agent.thought"]
SESSIONS = ["", "one", "two"]
TYPES = ["fact", "lesson"]
TIERS = ["fast", "slow"]
"""The tiers of entries. Points of events do not have a tier."""

_spaces = count(1)


def new_space() -> str:
    """A space that no other test uses."""
    return f"räume/{next(_spaces)}"


def unit(seed: int, *shape: int) -> NDArray[np.float32]:
    """Random vectors of length 1."""
    vectors = np.random.default_rng(seed).standard_normal((*shape, DIMENSION))
    of_length_1: NDArray[np.float32] = (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)
    return of_length_1


def point(
    space: str,
    seed: int = 0,
    *,
    id: str = "",  # noqa: A002
    passages: int = 1,
    sparse: Sparse | None = None,
    **payload: Any,
) -> Point:
    """A point whose vectors are those of `seed`."""
    defaults = {"agent": "baker", "kind": "agent.spoke", "session": "", "at": NOON, "offset": seed}
    fields = {"space": space, "readers": [EVERYBODY], **defaults, **payload}
    return Point(
        id or str(uuid4()),
        unit(seed, passages),
        sparse or Sparse([seed, 2**32 - 1], [1.0, 0.5]),
        fields,
    )


def everything(space: str, *readers: str) -> Filter:
    return Filter(space, [EVERYBODY, *readers])


def ids(found: Collection[Hit | Point | StoredPoint]) -> list[str]:
    return [point.id for point in found]


def pages(engine: Engine, collection: str, limit: int) -> list[StoredPoint]:
    """All points, page by page."""
    found: list[StoredPoint] = []
    while page := run(engine.scroll(collection, found[-1].id if found else None, limit)):
        assert len(page) <= limit
        found += page
    return found


# The formulas, without an engine.


def passes(wanted: Filter, point: Point) -> bool:
    payload = point.payload
    at_present = wanted.offset_until is None and wanted.at_until is None
    return (
        payload["space"] in ([wanted.space] if at_present else [wanted.space, f"-{wanted.space}"])
        and not set(payload["readers"]).isdisjoint(wanted.readers)
        and (wanted.agents is None or payload["agent"] in wanted.agents)
        and (wanted.kinds is None or payload["kind"] in wanted.kinds)
        and (wanted.kinds_except is None or payload["kind"] not in wanted.kinds_except)
        and (wanted.types is None or payload.get("type") in wanted.types)
        and (wanted.tiers is None or payload.get("tier") in wanted.tiers)
        and (wanted.importance_min is None or payload.get("importance", -1) >= wanted.importance_min)
        and (wanted.session is None or payload["session"] == wanted.session)
        and (wanted.since is None or payload["at"] >= wanted.since)
        and (wanted.until is None or payload["at"] < wanted.until)
        and _is_form_of(wanted.offset_until, payload["offset"], payload.get("since"), payload.get("until"))
        and _is_form_of(wanted.at_until, payload["at"], payload.get("since_at"), payload.get("until_at"))
        and (wanted.offset_from is None or payload["offset"] >= wanted.offset_from)
        and (wanted.ids is None or point.id in wanted.ids)
    )


def _is_form_of(moment: int | None, written: int, since: int | None, until: int | None) -> bool:
    """Whether a point had been written at `moment`, and a form of an entry had begun and not ended."""
    begun = since is None or moment is None or since <= moment
    return moment is None or (written <= moment and begun and (until is None or until > moment))


def score(search: Search, point: Point, points: Sequence[Point]) -> float | None:
    """The score of `point` among `points`; None if it cannot be a hit."""
    if search.dense is not None:
        return float((point.dense @ search.dense).max()) if len(point.dense) else None
    if search.sparse is None:
        return 0.0
    assert search.corpus is not None
    corpus = [set(other.sparse.indices) for other in points if passes(search.corpus, other)]
    weights = dict(zip(point.sparse.indices, point.sparse.values, strict=True))
    total = None
    for index, value in zip(search.sparse.indices, search.sparse.values, strict=True):
        if index in weights:
            having = sum(index in terms for terms in corpus)
            idf = math.log(1 + (len(corpus) - having + 0.5) / (having + 0.5))
            total = (total or 0.0) + value * weights[index] * idf
    return total


def scores(search: Search, points: Sequence[Point]) -> dict[str, float]:
    """The scores of all points that can be hits."""
    assert search.filter is not None
    found = {point.id: score(search, point, points) for point in points if passes(search.filter, point)}
    return {id_: number for id_, number in found.items() if number is not None}


# Random points of a space, and searches over them.

TERMS = [0, 1, 2, 3, 2**31, 2**32 - 1]


@dataclass(frozen=True)
class Case:
    points: list[Point]
    wanted: Filter
    searches: list[Search]


def crowd(space: str, size: int, seed: int) -> list[Point]:
    """Points that differ in every field, so that any condition of a filter is met by some of them and not by others."""
    chance = random.Random(seed)

    def weights() -> Sparse:
        terms = chance.sample(TERMS, chance.randint(1, 4))
        return Sparse(terms, [chance.uniform(0.1, 3) for _ in terms])

    def form() -> dict[str, Any]:
        """The fields of an event, or of a form of an entry, which may have ended."""
        begun = {"since": chance.randrange(10), "since_at": NOON + chance.randrange(10)}
        ended = {"until": chance.randrange(10), "until_at": NOON + chance.randrange(10)}
        present = {"until": None, "until_at": None}
        of_space = {"space": space}
        return chance.choice((of_space, of_space | begun | present, {"space": f"-{space}"} | begun | ended))

    return [
        point(
            seed=chance.randrange(1_000),
            passages=chance.randrange(4),
            sparse=weights(),
            readers=chance.sample([EVERYBODY, EVERYBODY, *AGENTS], chance.randint(1, 3)),
            agent=chance.choice(AGENTS),
            kind=chance.choice(KINDS),
            session=chance.choice(SESSIONS),
            importance=chance.choice((0, 0.25, 0.3, 1)),
            **chance.choice(({}, *({"type": name, "tier": tier} for name in TYPES for tier in TIERS))),
            **form(),
            at=NOON + chance.randrange(10),
            offset=chance.randrange(10),
        )
        for _ in range(size)
    ]


def some(names: Sequence[str]) -> st.SearchStrategy[list[str] | None]:
    return st.none() | st.lists(st.sampled_from(names), max_size=2, unique=True)


@st.composite
def filters(draw: st.DrawFn, space: str, points: Sequence[Point]) -> Filter:
    """Filters with few conditions as often as with many, since many conditions match few points."""
    conditions = {
        "agents": some([*AGENTS, "nobody"]),
        "kinds": some([*KINDS, "nobody.does"]),
        "kinds_except": some([*KINDS, "nobody.does"]),
        "types": some([*TYPES, "nothing"]),
        "tiers": some(TIERS),
        "importance_min": st.sampled_from([0.0, 0.25, 0.3, 1.0]),
        "session": st.sampled_from([*SESSIONS, "none"]),
        "since": st.integers(NOON, NOON + 9),
        "until": st.integers(NOON, NOON + 10),
        "offset_from": st.integers(0, 9),
        "offset_until": st.integers(0, 9),
        "at_until": st.integers(NOON, NOON + 9),
        "ids": st.sets(st.sampled_from([*ids(points), str(UUID(int=1))])),
    }
    named = draw(st.sets(st.sampled_from(sorted(conditions)), max_size=draw(st.integers(0, 4))))
    readers = draw(st.just([EVERYBODY, *AGENTS]) | st.lists(st.sampled_from([EVERYBODY, *AGENTS]), unique=True))
    return Filter(space, readers, **{name: draw(conditions[name]) for name in sorted(named)})  # type: ignore[arg-type]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    space = new_space()
    seeds = st.integers(0, 2**32 - 1)
    points = crowd(space, draw(st.sampled_from([25, 3, 1, 0])), draw(seeds))
    wanted = draw(filters(space, points))
    corpus = draw(st.just(wanted) | st.just(everything(space)) | filters(space, points))
    limit = draw(st.integers(1, 50))
    terms = draw(st.dictionaries(st.sampled_from(TERMS), st.floats(0.125, 3, width=32), min_size=1))
    searches = [
        Search(wanted, limit, dense=unit(draw(seeds))),
        Search(wanted, limit, sparse=Sparse(list(terms), list(terms.values())), corpus=corpus),
        Search(wanted, limit),
    ]
    return Case(points, wanted, searches)


class EngineContract(ABC):
    """Collections, points, filters and scores."""

    error_max: ClassVar[float] = 1e-2
    """The largest error of a score by dense vectors, which are stored with 8 bits per number, and of their numbers."""

    @classmethod
    @abstractmethod
    def make(cls, folder: Path) -> Engine:
        """An engine without collections."""

    @pytest.fixture(scope="class")
    @classmethod
    def engine(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
        with one_loop():
            engine = cls.make(tmp_path_factory.mktemp("engine"))
            yield engine
            for collection in run(engine.collections()):
                run(engine.drop(collection))
            run(engine.close())

    @pytest.fixture(scope="class")
    @classmethod
    def shared(cls, engine: Engine) -> str:
        """A collection to which every test adds points of a separate space."""
        run(engine.create("shared", DIMENSION))
        return "shared"

    @pytest.fixture
    def collection(self, engine: Engine) -> Iterator[str]:
        """A collection for one test."""
        run(engine.create("own", DIMENSION))
        yield "own"
        run(engine.drop("own"))

    @pytest.fixture
    def multilingual(self, engine: Engine) -> Iterator[str]:
        """A collection with vectors of two models, and three points: one with both vectors, two with one of them."""
        run(engine.create("multilingual", DIMENSION, multilingual=True))
        both, english, other = (point("village", seed, id=str(UUID(int=seed))) for seed in (1, 2, 3))
        points = [
            replace(both, multilingual=unit(11, 1)),
            english,
            replace(other, dense=unit(0, 0), multilingual=unit(13, 2)),
        ]
        run(engine.upsert("multilingual", points))
        yield "multilingual"
        run(engine.drop("multilingual"))

    # Vectors of a second model.

    def test_a_search_by_multilingual_vectors_compares_these_alone(self, engine: Engine, multilingual: str) -> None:
        search = Search(everything("village"), 5, dense=unit(13, 2)[1], multilingual=True)
        (found,) = run(engine.search(multilingual, [search]))
        assert [each.id for each in found] == [str(UUID(int=3)), str(UUID(int=1))]
        assert found[0].score == pytest.approx(1, abs=self.error_max)

    def test_a_search_by_the_first_model_finds_no_point_that_has_the_second_alone(
        self, engine: Engine, multilingual: str
    ) -> None:
        (found,) = run(engine.search(multilingual, [Search(everything("village"), 5, dense=unit(2, 1)[0])]))
        assert {each.id for each in found} == {str(UUID(int=1)), str(UUID(int=2))}

    def test_points_that_only_the_second_model_has_read_are_filtered(self, engine: Engine, multilingual: str) -> None:
        only = replace(everything("village"), only_multilingual=True)
        assert run(engine.count(multilingual, only)) == 1
        (found,) = run(engine.search(multilingual, [Search(only, 5, dense=unit(11, 1)[0], multilingual=True)]))
        assert [each.id for each in found] == [str(UUID(int=3))]

    def test_multilingual_vectors_are_retrieved_as_they_were_written(self, engine: Engine, multilingual: str) -> None:
        stored = run(engine.retrieve(multilingual, [str(UUID(int=3))], vectors=True))[str(UUID(int=3))]
        assert stored.dense is None
        assert stored.multilingual is not None
        assert np.allclose(stored.multilingual, unit(13, 2), atol=self.error_max)
        assert stored.damage == ""

    # Collections.

    def test_a_created_collection_is_there_and_empty(self, engine: Engine, collection: str) -> None:
        assert collection in run(engine.collections())
        assert run(engine.count(collection)) == 0
        assert run(engine.scroll(collection, None, 10)) == []

    def test_creating_a_collection_again_keeps_its_points(self, engine: Engine, collection: str) -> None:
        run(engine.upsert(collection, [point("village")]))
        run(engine.create(collection, DIMENSION))
        assert run(engine.count(collection)) == 1

    def test_a_dropped_collection_is_gone_and_a_new_one_is_empty(self, engine: Engine, collection: str) -> None:
        run(engine.upsert(collection, [point("village")]))
        run(engine.drop(collection))
        assert collection not in run(engine.collections())
        run(engine.create(collection, DIMENSION))
        assert run(engine.count(collection)) == 0

    def test_dropping_a_missing_collection_is_no_error(self, engine: Engine) -> None:
        run(engine.drop("nowhere"))

    def test_collections_do_not_share_points(self, engine: Engine, collection: str, shared: str) -> None:
        stays, goes = point(new_space()), point("village")
        run(engine.upsert(shared, [stays]))
        run(engine.upsert(collection, [goes]))
        assert ids(run(engine.scroll(collection, None, 10))) == [goes.id]
        assert run(engine.retrieve(shared, [goes.id])) == {}

    def test_no_call_recreates_a_lost_collection(self, engine: Engine) -> None:
        wanted = everything("village")
        for call in (
            lambda: engine.upsert("lost", [point("village")]),
            lambda: engine.upsert("lost", []),
            lambda: engine.delete("lost", [str(UUID(int=1))]),
            lambda: engine.delete("lost", []),
            lambda: engine.search("lost", [Search(wanted, 1, dense=unit(0))]),
            lambda: engine.search("lost", [Search(wanted, 0)]),
            lambda: engine.retrieve("lost", [str(UUID(int=1))]),
            lambda: engine.scroll("lost", None, 1),
            lambda: engine.count("lost"),
        ):
            with pytest.raises(IndexLost):
                run(call())
        assert "lost" not in run(engine.collections())

    # Points.

    def test_a_point_is_read_as_it_was_written(self, engine: Engine, shared: str) -> None:
        written = point(new_space(), 3, session="ß\u0000\n", text="Die Mühle 🔥 «brannte»", shared=True, turn=2**53)
        run(engine.upsert(shared, [written]))
        found = run(engine.retrieve(shared, [written.id], vectors=True))[written.id]
        assert found.payload == written.payload
        assert found.dense == pytest.approx(written.dense, abs=self.error_max)
        assert found.sparse is not None
        assert dict(zip(found.sparse.indices, found.sparse.values, strict=True)) == {3: 1.0, 2**32 - 1: 0.5}

    def test_a_point_that_is_read_and_written_again_keeps_its_vectors(self, engine: Engine, shared: str) -> None:
        written = point(new_space(), passages=3)
        run(engine.upsert(shared, [written]))
        first = run(engine.retrieve(shared, [written.id], vectors=True))[written.id].dense
        assert first is not None
        assert first.shape == (3, DIMENSION)
        run(engine.upsert(shared, [replace(written, dense=first)]))
        again = run(engine.retrieve(shared, [written.id], vectors=True))[written.id].dense
        assert again == pytest.approx(first, abs=1e-5)

    def test_writing_a_point_again_replaces_all_of_it(self, engine: Engine, shared: str) -> None:
        space = new_space()
        old, new = point(space, 1, session="old"), point(space, 2, agent="miller", passages=0)
        run(engine.upsert(shared, [old]))
        run(engine.upsert(shared, [replace(new, id=old.id)]))
        found = run(engine.retrieve(shared, [old.id], vectors=True))[old.id]
        assert found.payload == new.payload
        assert found.dense is None
        wanted = everything(space)
        assert run(engine.count(shared, wanted)) == 1
        by_old_terms, by_old_vector = run(
            engine.search(
                shared,
                [Search(wanted, 5, sparse=Sparse([1], [1.0])), Search(wanted, 5, dense=old.dense[0])],
            )
        )
        assert (by_old_terms, by_old_vector) == ([], [])

    def test_the_last_of_two_writes_of_a_point_in_one_call_wins(self, engine: Engine, shared: str) -> None:
        space = new_space()
        first = point(space, session="first")
        run(engine.upsert(shared, [first, replace(first, payload={**first.payload, "session": "last"})]))
        assert run(engine.retrieve(shared, [first.id]))[first.id].payload["session"] == "last"

    def test_a_deleted_point_is_nowhere_and_the_others_stay(self, engine: Engine, collection: str) -> None:
        written = [point("village", n, sparse=Sparse([7, n], [1.0, 1.0])) for n in range(4)]
        run(engine.upsert(collection, written))
        gone, *stays = written
        wanted = everything("village")
        assert run(engine.count(collection, wanted)) == 4
        run(engine.delete(collection, [gone.id]))
        assert run(engine.retrieve(collection, ids(written))).keys() == set(ids(stays))
        assert set(ids(pages(engine, collection, 2))) == set(ids(stays))
        assert (run(engine.count(collection)), run(engine.count(collection, wanted))) == (3, 3)
        by_vector, by_term, by_id = run(
            engine.search(
                collection,
                [
                    Search(wanted, 9, dense=gone.dense[0]),
                    Search(wanted, 9, sparse=Sparse([7], [1.0]), corpus=wanted),
                    Search(replace(wanted, ids=[gone.id]), 9),
                ],
            )
        )
        assert set(ids(by_vector)) == set(ids(by_term)) == set(ids(stays))
        assert by_id == []
        assert [hit.score for hit in by_term] == pytest.approx([math.log(1 + 0.5 / 3.5)] * 3, abs=1e-4)

    def test_deleting_a_point_again_or_a_missing_one_changes_nothing(self, engine: Engine, collection: str) -> None:
        stays, goes = point("village", 1), point("village", 2)
        run(engine.upsert(collection, [stays, goes]))
        for _ in range(2):
            run(engine.delete(collection, [goes.id, goes.id, str(UUID(int=1))]))
        run(engine.delete(collection, []))
        assert ids(pages(engine, collection, 9)) == [stays.id]

    def test_a_deleted_point_can_be_written_again(self, engine: Engine, collection: str) -> None:
        old = point("village", 1, session="old")
        run(engine.upsert(collection, [old]))
        run(engine.delete(collection, [old.id]))
        new = point("village", 2, id=old.id, session="new")
        run(engine.upsert(collection, [new]))
        assert run(engine.retrieve(collection, [old.id]))[old.id].payload == new.payload
        by_old, by_new = run(
            engine.search(
                collection,
                [Search(everything("village"), 9, sparse=Sparse([n], [1.0])) for n in (1, 2)],
            )
        )
        assert (ids(by_old), ids(by_new)) == ([], [old.id])

    def test_many_points_are_deleted_in_one_call(self, engine: Engine, collection: str) -> None:
        written = [point("village", n, id=str(UUID(int=n))) for n in range(1_200)]
        run(engine.upsert(collection, written))
        run(engine.delete(collection, ids(written[:1_100])))
        assert ids(pages(engine, collection, 500)) == ids(written[1_100:])

    def test_missing_points_are_not_retrieved(self, engine: Engine, shared: str) -> None:
        written = point(new_space())
        run(engine.upsert(shared, [written]))
        assert list(run(engine.retrieve(shared, [written.id, str(UUID(int=1)), written.id]))) == [written.id]
        assert run(engine.retrieve(shared, [])) == {}

    def test_only_the_requested_fields_are_retrieved(self, engine: Engine, shared: str) -> None:
        written = point(new_space(), 4)
        run(engine.upsert(shared, [written]))
        named = run(engine.retrieve(shared, [written.id], payload=["offset", "unknown"]))[written.id]
        assert named == StoredPoint(written.id, {"offset": 4})
        assert run(engine.retrieve(shared, [written.id], payload=[]))[written.id] == StoredPoint(written.id, {})

    def test_points_are_scrolled_in_the_order_of_their_ids(self, engine: Engine, collection: str) -> None:
        written = [point("village", n) for n in range(25)]
        run(engine.upsert(collection, written))
        for limit in (1, 7, 25, 100):
            assert ids(pages(engine, collection, limit)) == sorted(ids(written))

    def test_a_scroll_continues_after_a_missing_point(self, engine: Engine, collection: str) -> None:
        written = [point("village", n, id=str(UUID(int=n * 10))) for n in range(1, 4)]
        run(engine.upsert(collection, written))
        assert ids(run(engine.scroll(collection, str(UUID(int=15)), 10))) == ids(written[1:])
        assert run(engine.scroll(collection, written[-1].id, 10)) == []

    def test_a_scroll_returns_vectors_on_request(self, engine: Engine, collection: str) -> None:
        written = point("village")
        run(engine.upsert(collection, [written]))
        (bare,) = run(engine.scroll(collection, None, 10))
        (full,) = run(engine.scroll(collection, None, 10, vectors=True))
        assert bare == StoredPoint(written.id, written.payload)
        assert full.dense is not None
        assert full.sparse is not None

    # Searches.

    @pytest.mark.parametrize(
        "condition",
        [
            {"readers": [EVERYBODY]},
            {"readers": [EVERYBODY, "baker"]},
            {"readers": ["Zoë 🥖"]},
            {"agents": ["Zoë 🥖", "miller"]},
            {"agents": []},
            {"kinds": ["agent.thought"]},
            {"kinds_except": ["agent.thought"]},
            {"types": ["lesson"]},
            {"tiers": ["slow"]},
            {"importance_min": 0.3},
            {"session": ""},
            {"session": "one"},
            {"since": NOON + 4},
            {"until": NOON + 4},
            {"since": NOON + 4, "until": NOON + 5},
            {"offset_from": 4},
            {"offset_until": 4},
            {"at_until": NOON + 4},
        ],
        ids=str,
    )
    def test_each_condition_of_a_filter_is_applied(
        self, engine: Engine, shared: str, condition: dict[str, Any]
    ) -> None:
        space = new_space()
        points = crowd(space, 40, 1)
        run(engine.upsert(shared, points))
        wanted = replace(everything(space, *AGENTS), **condition)
        expected = {point.id for point in points if passes(wanted, point)}
        assert len(expected) < 40
        assert (len(expected) > 0) == (condition != {"agents": []})
        assert run(engine.count(shared, wanted)) == len(expected)
        every, by_vector = run(engine.search(shared, [Search(wanted, 100), Search(wanted, 100, dense=unit(0))]))
        assert set(ids(every)) == expected
        assert set(ids(by_vector)) == {point.id for point in points if point.id in expected and len(point.dense)}

    @pytest.mark.parametrize(
        "condition",
        [
            {"readers": ["baker"]},
            {"kinds": ["agent.spoke"]},
            {"agents": ["baker"]},
            {"session": "one"},
            {"until": NOON + 4},
            {"offset_from": 4},
            {"offset_until": 4},
            {"at_until": NOON + 4},
        ],
        ids=str,
    )
    def test_each_condition_of_a_corpus_is_applied(
        self, engine: Engine, shared: str, condition: dict[str, Any]
    ) -> None:
        space = new_space()
        points = crowd(space, 40, 2)
        run(engine.upsert(shared, points))
        corpus = replace(everything(space, *AGENTS), **condition)
        search = Search(everything(space, *AGENTS), 100, sparse=Sparse(TERMS, [1.0] * len(TERMS)), corpus=corpus)
        expected = scores(search, points)
        (hits,) = run(engine.search(shared, [search]))
        assert {hit.id: hit.score for hit in hits} == pytest.approx(expected, abs=1e-4, rel=1e-4)

    # Several classes inherit this test. Hypothesis reports that, but no example of one class is reused for another.
    @settings(max_examples=40, suppress_health_check=[HealthCheck.differing_executors, HealthCheck.too_slow])
    @given(case=cases())
    def test_searches_return_the_points_and_scores_of_the_formulas(
        self, engine: Engine, shared: str, case: Case
    ) -> None:
        run(engine.upsert(shared, case.points))
        assert run(engine.count(shared, case.wanted)) == sum(passes(case.wanted, point) for point in case.points)
        for search, hits in zip(case.searches, run(engine.search(shared, case.searches)), strict=True):
            expected = scores(search, case.points)
            assert len(set(ids(hits))) == len(hits)
            if search.dense is None and search.sparse is None:
                assert set(ids(hits)) <= expected.keys()
                assert len(hits) == min(search.limit, len(expected))
                continue
            best = sorted(expected.values(), reverse=True)[: search.limit]
            error = 1e-4 if search.dense is None else self.error_max
            np.testing.assert_allclose([hit.score for hit in hits], best, atol=error, rtol=1e-4)
            np.testing.assert_allclose(
                [hit.score for hit in hits], [expected[hit.id] for hit in hits], atol=error, rtol=1e-4
            )

    def test_points_that_only_other_readers_may_see_are_not_found(self, engine: Engine, shared: str) -> None:
        space = new_space()
        public = point(space, 1)
        own = point(space, 2, readers=["baker"])
        others = point(space, 3, readers=["miller", "Zoë 🥖"])
        run(engine.upsert(shared, [public, own, others]))
        searches = [
            Search(everything(space, "baker"), 9, dense=others.dense[0]),
            Search(everything(space, "baker"), 9, sparse=Sparse([1, 2, 3], [1.0] * 3), corpus=everything(space)),
            Search(everything(space, "baker"), 9),
        ]
        for hits in run(engine.search(shared, searches)):
            assert set(ids(hits)) == {public.id, own.id}

    def test_a_filter_without_readers_finds_nothing(self, engine: Engine, shared: str) -> None:
        space = new_space()
        run(engine.upsert(shared, [point(space)]))
        assert run(engine.search(shared, [Search(Filter(space, []), 9, dense=unit(0))])) == [[]]

    def test_a_search_among_given_ids_finds_no_other_points(self, engine: Engine, shared: str) -> None:
        space = new_space()
        written = [point(space, n) for n in range(10)]
        run(engine.upsert(shared, written))
        named = replace(everything(space), ids=ids(written[2:5]))
        (hits,) = run(engine.search(shared, [Search(named, 9, dense=written[0].dense[0])]))
        assert set(ids(hits)) == set(ids(written[2:5]))

    def test_the_best_passage_of_a_point_counts(self, engine: Engine, shared: str) -> None:
        space = new_space()
        long, short = point(space, 1, passages=3), point(space, 2)
        run(engine.upsert(shared, [long, short]))
        for passage in long.dense:
            (hits,) = run(engine.search(shared, [Search(everything(space), 9, dense=passage)]))
            assert ids(hits) == [long.id, short.id]
            assert hits[0].score == pytest.approx(1.0, abs=self.error_max)

    def test_a_point_without_passages_is_found_by_its_terms_and_its_id(self, engine: Engine, shared: str) -> None:
        space = new_space()
        bare = point(space, 1, passages=0)
        run(engine.upsert(shared, [bare]))
        wanted = everything(space)
        searches = [
            Search(wanted, 9, dense=unit(1)),
            Search(wanted, 9, sparse=Sparse([1], [1.0]), corpus=wanted),
            Search(replace(wanted, ids=[bare.id]), 9),
        ]
        assert [ids(hits) for hits in run(engine.search(shared, searches))] == [[], [bare.id], [bare.id]]

    def test_a_point_without_terms_is_found_by_its_other_vectors(self, engine: Engine, shared: str) -> None:
        space = new_space()
        silent = point(space, 1, sparse=Sparse([], []))
        run(engine.upsert(shared, [silent]))
        wanted = everything(space)
        searches = [
            Search(wanted, 9, dense=silent.dense[0]),
            Search(wanted, 9, sparse=Sparse([1], [1.0]), corpus=wanted),
        ]
        assert [ids(hits) for hits in run(engine.search(shared, searches))] == [[silent.id], []]

    def test_a_search_without_terms_or_with_limit_0_finds_nothing(self, engine: Engine, shared: str) -> None:
        space = new_space()
        run(engine.upsert(shared, [point(space)]))
        wanted = everything(space)
        searches = [
            Search(wanted, 9, sparse=Sparse([], []), corpus=wanted),
            Search(wanted, 0, dense=unit(0)),
        ]
        assert run(engine.search(shared, searches)) == [[], []]
        assert run(engine.search(shared, [])) == []

    def test_words_of_another_space_do_not_change_weights(self, engine: Engine, shared: str) -> None:
        space, other = new_space(), new_space()
        written = [point(space, n, sparse=Sparse([7, n], [1.0, 1.0])) for n in range(3)]
        crowd = [point(other, n, sparse=Sparse([7], [1.0])) for n in range(50)]
        wanted = everything(space)
        search = Search(wanted, 9, sparse=Sparse([7], [1.0]), corpus=wanted)
        run(engine.upsert(shared, written))
        before = [hit.score for hit in run(engine.search(shared, [search]))[0]]
        run(engine.upsert(shared, crowd))
        assert [hit.score for hit in run(engine.search(shared, [search]))[0]] == before

    def test_a_search_without_a_filter_tells_the_idf_of_a_corpus(self, engine: Engine, shared: str) -> None:
        space, other = new_space(), new_space()
        term = 2**30
        run(engine.upsert(shared, [point(space, n, sparse=Sparse([n], [1.0])) for n in range(5)]))
        run(engine.upsert(shared, [point(other, sparse=Sparse([term], [0.5]))]))
        search = Search(None, 1, sparse=Sparse([term], [1.0]), corpus=everything(space))
        ((hit,),) = run(engine.search(shared, [search]))
        assert hit.score == pytest.approx(0.5 * math.log(1 + 5.5 / 0.5), abs=1e-4)

    def test_without_a_corpus_all_points_of_the_collection_count(self, engine: Engine, collection: str) -> None:
        written = [point(space, n, sparse=Sparse([7, 10 + n], [1.0, 1.0])) for n, space in enumerate("aabbb")]
        run(engine.upsert(collection, written))
        (hits,) = run(engine.search(collection, [Search(everything("a"), 9, sparse=Sparse([10], [2.0]))]))
        assert ids(hits) == [written[0].id]
        assert hits[0].score == pytest.approx(2 * math.log(1 + 4.5 / 1.5), abs=1e-4)

    def test_hits_carry_the_requested_fields(self, engine: Engine, shared: str) -> None:
        space = new_space()
        written = point(space, 5)
        run(engine.upsert(shared, [written]))
        wanted = everything(space)
        bare, full = run(
            engine.search(
                shared,
                [
                    Search(wanted, 1, dense=written.dense[0]),
                    Search(wanted, 1, dense=written.dense[0], payload=["offset", "agent"], with_sparse=True),
                ],
            )
        )
        assert (bare[0].payload, bare[0].sparse) == ({}, None)
        assert full[0].payload.items() >= {"offset": 5, "agent": "baker"}.items()
        assert full[0].sparse is not None
        assert sorted(full[0].sparse.indices) == [5, 2**32 - 1]

    def test_hits_carry_what_was_written_last(self, engine: Engine, shared: str) -> None:
        space = new_space()
        first = point(space, 1, agent="baker", turn=3)
        second = point(space, 2, id=first.id, sparse=Sparse([7], [0.5]), agent="miller", turn=4, at=NOON + 1)

        def found(*fields: str) -> tuple[dict[str, Any], list[int]]:
            search = Search(everything(space), 1, dense=first.dense[0], payload=fields, with_sparse=True)
            ((hit,),) = run(engine.search(shared, [search]))
            assert hit.sparse is not None
            return {name: hit.payload[name] for name in fields}, sorted(hit.sparse.indices)

        run(engine.upsert(shared, [first]))
        assert found("agent") == ({"agent": "baker"}, [1, 2**32 - 1])
        assert found("turn", "at") == ({"turn": 3, "at": NOON}, [1, 2**32 - 1])
        run(engine.upsert(shared, [second]))
        assert found("agent", "turn", "at") == ({"agent": "miller", "turn": 4, "at": NOON + 1}, [7])
        run(engine.delete(shared, [first.id]))
        run(engine.upsert(shared, [first]))
        assert found("agent") == ({"agent": "baker"}, [1, 2**32 - 1])

    def test_two_thousand_points_are_all_found(self, engine: Engine, collection: str) -> None:
        written = [point("village", n, id=str(UUID(int=n))) for n in range(2_000)]
        run(engine.upsert(collection, written))
        wanted = everything("village")
        assert run(engine.count(collection, wanted)) == 2_000
        assert ids(pages(engine, collection, 500)) == ids(written)
        every, exact = run(
            engine.search(
                collection,
                [Search(wanted, 5_000, dense=unit(0)), Search(wanted, 10, dense=written[7].dense[0], exact=True)],
            )
        )
        assert len(every) == 2_000
        nearest = np.argsort(-(np.concatenate([point.dense for point in written]) @ written[7].dense[0]))[:10]
        assert ids(exact) == [written[n].id for n in nearest]
