"""The checker of histories: it accepts what the model allows, and finds what the model rules out."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.campaigns import examples
from support.list_append import NEVER, Append, History, Outcome, Read

LISTS = ("a", "b", "c")
SESSIONS = ("s1", "s2", "s3")


def simulate(rng: random.Random, calls: int) -> History:
    """A history of a service that keeps the model: each call takes effect at a moment between its begin and its end."""
    free = dict.fromkeys(SESSIONS, 0.0)
    planned = []
    for number in range(calls):
        session = rng.choice(SESSIONS)
        begun = free[session] + rng.randrange(1, 4)
        effect, ended = begun + rng.randrange(1, 4), begun + rng.randrange(4, 7)
        free[session] = ended
        planned.append((effect + number / 1_000, number, session, float(begun), float(ended)))
    history, order = History(), []
    cuts = dict.fromkeys(SESSIONS, 0)
    for _, number, session, begun, ended in sorted(planned):
        name = f"{session}.{number}"
        kind = rng.choice(("append", "append", "views", "ledger", "waited"))
        if kind == "append":
            values = [
                (f"v{number}.{part}", rng.sample(LISTS, rng.choice((1, 1, 2)))) for part in range(rng.choice((1, 1, 2)))
            ]
            outcome: Outcome = rng.choice(("ok", "ok", "ok", "unknown", "failed"))
            if outcome == "ok" or (outcome == "unknown" and rng.random() < 0.5):
                order += values
            history.appends.append(
                Append(name, session, begun, NEVER if outcome == "unknown" else ended, outcome, values)
            )
            continue
        waited = [value for value, _ in rng.sample(order, min(1, len(order)))] if kind == "waited" else []
        places = [place for place, (value, _) in enumerate(order, 1) if value in waited]
        cut = len(order) if kind == "ledger" else rng.randint(max([cuts[session], *places]), len(order))
        asked = LISTS if kind == "ledger" else (rng.choice(LISTS),)
        if kind != "ledger":
            cuts[session] = cut
        found = {each: _list(order[:cut], each) for each in asked}
        history.reads.append(Read(name, session, begun, ended, found, kind == "ledger", waited))
    history.last = {each: _list(order, each) for each in LISTS}
    return history


def _list(order: Sequence[tuple[str, Sequence[str]]], name: str) -> list[str]:
    return [value for value, lists in order if name in lists]


randoms = st.randoms(use_true_random=False)


@settings(max_examples=examples(100), deadline=None)
@given(rng=randoms, calls=st.integers(1, 40))
def test_a_history_of_the_model_has_no_anomaly(rng: random.Random, calls: int) -> None:
    assert simulate(rng, calls).find_anomalies() == []


# Against a brute-force search for an order that explains a small history.


def is_explained(history: History) -> bool:
    """Whether one order of all events explains all lists, answers and times."""
    values = sorted({value for found in history.last.values() for value in found})
    return any(explains(order, history) for order in permutations(values))


def explains(order: Sequence[str], history: History) -> bool:
    place = {value: number for number, value in enumerate(order, 1)}
    for found in history.last.values():
        if [place[value] for value in found] != sorted(place[value] for value in found):
            return False
    for append in history.appends:
        placed = [place[value] for value, _ in append.values if value in place]
        if placed != sorted(placed):
            return False
        for earlier in history.appends:
            if earlier.ended < append.begun and any(
                place[one] > place[other]
                for one, _ in earlier.values
                for other, _ in append.values
                if one in place and other in place
            ):
                return False
    return _cuts_exist(place, history)


def _cuts_exist(place: dict[str, int], history: History) -> bool:
    """Whether each answer is a prefix; the shortest one that is possible is as good as any."""
    chosen: list[tuple[Read, int]] = []
    for read in sorted(history.reads, key=lambda each: each.begun):
        least = [0, *(place[value] for found in read.lists.values() for value in found)]
        most = [len(place)]
        for name, found in read.lists.items():
            most += [place[value] - 1 for value in history.last[name] if value not in found]
        for append in history.appends:
            for value, _ in append.values:
                if value in place and read.is_current and append.ended < read.begun:
                    least.append(place[value])
                if value in place and read.ended < append.begun:
                    most.append(place[value] - 1)
        for earlier, cut in chosen:
            is_same = earlier.session == read.session and not earlier.is_current and not read.is_current
            if is_same or (read.is_current and earlier.ended < read.begun):
                least.append(cut)
        if max(least) > min(most):
            return False
        chosen.append((read, max(least)))
    return True


@settings(max_examples=examples(400), deadline=None)
@given(rng=randoms, calls=st.integers(2, 9), changes=st.integers(1, 3))
def test_an_anomaly_is_found_exactly_if_no_order_explains_the_history(
    rng: random.Random, calls: int, changes: int
) -> None:
    history = simulate(rng, calls)
    if sum(len(append.values) for append in history.appends) > 6:
        return
    for _ in range(changes):
        _shift_something(rng, history)
    found = history.find_anomalies()
    if not found or found[0].name.startswith("G"):
        assert bool(found) != is_explained(history), found


def _shift_something(rng: random.Random, history: History) -> None:
    """Change the time of an operation, or what one has found, so that the history may be wrong."""
    if history.reads and rng.random() < 0.5:
        number = rng.randrange(len(history.reads))
        read = history.reads[number]
        name = rng.choice(list(read.lists))
        longer = history.last[name][: rng.randint(0, len(history.last[name]))]
        history.reads[number] = replace(read, lists={**read.lists, name: longer}, waited_for=())
    elif history.appends:
        number = rng.randrange(len(history.appends))
        append = history.appends[number]
        moved = rng.randrange(-20, 20)
        history.appends[number] = replace(append, begun=append.begun + moved, ended=append.ended + moved)


# One anomaly in a large history.


def _drop(history: History, value: str, lists: Sequence[str]) -> None:
    def without(found: Sequence[str]) -> Sequence[str]:
        return [each for each in found if each != value]

    history.reads = [
        replace(
            read,
            lists={name: without(found) if name in lists else found for name, found in read.lists.items()},
            waited_for=without(read.waited_for),
        )
        for read in history.reads
    ]
    history.last = {name: without(found) if name in lists else found for name, found in history.last.items()}


def lose(rng: random.Random, history: History) -> bool:
    acknowledged = [each for append in history.appends if append.outcome == "ok" for each in append.values]
    if acknowledged:
        _drop(history, *rng.choice(acknowledged))
    return bool(acknowledged)


def tear(rng: random.Random, history: History) -> bool:
    of_two = [each for append in history.appends for each in append.values if len(each[1]) > 1]
    of_two = [(value, lists) for value, lists in of_two if value in history.last[lists[0]]]
    if of_two:
        value, lists = rng.choice(of_two)
        history.appends = [
            replace(append, outcome="unknown", ended=NEVER) if value in dict(append.values) else append
            for append in history.appends
        ]
        _drop(history, value, lists[:1])
    return bool(of_two)


def _change_read(rng: random.Random, history: History, least: int, change: Callable[[list[str]], None]) -> bool:
    able = [
        (number, name)
        for number, read in enumerate(history.reads)
        for name, found in read.lists.items()
        if len(found) >= least
    ]
    if able:
        number, name = rng.choice(able)
        found = list(history.reads[number].lists[name])
        change(found)
        history.reads[number] = replace(history.reads[number], lists={**history.reads[number].lists, name: found})
    return bool(able)


def double(rng: random.Random, history: History) -> bool:
    return _change_read(rng, history, 1, lambda found: found.append(rng.choice(found)))


def invent(rng: random.Random, history: History) -> bool:
    return _change_read(rng, history, 0, lambda found: found.append("nobody's"))


def swap(rng: random.Random, history: History) -> bool:
    def change(found: list[str]) -> None:
        one, other = rng.sample(range(len(found)), 2)
        found[one], found[other] = found[other], found[one]

    return _change_read(rng, history, 2, change)


def refuse(rng: random.Random, history: History) -> bool:
    """An acknowledged call turns out to have been refused."""
    able = [number for number, append in enumerate(history.appends) if append.outcome == "ok"]
    if able:
        number = rng.choice(able)
        history.appends[number] = replace(history.appends[number], outcome="failed")
    return bool(able)


def forget(rng: random.Random, history: History) -> bool:
    """What a reader has waited for is not in its answer."""
    able = [
        (number, value, name)
        for number, read in enumerate(history.reads)
        for value in read.waited_for
        for name, found in read.lists.items()
        if value in found
    ]
    if able:
        number, value, name = rng.choice(able)
        found = history.reads[number].lists[name]
        cut = {**history.reads[number].lists, name: found[: list(found).index(value)]}
        history.reads[number] = replace(history.reads[number], lists=cut)
    return bool(able)


@pytest.mark.parametrize(
    ("plant", "name"),
    [
        (lose, "lost"),
        (tear, "torn"),
        (double, "doubled"),
        (invent, "unknown value"),
        (swap, "fork"),
        (refuse, "aborted"),
        (forget, "not waited for"),
    ],
)
def test_a_planted_anomaly_is_found(plant: Callable[[random.Random, History], bool], name: str) -> None:
    planted = 0

    @settings(max_examples=examples(25), deadline=None)
    @given(seed=st.integers(0, 2**32))
    def plant_and_find(seed: int) -> None:
        nonlocal planted
        rng = random.Random(seed)
        history = simulate(rng, 40)
        if plant(rng, history):
            planted += 1
            assert name in {anomaly.name for anomaly in history.find_anomalies()}

    plant_and_find()
    assert planted > 0


# Each kind of cycle, in the smallest history that has it.


def append(name: str, begun: float, ended: float, *values: tuple[str, str]) -> Append:
    return Append(name, name, begun, ended, "ok", [(value, tuple(lists)) for value, lists in values])


def ask(name: str, begun: float, *, of: str = "", current: bool = False, **lists: str) -> Read:
    found = {each: values.split() for each, values in lists.items()}
    return Read(name, of or name, begun, begun + 1, found, current)


OVERLAPPING = append("A", 0, 90, ("x", "ab")), append("B", 0, 90, ("y", "ab"))


@pytest.mark.parametrize(
    ("name", "history", "words"),
    [
        (
            "G0",
            History([*OVERLAPPING], [], {"a": ["x", "y"], "b": ["y", "x"]}),
            "x precedes y: it is before it in a; y precedes x: it is before it in b",
        ),
        (
            "G0",
            History([append("A", 0, 9, ("x", "a"), ("y", "a"))], [], {"a": ["y", "x"]}),
            "y precedes x: it is before it in a; x precedes y: A has it first",
        ),
        (
            "G0-time",
            History([append("A", 0, 1, ("x", "a")), append("B", 2, 3, ("y", "a"))], [], {"a": ["y", "x"]}),
            "y precedes x: it is before it in a; x precedes y: A had ended before B began",
        ),
        (
            "G1c-time",
            History(
                [append("A", 20, 21, ("x", "b")), append("B", 0, 90, ("y", "ab"))],
                [ask("R", 10, a="y")],
                {"a": ["y"], "b": ["x", "y"]},
            ),
            "x precedes y: it is before it in b; y precedes R: it was found in a; "
            "R precedes x: R had ended before A began",
        ),
        (
            "G-single",
            History([*OVERLAPPING], [ask("R", 10, current=True, a="x y", b="x")], {"a": ["x", "y"], "b": ["x", "y"]}),
            "R precedes y: it did not find it in b; y precedes R: it was found in a",
        ),
        (
            "G2",
            History(
                [append("A", 0, 90, ("x", "a")), append("B", 0, 90, ("y", "b"))],
                [ask("R", 10, current=True, a="x", b=""), ask("S", 10, current=True, a="", b="y")],
                {"a": ["x"], "b": ["y"]},
            ),
            "x precedes R: it was found in a; R precedes y: it did not find it in b; "
            "y precedes S: it was found in b; S precedes x: it did not find it in a",
        ),
        (
            "G-single-session",
            History(
                [append("A", 0, 90, ("x", "a"))],
                [ask("R", 10, of="s", a="x"), ask("S", 20, of="s", a="")],
                {"a": ["x"]},
            ),
            "S precedes x: it did not find it in a; x precedes R: it was found in a; R precedes S: s read it first",
        ),
        (
            "G-single-time",
            History([append("A", 0, 1, ("x", "a"))], [ask("R", 10, current=True, a="")], {"a": ["x"]}),
            "R precedes x: it did not find it in a; x precedes R: A had ended before R began",
        ),
    ],
)
def test_a_cycle_is_named_and_told_in_words(name: str, history: History, words: str) -> None:
    (anomaly,) = history.find_anomalies()
    assert (anomaly.name, anomaly.words) == (name, words)


def test_a_reader_of_the_views_may_be_behind() -> None:
    history = History([append("A", 0, 1, ("x", "a"))], [ask("R", 10, a="")], {"a": ["x"]})
    assert history.find_anomalies() == []


def test_a_long_history_is_checked_in_time_that_grows_with_it() -> None:
    history = simulate(random.Random(7), 2_000)
    assert history.find_anomalies() == []
    last = list(history.last["a"])
    last[100], last[-100] = last[-100], last[100]
    history.last = {**history.last, "a": last}
    history.reads = [read for read in history.reads if "a" not in read.lists]
    assert [anomaly.name for anomaly in history.find_anomalies()] == ["G0"]
