"""Shared by all tiers of tests."""

import os

import pytest
from hypothesis import HealthCheck, settings

# A developer's own memory is none of the tests' business.
for _name in [name for name in os.environ if name.startswith("RECALLOG_") and not name.startswith("RECALLOG_TEST_")]:
    del os.environ[_name]
# Most tests ask nothing of the index; those that do say so, since it is a process with a model.
os.environ["RECALLOG_INDEX"] = "off"

# Shared assertions report what they compared, as those of a test module do.
pytest.register_assert_rewrite(
    "contract.engine_contract",
    "contract.ledger_contract",
    "contract.store_contract",
    "support.world",
    "support.folding",
)

# A slow machine is no failure; the same examples every time, so that a red build is red again on the next machine.
settings.register_profile("recallog", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("recallog")
