"""Access: grants, keys, tokens and rate limits, for all doors. It does not depend on HTTP or MCP."""

from recallog_service.access.access import CALLER, Access, Caller
from recallog_service.access.grants import Grant, Verb
from recallog_service.access.guarded import Guarded

__all__ = ["CALLER", "Access", "Caller", "Grant", "Guarded", "Verb"]
