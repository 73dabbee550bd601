"""Selects the writer of summaries: the summarizer of the program, or of the settings."""

from recallog.models.conversations.summarizer import Summarizer
from recallog.reactors.asker import Asker
from recallog.reactors.chat_model import ChatModel


def _offline() -> Summarizer | None:
    return None


def _by_model(model: ChatModel) -> Summarizer | None:
    from recallog.models.conversations.model_summarizer import ModelSummarizer

    return ModelSummarizer(model)


SUMMARIZER = Asker("summarizer", "summarize", _offline, _by_model)
