"""The reranker port: a second model that scores the query together with each of the best memories. There is no default.

It costs one pass of its model per memory, at query time. The index does not change.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from recallog.retrieval.bounded_calls import call_within
from recallog_schemas.views import RecallView

_DEADLINES = 5
"""A reranker may take so many deadlines of a query: it is a model that computes, and the first call may load it."""


class Reranker(ABC):
    """Scores how well texts answer a query, for example a cross-encoder. It is called in a separate thread."""

    @abstractmethod
    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score per text, in order; higher is better, on any scale.

        If it raises, or takes longer than five times `RECALLOG_DEADLINE_SECONDS`, recall returns the hits in their
        original order, and `degraded` says why. A call continues after that time.
        """


async def rerank(reranker: Reranker, found: RecallView, top_k: int, seconds: float) -> RecallView:
    """The best `top_k` of `found` in the reranker's order. If it fails, or takes longer than five times `seconds`, they
    keep their order, and `degraded` has the reason."""
    texts = [hit.text for hit in found.hits]
    try:
        scores = await call_within(_DEADLINES * seconds, "recallog-reranker", reranker.score, found.query, texts)
        scored = sorted(zip(scores, found.hits, strict=True), key=lambda pair: -pair[0])
    except Exception as error:  # noqa: BLE001 - a user's model may raise anything
        degraded = "; ".join(filter(None, (found.degraded, f"the reranker failed: {type(error).__name__}: {error}")))
        return found.model_copy(update={"top_k": top_k, "hits": found.hits[:top_k], "degraded": degraded})
    hits = [hit.model_copy(update={"score": score, "parts": {"reranker": score}}) for score, hit in scored[:top_k]]
    return found.model_copy(update={"top_k": top_k, "hits": tuple(hits)})
