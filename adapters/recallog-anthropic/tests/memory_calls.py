"""Calls of the memory tool, as the model makes them."""

from typing import Any

from model_stub import message


def use(number: int, **command: Any) -> Any:
    """A message that calls the tool."""
    return message({"type": "tool_use", "id": f"toolu_{number}", "name": "memory", "input": command})
