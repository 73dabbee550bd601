"""Memory for the Python clients of OpenAI and Anthropic. `recallog.wrap` finds this package."""

from recallog_wrap.wrapping import wrap

__all__ = ["wrap"]
