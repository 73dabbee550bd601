"""What summarises conversations: the summarizer of a program, or of the settings."""

from typing import Any

from recallog.models.conversations.summarizer import Summarizer
from recallog.reactors.asker import Asker


def _offline() -> Summarizer | None:
    return None


def _endpoint(url: str, model: str, **options: Any) -> Summarizer | None:
    from recallog.models.conversations.summarizer_endpoint import EndpointSummarizer

    return EndpointSummarizer(url, model, **options)


SUMMARIZER = Asker("summarizer", _offline, _endpoint)
