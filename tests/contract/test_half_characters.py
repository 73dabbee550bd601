"""Texts that were cut inside a character, as the answer of a model can be: questions with them are answered."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from recallog import Memory
from recallog_schemas.errors import InvalidArgument
from support.events import numbered, run

HALF = "wo \ud83d"
QUESTIONS: list[Callable[[Memory], Awaitable[object]]] = [
    lambda memory: memory.salient("village", "baker", HALF),
    lambda memory: memory.context("village", "baker", scene=HALF),
    lambda memory: memory.explain("village", "e-1", "baker", query=HALF),
    lambda memory: memory.recall("village", "baker", "bread", session=HALF),
    lambda memory: memory.search("village", "baker", "bread", kinds=[HALF]),
]


@pytest.mark.parametrize("index", ["off", "embedded"])
def test_a_question_with_half_a_character_is_answered(
    index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # JSON cannot express it, so the process of the index is not asked: this once ended with a UnicodeEncodeError.
    monkeypatch.setenv("RECALLOG_INDEX", index)
    monkeypatch.setenv("RECALLOG_INDEX_IDLE_SECONDS", "5")

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(numbered(3))
            await memory.recall("village", "baker", "bread", wait_index=True)
            for question in QUESTIONS:
                await question(memory)
            with pytest.raises(InvalidArgument, match=r"^query: "):
                await memory.recall("village", "baker", HALF)
            if index == "embedded":
                view = await memory.context("village", "baker", scene=HALF)
                assert "half of a surrogate pair" in (view.degraded or "")

    run(work())
