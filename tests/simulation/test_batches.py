"""Views depend only on the records, not on the bounds of batches or the process that folds them."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog_projections.views import episodic
from support.folding import NEVER_SEEN, all_rows, finish, folded, ledger_at, remembered
from support.oracle import expect
from support.random_events import AGENTS, SPACES, random_ledger
from support.view_checking import check_views

pytestmark = pytest.mark.models("all")

SEEDS = st.integers(0, 2**32)
SIZES = st.integers(1, 60)


def recorded(seed: int, size: int) -> tuple[list[bytes], bool]:
    """A random ledger, and whether its ids are unique."""
    dice = random.Random(seed)
    unique_ids = dice.random() < 0.5
    return random_ledger(dice, size, unique_ids=unique_ids), unique_ids


@settings(max_examples=60)
@given(seed=SEEDS, size=SIZES)
def test_the_rows_are_the_same_wherever_batches_end(seed: int, size: int) -> None:
    values, unique_ids = recorded(seed, size)
    folds = [
        all_rows(*folded(ledger_at(values, unique_ids=unique_ids, batch_records=records)))
        for records in (1, 2, 3, 7, 1000)
    ]
    assert all(rows == folds[0] for rows in folds)


@settings(max_examples=150)
@given(seed=SEEDS, size=SIZES)
def test_every_view_equals_the_oracle(seed: int, size: int) -> None:
    values, unique_ids = recorded(seed, size)
    projector, generation = folded(ledger_at(values, unique_ids=unique_ids))
    check_views(projector.store, generation, expect(values, unique_ids=unique_ids))


@settings(max_examples=60)
@given(seed=SEEDS, size=SIZES, data=st.data())
def test_at_every_position_an_agent_sees_exactly_what_it_may(seed: int, size: int, data: st.DataObject) -> None:
    values, unique_ids = recorded(seed, size)
    until = data.draw(st.integers(0, len(values)), label="until")
    projector, generation = folded(ledger_at(values, unique_ids=unique_ids, batch_records=7), until=until)
    expected = expect(values[:until], unique_ids=unique_ids)
    for space in SPACES:
        for agent in (*AGENTS, "ghost", NEVER_SEEN):
            wanted = episodic.logs(space, agent, 10_000)
            snapshot = finish(projector.store.read(0, logs=wanted, generation=generation))
            assert remembered(snapshot) == expected.visible(space, agent)
