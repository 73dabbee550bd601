"""An extractor that answers as a test chooses."""

from collections.abc import Sequence
from typing import ClassVar

from recallog.extending import ExtractionRequest, Fact, FactExtractor


class StubExtractor(FactExtractor):
    """Answers with the same facts each time, or fails."""

    name: ClassVar[str] = "stub"

    def __init__(self, *found: Fact | str, error: Exception | None = None) -> None:
        self.found = [Fact(each) if isinstance(each, str) else each for each in found]
        self.error = error
        self.asked: list[ExtractionRequest] = []
        self.closed = 0

    async def extract(self, request: ExtractionRequest) -> Sequence[Fact]:
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        return self.found

    async def close(self) -> None:
        self.closed += 1

    @property
    def read(self) -> list[list[str]]:
        """The texts of each request."""
        return [[said.text for said in request.utterances] for request in self.asked]
