"""What a user implements to extend the models, see `recallog.extending`."""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports
from recallog_schemas.models import BUILT_IN

if TYPE_CHECKING:
    from recallog.models.beliefs.reflector import Evidence as Evidence
    from recallog.models.beliefs.reflector import ReflectionAnswer as ReflectionAnswer
    from recallog.models.beliefs.reflector import ReflectionRequest as ReflectionRequest
    from recallog.models.beliefs.reflector import Reflector as Reflector
    from recallog.models.conversations.summarizer import Summarizer as Summarizer
    from recallog.models.facts.extractor import ExtractionRequest as ExtractionRequest
    from recallog.models.facts.extractor import Fact as Fact
    from recallog.models.facts.extractor import FactExtractor as FactExtractor
    from recallog.models.facts.extractor import Utterance as Utterance
    from recallog.models.facts.synthesizer import Synthesizer as Synthesizer
else:
    __getattr__, __dir__ = lazy_exports(__name__, [f"recallog.models.{each}" for each in BUILT_IN])
