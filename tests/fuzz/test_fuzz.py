"""Malformed inputs, in the time that a run of all tests has for them; `make fuzz N=1000000` gives more."""

import json
import random
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz import campaign, mutations
from fuzz.campaign import Counts, Failure, block, run
from fuzz.targets import TARGETS, Target
from support.campaigns import trials

SEED = 20_260_301
BLOCKS = trials(40, of=120)

BY_NAME = {target.name: target for target in TARGETS}
texts = st.text(max_size=60)
keys = texts | st.sampled_from(mutations.KEYS)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.sampled_from(mutations.VALUES),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
documents = json_values.map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass"))
inputs = st.binary(max_size=400) | documents | st.lists(documents, max_size=4).map(b"\n".join)


def judged(names: Sequence[str]) -> tuple[Counts, list[Failure]]:
    counts, failures = Counts(), list[Failure]()
    run(iter(names), counts, failures.append, lambda done: None)
    return counts, failures


@pytest.mark.parametrize("first", range(0, BLOCKS, 20))
def test_malformed_inputs_are_errors_of_recallog_and_nothing_is_lost(first: int) -> None:
    counts, failures = judged([f"{SEED}:{number}" for number in range(first, first + 20)])
    assert not failures, "\n".join(failure.describe() for failure in failures)
    assert sum(counts.inputs.values()) == 20 * campaign.INPUTS


@pytest.mark.parametrize("name", BY_NAME)
def test_a_block_of_each_target_passes(name: str) -> None:
    target, rng = BY_NAME[name], random.Random(name)
    seeds = target.seeds(rng)
    target.judge(seeds, rng)  # valid inputs
    target.judge([mutations.mutated(rng, rng.choice(seeds), seeds) for _ in range(campaign.INPUTS)], rng)


@settings(max_examples=60)
@given(st.sampled_from(sorted(BY_NAME)), st.lists(inputs, min_size=1, max_size=5), st.integers(0, 3))
def test_any_bytes_and_any_json_are_errors_of_recallog(name: str, given_: list[bytes], seed: int) -> None:
    BY_NAME[name].judge(given_, random.Random(seed))


def test_a_block_is_the_same_whenever_it_is_made() -> None:
    for number in range(5):
        assert block(f"1:{number}") == block(f"1:{number}")


def test_damage_reaches_every_reader() -> None:
    """Half of the inputs are refused and others are not: damage that is always noticed at once would test little."""
    rng = random.Random(1)
    found = {name: [0, 0] for name in ("codec", "arguments")}
    for name, counts in found.items():
        seeds = BY_NAME[name].seeds(rng)
        for _ in range(500):
            data = mutations.mutated(rng, rng.choice(seeds), seeds)
            try:
                counts[isinstance(json.loads(data), dict)] += 1
            except (ValueError, RecursionError):
                counts[0] += 1
    assert all(min(counts) > 100 for counts in found.values()), found


# The campaign itself


def planted(monkeypatch: pytest.MonkeyPatch, target: Target) -> None:
    monkeypatch.setattr(campaign, "TARGETS", (target,))


def test_an_error_of_a_reader_is_narrowed_down_to_its_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def judge(given_: Sequence[bytes], rng: random.Random) -> None:
        for data in given_:
            if b"\x00" in data:
                raise KeyError("NUL")

    planted(monkeypatch, replace(BY_NAME["codec"], judge=judge))
    names = [f"1:{number}" for number in range(5)]
    _, failures = judged(names)
    assert failures
    for failure in failures:
        (data,) = failure.inputs
        assert b"\x00" in data
        assert "KeyError: 'NUL'" in failure.describe()
        assert re.search(r"make fuzz BLOCK=1:[0-4]$", failure.describe())
        assert json.loads(failure.save(tmp_path).read_text())["block"] == failure.block
        assert judged([failure.block])[1][0].inputs == failure.inputs


def test_a_reader_that_does_not_end_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(given_: Sequence[bytes], rng: random.Random) -> None:
        try:
            while True:
                time.process_time()
        except Exception:  # noqa: BLE001  # as a reader may
            pass

    planted(monkeypatch, replace(BY_NAME["codec"], judge=judge))
    monkeypatch.setattr(campaign, "_BLOCK_SECONDS", 0.1)
    monkeypatch.setattr(campaign, "INPUT_SECONDS", 0.05)
    _, failures = judged(["1:0"])
    assert [failure.error for failure in failures] == ["TooSlow: more than 0.05 s of CPU"]
