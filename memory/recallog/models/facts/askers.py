"""Selects the extractor and the synthesizer: of the program, or of the settings."""

from recallog.models.facts.extractor import FactExtractor
from recallog.models.facts.synthesizer import ExtractiveSynthesizer, Synthesizer
from recallog.reactors.asker import Asker
from recallog.reactors.chat_model import ChatModel


def _offline_extractor() -> FactExtractor:
    from recallog.models.facts.heuristic import HeuristicExtractor

    return HeuristicExtractor()


def _extractor_by_model(model: ChatModel) -> FactExtractor:
    from recallog.models.facts.model_extractor import ModelExtractor

    return ModelExtractor(model)


EXTRACTOR = Asker("extractor", "extract", _offline_extractor, _extractor_by_model)


def _offline_synthesizer() -> Synthesizer:
    return ExtractiveSynthesizer()


def _synthesizer_by_model(model: ChatModel) -> Synthesizer:
    from recallog.models.facts.model_synthesizer import ModelSynthesizer

    return ModelSynthesizer(model)


SYNTHESIZER = Asker("synthesizer", "answer", _offline_synthesizer, _synthesizer_by_model)
