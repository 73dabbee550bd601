"""The point of a document: the passage to embed, its vectors, and the weights of its terms."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np

from recallog_projections.index import documents, terms
from recallog_projections.index.documents import Document
from recallog_projections.index.embedders.embedder import Embedding, Passage, Vectors
from recallog_projections.index.engines.engine import Point, StoredPoint
from recallog_schemas import codec

VERSION = 3
"""To be raised whenever the same document would give another point. The index is then rebuilt."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)  # not those of the locale: the same document must have the same terms on every machine
_AUTHOR = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._@/-]*: ")
_WORD = re.compile(r"[^\W_]+")


def text_of(document: Document) -> str:
    """The text of a document."""
    text = document.text if document.text is not None else codec.decode(document.event.encode()).text
    return documents.clean(text)


def passage(document: Document) -> Passage:
    """The passage to embed for a document: `before`, a line break, and "author: text"."""
    lead = f"{document.before}\n{document.agent}: " if document.before else f"{document.agent}: "
    return Passage(lead + text_of(document), len(lead))


def point(key: str, document: Document, embedding: Embedding, *, with_token_vectors: bool) -> Point:
    """The point `key` of a document. Without `with_token_vectors` tokens only contribute to the dense vector."""
    text = passage(document).text
    token_vectors = embedding.token_vectors[list(_content_tokens(text, embedding))]
    return _point(
        key,
        document,
        blended(embedding.vector, token_vectors),
        token_vectors if with_token_vectors else token_vectors[:0],
    )


def blended(vector: Vectors, token_vectors: Vectors) -> Vectors:
    """The sum of a passage's vector and the mean vector of its own content words, both of length 1, scaled to length 1.

    `vector` is (dimension,) and includes the preceding text; `token_vectors` is (n, dimension) without it.
    """
    if not len(token_vectors):
        return vector
    of_words = token_vectors.mean(axis=0)
    both: Vectors = vector + of_words / max(float(np.linalg.norm(of_words)), 1e-9)
    return both / max(float(np.linalg.norm(both)), 1e-9)


def can_reuse(stored: StoredPoint, document: Document) -> bool:
    """Whether the vectors of a stored point are those of `document`: the passages are the same."""
    try:
        before = documents.from_payload(stored.payload)
    except msgspec.ValidationError:
        return False  # the payload is of an older version
    return passage(before) == passage(document)


def reuse(stored: StoredPoint, document: Document) -> Point:
    """The point of a document with the vectors of a stored point, which must have been read with its vectors."""
    if stored.dense is None:
        raise ValueError(f"the vectors of {stored.id} were not read")
    token_vectors = stored.token_vectors
    if token_vectors is None:
        token_vectors = np.empty((0, len(stored.dense)), np.float32)
    return _point(stored.id, document, stored.dense, token_vectors)


def terms_of(text: str, at: int) -> list[str]:
    """The terms of a text: those of its date (`at` in microseconds since 1970, UTC), then those of its words."""
    moment = _EPOCH + timedelta(microseconds=at)
    return [*terms.terms(f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"), *terms.terms(text)]


def weights_of(document: Document) -> dict[str, float]:
    """The BM25 weight of each term of a document, discounted for terms that the preceding text has too."""
    preceding = frozenset(terms.terms(_AUTHOR.sub("", document.before)))
    return terms.repeated_term_discount(terms.weights(terms_of(text_of(document), document.at)), preceding)


def content_words(text: str) -> Iterator[tuple[int, int, str]]:
    """The content words of `text` as (start, end, word in lower case), in characters, end exclusive."""
    for found in _WORD.finditer(text):
        word = found.group().lower()
        if word not in terms.FUNCTION_WORDS:
            yield found.start(), found.end(), word


def _content_tokens(text: str, embedding: Embedding) -> Iterator[int]:
    """The indexes of the tokens that belong to content words."""
    words = content_words(text)
    word = next(words, None)
    for number, (start, end) in enumerate(embedding.token_spans):
        while word is not None and word[1] <= start:
            word = next(words, None)
        if word is not None and word[0] <= start and end <= word[1]:
            yield number


def _point(key: str, document: Document, dense: np.ndarray, token_vectors: np.ndarray) -> Point:
    return Point(key, dense, terms.sparse(weights_of(document)), token_vectors, documents.payload(document))
