"""Looks for anomalies in histories of lists, in the manner of Elle (Kingsbury and Alvaro, VLDB 2020).

Sessions append unique values to lists and read lists. A value may be appended to several lists at once: each event is a
transaction. From the lists that were read follows the order in which the values of each list were appended, and from
these orders a graph of what must precede what; a cycle in it is an anomaly.

The model that is checked, for the lists of one space:

1. Every event has one place in one order, which all lists and all readers have in common.
2. An acknowledged event is in each of its lists once. An event with an unknown outcome is there once or not at all. A
   refused one is not there.
3. The order agrees with time: what was acknowledged or read before a call began precedes its events, and the events of
   a call have the order of the call.
4. An answer is a prefix of the order, restricted to its lists. That of a reader of the ledger contains all that was
   acknowledged before it began. That of a reader of the views may be older, but not older than earlier answers to the
   same session, and it contains what the reader has waited for.

The events of one call may become visible to readers of the views one after the other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from support.cycles import Edge, describe_cycle, find_gravest_cycle

Outcome = Literal["ok", "failed", "unknown"]

NEVER = float("inf")


@dataclass(frozen=True)
class Append:
    """One call of `publish_many`."""

    name: str
    session: str
    begun: float
    ended: float
    """`NEVER` unless it was acknowledged."""
    outcome: Outcome
    values: Sequence[tuple[str, Sequence[str]]]
    """Each value with its lists, in the order of the call."""


@dataclass(frozen=True)
class Read:
    """One answered question."""

    name: str
    session: str
    begun: float
    ended: float
    lists: Mapping[str, Sequence[str]]
    """The values of each list that was asked for."""
    is_current: bool = False
    """Whether it was read from the ledger."""
    waited_for: Sequence[str] = ()


@dataclass(frozen=True)
class Anomaly:
    """Something that the model rules out."""

    name: str
    """`lost`, `doubled`, `aborted`, `unknown value`, `fork`, `torn`, `not waited for`, or the name of a cycle: `G0`,
    `G1c`, `G-single` or `G2`, with `-session` or `-time` if it needs the order of a session, or of time."""
    words: str
    """What happened, with the operations that show it."""


@dataclass
class History:
    """The operations on the lists of one space, in any order."""

    appends: list[Append] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    last: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Each list as it is in the ledger after everything has ended."""

    def find_anomalies(self) -> list[Anomaly]:
        """All anomalies of single lists; without these, a shortest cycle of the gravest kind."""
        found = [*self._find_wrong_values(), *self._find_forks(), *self._find_lost()]
        if found or (cycle := find_gravest_cycle(self._edges())) is None:
            return found
        name, edges = cycle
        return [Anomaly(name, describe_cycle(edges))]

    def _find_wrong_values(self) -> Iterator[Anomaly]:
        made = {value: (append, lists) for append in self.appends for value, lists in append.values}
        end = Read("the last read", "", NEVER, NEVER, self.last)
        for read in (*self.reads, end):
            for name, values in read.lists.items():
                seen = set()
                for value in values:
                    append, lists = made.get(value, (None, ()))
                    if value in seen:
                        yield Anomaly("doubled", f"{read.name} found {value} twice in {name}")
                    elif append is None or name not in lists:
                        yield Anomaly(
                            "unknown value", f"{read.name} found {value} in {name}, to which it was not appended"
                        )
                    elif append.outcome == "failed":
                        yield Anomaly("aborted", f"{read.name} found {value} in {name}, but {append.name} was refused")
                    elif append.begun > read.ended:
                        yield Anomaly(
                            "unknown value", f"{read.name} found {value} in {name} before {append.name} began"
                        )
                    seen.add(value)
                for value in read.waited_for:
                    if name in made[value][1] and value not in seen:
                        yield Anomaly("not waited for", f"{read.name} waited for {value}, and {name} lacks it")

    def _find_forks(self) -> Iterator[Anomaly]:
        """Lists of which neither continues the other."""
        longest = {name: ("the last read", values) for name, values in self.last.items()}
        for read in self.reads:
            for name, values in read.lists.items():
                other, known = longest.setdefault(name, (read.name, values))
                pairs = enumerate(zip(values, known, strict=False))
                differing = next((number for number, (one, another) in pairs if one != another), None)
                if differing is not None:
                    entries = f"{read.name} found {values[differing]}, and {other} {known[differing]}"
                    yield Anomaly("fork", f"entry {differing} of {name}: {entries}")
                elif len(values) > len(known):
                    longest[name] = read.name, values

    def _find_lost(self) -> Iterator[Anomaly]:
        end = {name: set(values) for name, values in self.last.items()}
        for append in self.appends:
            for value, lists in append.values:
                missing = [name for name in lists if value not in end.get(name, ())]
                if missing and append.outcome == "ok":
                    yield Anomaly("lost", f"{append.name} was acknowledged, and at the end {missing[0]} lacks {value}")
                elif missing and len(missing) < len(lists):
                    yield Anomaly(
                        "torn", f"at the end {missing[0]} lacks {value} of {append.name}, which is in another list"
                    )
        for read in self.reads:
            for name, values in read.lists.items():
                if gone := [value for value in values if value not in end.get(name, ())]:
                    yield Anomaly("lost", f"{read.name} found {gone[0]} in {name}, and at the end it is not there")

    def _edges(self) -> Iterator[Edge]:
        yield from self._edges_of_lists()
        yield from self._edges_of_calls()
        yield from self._edges_of_sessions()
        yield from self._edges_of_time()

    def _edges_of_lists(self) -> Iterator[Edge]:
        for name, values in self.last.items():
            for one, following in pairwise(values):
                yield Edge(one, following, "ww", f"it is before it in {name}")
        for read in self.reads:
            for name, values in read.lists.items():
                if values:
                    yield Edge(values[-1], read.name, "wr", f"it was found in {name}")
                if len(values) < len(self.last.get(name, ())):
                    yield Edge(read.name, self.last[name][len(values)], "rw", f"it did not find it in {name}")

    def _edges_of_calls(self) -> Iterator[Edge]:
        """Those of one call. What is not in the last read does not matter."""
        for append in self.appends:
            for (one, _), (following, _) in pairwise(append.values):
                yield Edge(one, following, "call", f"{append.name} has it first")

    def _edges_of_sessions(self) -> Iterator[Edge]:
        """Reads of one session; an answer from the ledger may be newer than later ones from the views."""
        newest: dict[str, Read] = {}
        for read in sorted(self.reads, key=lambda read: read.begun):
            if read.is_current:
                continue
            if read.session in newest:
                yield Edge(newest[read.session].name, read.name, "session", f"{read.session} read it first")
            newest[read.session] = read

    def _edges_of_time(self) -> Iterator[Edge]:
        """From all that has ended before a call or a read of the ledger began, except what follows from other edges."""
        operations: list[Append | Read] = [*self.appends, *self.reads]
        ending = sorted((each for each in operations if each.ended < NEVER), key=lambda each: each.ended)
        recent: list[Append | Read] = []
        ended = 0
        for operation in sorted(operations, key=lambda each: each.begun):
            if not _is_after_all(operation):
                continue
            while ended < len(ending) and ending[ended].ended < operation.begun:
                latest = ending[ended]
                if _is_after_all(latest):
                    recent = [each for each in recent if each.ended >= latest.begun]
                recent.append(latest)
                ended += 1
            first = _nodes(operation)[0]
            for earlier in recent:
                yield Edge(
                    _nodes(earlier)[-1], first, "time", f"{earlier.name} had ended before {operation.name} began"
                )


def _is_after_all(operation: Append | Read) -> bool:
    """Whether everything that has ended before it precedes it."""
    return isinstance(operation, Append) or operation.is_current


def _nodes(operation: Append | Read) -> Sequence[str]:
    return [value for value, _ in operation.values] if isinstance(operation, Append) else [operation.name]
