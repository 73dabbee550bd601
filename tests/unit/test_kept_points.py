"""Points kept in memory: they are what was written last, read once, and bounded in bytes."""

import sys
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recallog_projections.index.engines.engine import Sparse
from recallog_projections.index.engines.kept_points import KeptBytes, KeptPoints, ReadPoint

ENOUGH = 1_000_000
FIELDS = ("agent", "turn", "event")


class Written:
    """Points by id, and what was read of them."""

    def __init__(self) -> None:
        self.points: dict[str, dict[str, Any]] = {}
        self.reads: list[list[str]] = []

    def read(self, ids: list[str], fields: list[str]) -> list[ReadPoint]:
        self.reads.append(ids)
        return [
            (id_, {name: self.points[id_][name] for name in fields}, Sparse([7], [0.5]))
            for id_ in ids
            if id_ in self.points
        ]

    def write(self, id_: str, value: int) -> None:
        self.points[id_] = {"agent": f"agent {value}", "turn": value, "event": "e" * 100}


def written(number: int) -> Written:
    points = Written()
    for n in range(number):
        points.write(str(n), n)
    return points


def test_a_point_is_read_once() -> None:
    points = written(3)
    kept = KeptPoints(points.read, KeptBytes(ENOUGH))
    assert kept.find(["0", "1"], ["turn"])["1"].payload["turn"] == 1
    assert kept.find(["1", "2", "1"], ["turn"])["1"].payload["turn"] == 1
    assert points.reads == [["0", "1"], ["2"]]


def test_texts_are_not_kept() -> None:
    points = written(1)
    kept = KeptPoints(points.read, KeptBytes(ENOUGH))
    for _ in range(2):
        assert kept.find(["0"], ["event"])["0"].payload == {"event": "e" * 100}
    assert points.reads == [["0"], ["0"]]
    assert kept.size_bytes == 0


def test_collections_share_one_bound_and_the_one_that_read_last_keeps_its_points() -> None:
    points = written(4)
    alone = KeptPoints(points.read, KeptBytes(ENOUGH))
    alone.find(["0"], ["turn"])
    bound = KeptBytes(3 * alone.size_bytes)
    one, other = KeptPoints(points.read, bound), KeptPoints(points.read, bound)
    one.find(["0", "1", "2"], ["turn"])
    other.find(["0", "1"], ["turn"])
    assert (one.size_bytes, other.size_bytes) == (alone.size_bytes, 2 * alone.size_bytes)
    one.find(["3"], ["turn"])
    assert (one.size_bytes, other.size_bytes) == (2 * alone.size_bytes, alone.size_bytes)
    del other
    one.find(["0", "1", "2"], ["turn"])
    assert one.size_bytes == 3 * alone.size_bytes


def test_the_least_recently_used_points_are_removed_above_the_bound() -> None:
    points = written(3)
    one = KeptPoints(points.read, KeptBytes(ENOUGH))
    one.find(["0"], ["turn"])
    kept = KeptPoints(points.read, KeptBytes(2 * one.size_bytes))
    kept.find(["0", "1"], ["turn"])
    kept.find(["0"], ["turn"])
    assert kept.find(["2"], ["turn"]).keys() == {"2"}
    assert kept.size_bytes == 2 * one.size_bytes
    points.reads.clear()
    kept.find(["0", "2"], ["turn"])
    assert points.reads == []
    kept.find(["1"], ["turn"])
    assert points.reads == [["1"]]


def test_no_text_outlives_the_points() -> None:
    """`sys.intern` keeps texts until the process ends, in some versions of Python."""
    points = written(2)
    kept = KeptPoints(points.read, KeptBytes(ENOUGH))
    for id_ in points.points:
        points.points[id_]["agent"] = "-".join(["shared", "by", "two"])
    first, second = (kept.find([id_], ["agent"])[id_].payload["agent"] for id_ in ("0", "1"))
    assert first is second
    same = "-".join(["shared", "by", "two"])
    assert sys.intern(same) is same
    points.points["0"]["agent"] = same
    kept.forget(["0", "1"])
    assert kept.find(["0"], ["agent"])["0"].payload["agent"] is same


def test_more_points_than_the_bound_are_all_found() -> None:
    kept = KeptPoints(written(5).read, KeptBytes(1))
    assert kept.find(map(str, range(5)), ["turn"]).keys() == {"0", "1", "2", "3", "4"}
    assert kept.size_bytes <= 1


some_ids = st.lists(st.sampled_from("abcd"), max_size=4)
steps = st.one_of(
    st.tuples(st.just("write"), st.sampled_from("abcd"), st.integers(0, 9)),
    st.tuples(st.just("delete"), st.sampled_from("abcd"), st.none()),
    st.tuples(st.just("find"), some_ids, st.sets(st.sampled_from(FIELDS), min_size=1)),
)


@given(st.lists(steps, max_size=30), st.sampled_from([1, 4_000, ENOUGH]))
def test_what_is_found_is_what_was_written_last(done: Sequence[tuple[str, Any, Any]], bytes_max: int) -> None:
    points = Written()
    kept = KeptPoints(points.read, KeptBytes(bytes_max))
    for step, wanted, argument in done:
        if step == "find":
            found = kept.find(wanted, sorted(argument))
            assert found.keys() == set(wanted) & points.points.keys()
            for id_, point in found.items():
                assert {name: point.payload[name] for name in argument} == {
                    name: points.points[id_][name] for name in argument
                }
            assert kept.size_bytes <= bytes_max
            continue
        if step == "write":
            points.write(wanted, argument)
        else:
            points.points.pop(wanted, None)
        kept.forget([wanted])
