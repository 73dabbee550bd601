"""Recallog: event-sourced memory for AI agents.

An agent's memory is not a separate store. It is a set of views computed from one durable ledger.
"""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, is_documented=True)
