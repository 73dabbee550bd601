"""Selects the writer of beliefs: the reflector of the program, or of the settings."""

from recallog.models.beliefs.reflector import Reflector
from recallog.reactors.asker import Asker
from recallog.reactors.chat_model import ChatModel


def _offline() -> Reflector:
    from recallog.models.beliefs.extractive import Extractive

    return Extractive()


def _by_model(model: ChatModel) -> Reflector:
    from recallog.models.beliefs.model_reflector import ModelReflector

    return ModelReflector(model)


REFLECTOR = Asker("reflector", "reflect", _offline, _by_model)
