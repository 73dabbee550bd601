"""Sessions of the OpenAI Agents SDK in a memory of Recallog."""

from recallog_openai_agents.session import RecallogSession

__all__ = ["RecallogSession"]
