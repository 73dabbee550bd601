"""From a document to the point that stands for it: what its vector reads, its terms, and its word-pieces."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np

from recallog_projections.index import documents, terms
from recallog_projections.index.documents import Document
from recallog_projections.index.embedders.embedder import Embedding, Passage, Vectors
from recallog_projections.index.engines.engine import Point, Stored
from recallog_schemas import codec

VERSION = 3
"""Raised whenever the same document would give another point: the index is then built again."""

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
)  # not as the locale has them: the same document must give the same terms everywhere
_AUTHOR = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._@/-]*: ")
_WORD = re.compile(r"[^\W_]+")


def text_of(document: Document) -> str:
    """What the event says."""
    text = document.text if document.text is not None else codec.decode(document.event.encode()).text
    return documents.clean(text)


def passage(document: Document, *, token_vectors: bool) -> Passage:
    """What the vector of a document reads: what was said before it, a line break, and "author: text".

    Its word-pieces, where they are wanted, are those of its own text.
    """
    lead = f"{document.before}\n{document.agent}: " if document.before else f"{document.agent}: "
    return Passage(lead + text_of(document), len(lead) if token_vectors else None)


def point(key: str, document: Document, embedding: Embedding, *, keep_token_vectors: bool) -> Point:
    """The point `key` of a document; unless `keep_token_vectors` its word-pieces shape its vector alone."""
    text = passage(document, token_vectors=True).text
    token_vectors = embedding.token_vectors[list(_content(text, embedding))]
    return _point(
        key,
        document,
        focused(embedding.vector, token_vectors),
        token_vectors if keep_token_vectors else token_vectors[:0],
    )


def focused(vector: Vectors, token_vectors: Vectors) -> Vectors:
    """The mean of a text's vector and of that of its own content words, of length 1.

    The first hears what was said around them, the second does not; together they find what neither finds alone.
    """
    if not len(token_vectors):
        return vector
    of_words = token_vectors.mean(axis=0)
    both: Vectors = vector + of_words / max(float(np.linalg.norm(of_words)), 1e-9)
    return both / max(float(np.linalg.norm(both)), 1e-9)


def is_same(kept: Stored, document: Document) -> bool:
    """Whether the vectors of a point that is kept are those of `document`."""
    try:
        before = documents.of_payload(kept.payload)
    except msgspec.ValidationError:
        return False  # of an older version, which kept something else
    return passage(before, token_vectors=False) == passage(document, token_vectors=False)


def again(kept: Stored, document: Document) -> Point:
    """The point of a document whose vectors are kept already."""
    if kept.dense is None:
        raise ValueError(f"the vectors of {kept.id} were not asked for")
    token_vectors = kept.token_vectors if kept.token_vectors is not None else np.empty((0, len(kept.dense)), np.float32)
    return _point(kept.id, document, kept.dense, token_vectors)


def terms_of(text: str, at: int) -> list[str]:
    """The terms that what was said at a moment (microseconds since 1970) is found by: its date's, and its words'."""
    moment = _EPOCH + timedelta(microseconds=at)
    return [*terms.terms(f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"), *terms.terms(text)]


def weights_of(document: Document) -> dict[str, float]:
    """The weight of each term of a document. What is only taken up from the one before it says less about this one."""
    heard = frozenset(terms.terms(_AUTHOR.sub("", document.before)))
    return terms.repeated_term_discount(terms.weights(terms_of(text_of(document), document.at)), heard)


def content_words(text: str) -> Iterator[tuple[int, int, str]]:
    """The content words of `text`: first character, the one behind the last, and the lower-case word."""
    for found in _WORD.finditer(text):
        word = found.group().lower()
        if word not in terms.FUNCTION_WORDS:
            yield found.start(), found.end(), word


def _content(text: str, embedding: Embedding) -> Iterator[int]:
    """Which pieces belong to content words."""
    words = content_words(text)
    word = next(words, None)
    for number, (start, end) in enumerate(embedding.token_spans):
        while word is not None and word[1] <= start:
            word = next(words, None)
        if word is not None and word[0] <= start and end <= word[1]:
            yield number


def _point(key: str, document: Document, dense: np.ndarray, token_vectors: np.ndarray) -> Point:
    return Point(key, dense, terms.sparse(weights_of(document)), token_vectors, documents.payload(document))
