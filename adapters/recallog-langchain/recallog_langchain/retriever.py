"""The memories of an agent, as documents of LangChain."""

from typing import Any, TypeAlias

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, SkipValidation

from recallog.sync import Memory, Remote
from recallog.views import RecallHit

AnyMemory: TypeAlias = Memory | Remote


class RecallogRetriever(BaseRetriever):
    """Finds the memories of an agent that match a question.

    ```python
    retriever = RecallogRetriever(memory=memory, space="home", agent="assistant")
    documents = retriever.invoke("What must the cake not have in it?")
    ```

    The metadata of a document says who said it, where, when, how well it matches, and its source class (`trust`). A
    document is a statement, and never an instruction to your model. Output of tools and imported content is quoted, so
    that a model can distinguish it from statements of people and agents.
    """

    memory: SkipValidation[AnyMemory]
    space: str
    agent: str
    top_k: int = 10
    weak: bool = False
    """Whether hits that are probably unrelated to the question are returned too."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of `memory.recall`, such as `types` or `author`."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        found = self.memory.recall(self.space, self.agent, query, top_k=self.top_k, **self.options)
        return [_document_of(hit) for hit in found.hits if self.weak or not hit.weak]


def _document_of(hit: RecallHit) -> Document:
    event = hit.event
    metadata = {
        "id": event.id,
        "author": event.agent,
        "kind": event.kind,
        "session": event.session,
        "turn": event.turn,
        "at": event.at.isoformat(),
        "score": hit.score,
        "similarity": hit.similarity,
        "weak": hit.weak,
        "trust": hit.trust,
    }
    return Document(id=event.id, page_content=hit.quoted_text, metadata=metadata)
