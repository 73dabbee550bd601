"""The object that the memory asks for one purpose: given by the program, or made from the model that the settings
name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from recallog.reactors.chat_model import ChatModel

Asked = TypeVar("Asked")


@dataclass(frozen=True)
class Asker(Generic[Asked]):
    """A purpose for which a chat model can be asked."""

    name: str
    """The argument of `Memory.open` that takes what a program gives for the purpose, such as "reflector"."""
    use: str
    """What the model does, such as "reflect": the setting `model_reflect` is about it."""
    offline: Callable[[], Asked]
    """Makes the object that needs no model."""
    by_model: Callable[[ChatModel], Asked]
    """Makes what asks a model."""
