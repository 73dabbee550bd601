"""What a user implements or builds to extend Recallog: ports, their messages, and adapters to build on.

See docs/extending.md. What tests a projection or a reactor is in the package `recallog-testing`.
"""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, is_documented=True)
