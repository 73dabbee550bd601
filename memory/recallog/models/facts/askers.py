"""What draws facts from texts and answers from facts: those of a program, or of the settings."""

from typing import Any

from recallog.models.facts.extractor import FactExtractor
from recallog.models.facts.synthesizer import ExtractiveSynthesizer, Synthesizer
from recallog.reactors.asker import Asker


def _offline_extractor() -> FactExtractor:
    from recallog.models.facts.heuristic import HeuristicExtractor

    return HeuristicExtractor()


def _endpoint_of_extractor(url: str, model: str, **options: Any) -> FactExtractor:
    from recallog.models.facts.extractor_endpoint import EndpointExtractor

    return EndpointExtractor(url, model, **options)


EXTRACTOR = Asker("extractor", _offline_extractor, _endpoint_of_extractor)


def _offline_synthesizer() -> Synthesizer:
    return ExtractiveSynthesizer()


def _endpoint_of_synthesizer(url: str, model: str, **options: Any) -> Synthesizer:
    from recallog.models.facts.synthesizer_endpoint import EndpointSynthesizer

    return EndpointSynthesizer(url, model, **options)


SYNTHESIZER = Asker("synthesizer", _offline_synthesizer, _endpoint_of_synthesizer)
