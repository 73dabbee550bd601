"""Cycles in graphs of what must precede what, with the names of Adya (1999) and Elle (Kingsbury and Alvaro, 2020)."""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Literal, NamedTuple

Kind = Literal["ww", "wr", "rw", "call", "session", "time"]

_DATA: frozenset[Kind] = frozenset({"ww", "call"})
_FOUND: frozenset[Kind] = frozenset({"wr"})
_NOT_FOUND: frozenset[Kind] = frozenset({"rw"})
_SESSION: frozenset[Kind] = frozenset({"session"})
_TIME: frozenset[Kind] = frozenset({"time"})
_ORDERS = (("", frozenset[Kind]()), ("-session", _SESSION), ("-time", _SESSION | _TIME))
"""What else a cycle may need, with the end of its name."""
_STARTS_MAX = 500
"""Edges from which a search begins."""


class Edge(NamedTuple):
    """One node precedes another."""

    source: str
    target: str
    kind: Kind
    """`ww`: the next value of a list; `wr`: a read of it; `rw`: the value after what a read has found; `call`: the next
    value of a call; `session`: the next read of a session; `time`: one ended before the other began."""
    why: str


class _Level(NamedTuple):
    """A kind of cycle: the edges that it may have."""

    name: str
    kinds: frozenset[Kind]
    has_one_rw: bool = False
    """Whether it has one edge of the kind `rw` besides these."""


def _levels() -> Iterator[_Level]:
    """From the gravest kind to the mildest."""
    for suffix, more in _ORDERS:
        kinds = _DATA | more
        yield _Level(f"G0{suffix}", kinds)
        yield _Level(f"G1c{suffix}", kinds | _FOUND)
        yield _Level(f"G-single{suffix}", kinds | _FOUND, has_one_rw=True)
        yield _Level(f"G2{suffix}", kinds | _FOUND | _NOT_FOUND)


def find_gravest_cycle(edges: Iterable[Edge]) -> tuple[str, Sequence[Edge]] | None:
    """The name and the edges of a short cycle of the gravest kind that there is; None without a cycle.

    In a graph of up to `_STARTS_MAX` edges no cycle of that kind is shorter. In a larger one a cycle of the kind
    `G-single` may be missed and a milder one be found.
    """
    all_edges = [*edges]
    if not _knots(_leaving(all_edges)):
        return None
    for level in _levels():
        allowed = level.kinds | _NOT_FOUND if level.has_one_rw else level.kinds
        leaving = _leaving(edge for edge in all_edges if edge.kind in allowed)
        found = [cycle for knot in _knots(leaving) if (cycle := _short_cycle(leaving, knot, level))]
        if found:
            return level.name, min(found, key=len)
    return None


_Leaving = dict[str, list[Edge]]
"""By node: the edges that leave it."""


def _leaving(edges: Iterable[Edge]) -> _Leaving:
    leaving: _Leaving = {}
    for edge in edges:
        leaving.setdefault(edge.source, []).append(edge)
    return leaving


def _short_cycle(leaving: _Leaving, knot: Collection[str], level: _Level) -> Sequence[Edge] | None:
    """A short cycle in a knot; inside of a cycle that was found is searched again for a shorter one."""
    found = _shortest_of_some(leaving, knot, level)
    while found is not None:
        inner = _shortest_of_some(leaving, {edge.source for edge in found}, level)
        if inner is None or len(inner) == len(found):
            break
        found = inner
    return found


def _shortest_of_some(leaving: _Leaving, within: Collection[str], level: _Level) -> Sequence[Edge] | None:
    """The shortest of the cycles through the first edges of a knot, in the order in which they were given."""
    firsts = (edge for node in leaving if node in within for edge in leaving[node] if edge.target in within)
    if level.has_one_rw:
        firsts = (edge for edge in firsts if edge.kind == "rw")
    shortest: Sequence[Edge] | None = None
    for first in islice(firsts, _STARTS_MAX):
        rest = _shortest_path(leaving, first.target, first.source, within, level.kinds)
        if rest is not None and (shortest is None or len(rest) + 1 < len(shortest)):
            shortest = [first, *rest]
    return shortest


def _shortest_path(
    leaving: _Leaving, start: str, end: str, within: Collection[str], kinds: Collection[Kind]
) -> Sequence[Edge] | None:
    came: dict[str, Edge | None] = {start: None}
    if start == end:
        return []
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for edge in leaving.get(node, ()):
            if edge.kind in kinds and edge.target in within and edge.target not in came:
                came[edge.target] = edge
                if edge.target == end:
                    return _path_to(came, end)
                waiting.append(edge.target)
    return None


def _path_to(came: dict[str, Edge | None], end: str) -> Sequence[Edge]:
    path: list[Edge] = []
    while (edge := came[end]) is not None:
        path.append(edge)
        end = edge.source
    return path[::-1]


def _knots(leaving: _Leaving) -> list[frozenset[str]]:
    """The strongly connected components that contain a cycle (Tarjan 1972, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[frozenset[str]] = []
    for root in leaving:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        work = [(root, iter(leaving.get(root, ())))]
        while work:
            node, edges = work[-1]
            for edge in edges:
                target = edge.target
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(leaving.get(target, ()))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = _pop_until(stack, node)
                    on_stack -= component
                    if len(component) > 1 or any(edge.target == node for edge in leaving.get(node, ())):
                        found.append(component)
    return found


def _pop_until(stack: list[str], node: str) -> frozenset[str]:
    component: list[str] = []
    while not component or component[-1] != node:
        component.append(stack.pop())
    return frozenset(component)


def describe_cycle(cycle: Sequence[Edge]) -> str:
    """The cycle in words, one step after the other."""
    steps = [f"{edge.source} precedes {edge.target}: {edge.why}" for edge in cycle]
    for edge, following in pairwise(cycle):
        assert edge.target == following.source
    return "; ".join(steps)
