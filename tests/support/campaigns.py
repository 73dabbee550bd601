"""How many trials a campaign has, and how many examples a test of Hypothesis: some in each run, and all with
`make test-all`."""

import os

IN_COPY = "RECALLOG_TEST_IN_COPY"
"""The variable that is set where the tests of the kernel run in a copy without memory models."""

_HAS_ALL = "RECALLOG_TEST_ALL" in os.environ
_EXAMPLES_IN_COPY = 0.1


def trials(some: int, of: int) -> int:
    """`some` trials, or all of them."""
    return of if _HAS_ALL else some


def examples(of: int) -> int:
    """All examples, or a tenth of them in a copy without memory models.

    The run of the whole repository has checked all of them. The run in a copy shows that the tested code works without
    the models, for which few examples are enough.
    """
    return max(1, round(of * _EXAMPLES_IN_COPY)) if IN_COPY in os.environ and not _HAS_ALL else of
