"""How many trials a campaign has: some in each run, and all with `make test-all`."""

import os

_HAS_ALL = "RECALLOG_TEST_ALL" in os.environ


def trials(some: int, of: int) -> int:
    """`some` trials, or all of them."""
    return of if _HAS_ALL else some
