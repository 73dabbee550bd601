"""What writes beliefs: the reflector of a program, or of the settings."""

from typing import Any

from recallog.models.beliefs.reflector import Reflector
from recallog.reactors.asker import Asker


def _offline() -> Reflector:
    from recallog.models.beliefs.extractive import Extractive

    return Extractive()


def _endpoint(url: str, model: str, **options: Any) -> Reflector:
    from recallog.models.beliefs.reflector_endpoint import ChatEndpoint

    return ChatEndpoint(url, model, **options)


REFLECTOR = Asker("reflector", _offline, _endpoint)
