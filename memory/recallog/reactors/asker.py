"""The objects that the memory calls for one purpose: given by the program, or made from the model in the settings."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from recallog.reactors.chat_model import ChatModel

Asked = TypeVar("Asked")


@dataclass(frozen=True)
class Asker(Generic[Asked]):
    """A purpose for which a chat model can be asked."""

    name: str
    """The argument of `Memory.open` that takes the program's object for the purpose, such as "reflector"."""
    use: str
    """The task of the model, such as "reflect": the setting `model_reflect` names the model for it."""
    offline: Callable[[], Asked]
    """Makes the object that does not need a model."""
    by_model: Callable[[ChatModel], Asked]
    """Makes the object that calls a model."""
