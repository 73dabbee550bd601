"""Simulated failures: readers only ever see a fold of the ledger."""

import os

import pytest

from support.world import World

SEEDS = 2_400
BLOCK = 100


@pytest.mark.parametrize("first", [pytest.param(n, id=f"seeds_{n:04d}") for n in range(0, SEEDS, BLOCK)])
def test_views_equal_a_fold_of_the_ledger(first: int) -> None:
    only = os.environ.get("RECALLOG_SEED")
    for seed in range(first, first + BLOCK):
        if only is not None and int(only) != seed:
            continue
        try:
            World(seed).run()
        except BaseException as error:
            error.add_note(f"seed {seed}. Again: RECALLOG_SEED={seed} pytest tests/simulation -k seeds_{first:04d}")
            raise
