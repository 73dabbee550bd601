"""The names with which users extend Recallog: ports, their messages, and adapters to build on.

See docs/extending.md. The package `recallog-testing` has drivers for tests of projections and reactors.
"""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, is_documented=True)
