"""Random histories with erasures: see `support.erasing_world`. Many more run with `make simulate WORLD=erasures`."""

import pytest

from simulation.worlds import ERASURES, simulate

pytestmark = pytest.mark.models("all")


@pytest.mark.parametrize("seed", range(24))
def test_after_erasures_everybody_is_answered_as_if_the_payloads_were_blank(seed: int) -> None:
    simulate(seed, ERASURES)
