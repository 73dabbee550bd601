"""Configuration of the tests that kill processes."""

import os
import random

import pytest


@pytest.fixture
def chance() -> random.Random:
    """The choices of a test. A failing run prints its seed; `RECALLOG_TEST_SEED=<seed>` makes the same ones again."""
    seed = int(os.environ.get("RECALLOG_TEST_SEED") or random.SystemRandom().randrange(2**32))
    print(f"seed: RECALLOG_TEST_SEED={seed}")
    return random.Random(seed)
