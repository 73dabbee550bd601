"""Simulated failures: readers only ever see a fold of the ledger, or an error that a fault explains."""

import pytest

from simulation.worlds import simulate
from support.campaigns import trials

pytestmark = pytest.mark.models("all")

SEEDS = trials(200, of=600)
BLOCK = 25


@pytest.mark.parametrize("first", [pytest.param(n, id=f"seeds_{n:03d}") for n in range(0, SEEDS, BLOCK)])
def test_every_answer_is_a_fold_of_the_ledger(first: int) -> None:
    for seed in range(first, first + BLOCK):
        simulate(seed)
