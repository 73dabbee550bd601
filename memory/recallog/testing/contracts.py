"""Contract suites of the ports, for tests of adapters, models and readers: `from recallog.testing.contracts import …`.

The package `recallog-testing` has them (`recallog_testing.contracts` says which). It is found by its entry point.
"""

from typing import Any

from recallog_projections import plugins
from recallog_schemas.extras import how_to_install

_suites = plugins.load(plugins.TESTING, "contracts")
if _suites is None:
    raise ModuleNotFoundError(f"recallog-testing is not installed. {how_to_install('recallog-testing')}", name=__name__)


def __getattr__(name: str) -> Any:
    try:
        return getattr(_suites, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
