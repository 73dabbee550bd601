"""The point of a document: the passages to embed, their vectors, and the weights of its terms.

The payload contains a checksum of itself, by which damage is found when a point is read: engines have none.
"""

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain, repeat
from typing import Any

import msgspec
import numpy as np

from recallog_projections.index import documents, identifiers, passages, terms, token_codec
from recallog_projections.index.documents import Document
from recallog_projections.index.embedders.embedder import Embedding, Passage, Vectors
from recallog_projections.index.engines.engine import Point, StoredPoint, no_vectors
from recallog_schemas import Event, codec, kinds, limits, timestamps
from recallog_schemas.invented_times import is_invented

VERSION = 5
"""Raise it whenever the same document would give another point. The index is then rebuilt."""

TOKENS, TOKEN_COUNTS = "tokens", "token_counts"
"""Fields of the payload besides those of the document: the vectors of tokens, and how many each passage has."""
MADE_WITH, CHECKSUM = "made_with", "checksum"
"""More fields: what made the vectors, "" without any yet, and the crc32 of the other fields."""

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
_PLAIN_AUTHOR = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._@/-]*: ")


def text_of(document: Document) -> str:
    """The text of a document."""
    text = document.text if document.text is not None else codec.decode(document.event.encode()).text
    return documents.clean(text)


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """The vectors of the tokens of a point's content words."""

    text: str
    """As `token_codec.encode` writes them, passage by passage."""
    counts: Sequence[int | None]
    """The number of tokens of each passage; None for a passage that the model cannot read."""


def passages_of(document: Document) -> list[Passage]:
    """The passages to embed for a document: each begins with the author, the first one also with `before`.

    Those of an entry are its text alone, so that it has the same vectors for every owner.
    """
    text = text_of(document)
    author = "" if document.entry else f"{document.agent}: "
    leads = chain([f"{document.before}\n{author}" if document.before else author], repeat(author))
    return [
        Passage(lead + text[start:end], len(lead))
        for lead, (start, end) in zip(leads, passages.select_embedded(text), strict=False)
    ]


def point(
    key: str,
    document: Document,
    embeddings: Sequence[Embedding],
    made_with: str,
    *,
    with_token_vectors: bool,
    multilingual: Sequence[Embedding] = (),
) -> Point:
    """The point `key` of a document, from the embeddings of `passages_of` it; unreadable ones give no vectors.
    `multilingual` are those of the second model.

    `made_with` identifies the model, so that its vectors are not reused for another one. Without `with_token_vectors`
    tokens only contribute to the dense vectors.
    """
    read = _vectors(document, embeddings)
    dense = _dense(document, read)
    more = _dense(document, _vectors(document, multilingual)) if multilingual else no_vectors()
    written = [token_codec.encode(tokens) if with_token_vectors else "" for _, tokens in filter(None, read)]
    counts = [(len(one[1]) if with_token_vectors else 0) if one is not None else None for one in read]
    return _point(key, document, (dense, more), TokenVectors("".join(written), counts), made_with)


def without_vectors(key: str, document: Document) -> Point:
    """The point of a document whose vectors are computed later: it has its terms."""
    return _point(key, document, (no_vectors(), no_vectors()), TokenVectors("", ()), "")


def _vectors(document: Document, embeddings: Sequence[Embedding]) -> list[tuple[Vectors, Vectors] | None]:
    """For each passage its vector and those of its content words; None for one that the model cannot read."""
    return [
        (embedding.vector, embedding.token_vectors[list(_content_tokens(passage, embedding))])
        if embedding.readable
        else None
        for passage, embedding in zip(passages_of(document), embeddings, strict=True)
    ]


def _dense(document: Document, read: Sequence[tuple[Vectors, Vectors] | None]) -> Vectors:
    """The vectors of the passages that the model has read. Those of entries are of their texts alone, which writers
    compare to find duplicates."""
    found = [vector if document.entry else blend(vector, tokens) for vector, tokens in filter(None, read)]
    return np.array(found, np.float32)


def blend(vector: Vectors, token_vectors: Vectors) -> Vectors:
    """The sum of a passage's vector and the mean vector of its own content words, both of length 1, scaled to length 1.

    `vector` is (dimension,) and includes the preceding text; `token_vectors` is (n, dimension) without it.
    """
    if not len(token_vectors):
        return vector
    of_words = token_vectors.mean(axis=0)
    both: Vectors = vector + of_words / max(float(np.linalg.norm(of_words)), 1e-9)
    return both / max(float(np.linalg.norm(both)), 1e-9)


def can_reuse(stored: StoredPoint, document: Document, made_with: str) -> bool:
    """Whether the vectors of a stored point are those of `document`: whole, of the same passages and the same model."""
    try:
        before = documents.from_payload(stored.payload)
    except msgspec.ValidationError:
        return False  # the payload is of an older version
    return (
        stored.payload.get(MADE_WITH) == made_with
        and passages_of(before) == passages_of(document)
        and not damage(stored)
    )


def reuse(stored: StoredPoint, document: Document) -> Point:
    """The point of a document with the vectors of a stored point, which must have been read with its vectors."""
    tokens = TokenVectors(stored.payload[TOKENS], stored.payload[TOKEN_COUNTS])
    vectors = (stored.dense, stored.multilingual)
    dense, multilingual = (no_vectors() if each is None else each for each in vectors)
    return _point(stored.id, document, (dense, multilingual), tokens, stored.payload[MADE_WITH])


def same_vectors(key: str, document: Document, other: Point) -> Point:
    """The point `key` of a document with the vectors of a point of the same passages."""
    tokens = TokenVectors(other.payload[TOKENS], other.payload[TOKEN_COUNTS])
    return _point(key, document, (other.dense, other.multilingual), tokens, other.payload[MADE_WITH])


def damage(stored: StoredPoint) -> str:
    """What is damaged in a point with its whole payload, in words; "" if nothing.

    For its vectors, that is what the engine found when it read them.
    """
    if stored.payload.get(CHECKSUM) != _checksum(stored.id, stored.payload):
        return "its payload differs from its checksum"
    return stored.damage


def seal_payload(key: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The payload of the point `key` with its checksum."""
    return {**payload, CHECKSUM: _checksum(key, payload)}


def _checksum(key: str, payload: Mapping[str, Any]) -> int:
    """The crc32 of a point's id and of its payload without the checksum."""
    content = {name: value for name, value in payload.items() if name != CHECKSUM}
    return zlib.crc32(msgspec.json.encode(content, order="deterministic"), zlib.crc32(key.encode()))


def terms_of(text: str, at: int) -> list[str]:
    """The terms of a text: those of its date (`at` in microseconds since 1970, UTC), then those of its words.

    A time that ingest invented has no terms.
    """
    moment = timestamps.moment_of(at)
    if is_invented(moment):
        return terms.terms(text)
    return [*date_terms(moment), *terms.terms(text)]


def date_terms(day: date) -> list[str]:
    """The terms of a date."""
    return terms.terms(f"{day.day} {_MONTHS[day.month - 1]} {day.year}")


def weights_of(document: Document) -> dict[str, float]:
    """The BM25 weight of each term of a document, discounted for words that the preceding text has too.

    The words of an action count in full: it is what the text before it announced.
    """
    if document.is_part:
        return part_weights(text_of(document), document.at)
    preceding = frozenset() if document.is_action else frozenset(terms.terms(_without_author(document.before)))
    found = terms_of(text_of(document), document.at)
    if kinds.kind_of(document.kind).details is not None:
        found += detail_terms(codec.decode(document.event.encode()), found)
    return terms.repeated_term_discount(terms.weights(found), preceding)


def _without_author(before: str) -> str:
    """The end of the preceding text. One that is cut may begin within the text, which has colons too."""
    if len(before) < limits.INDEX_BEFORE_CHARS:
        author, found, text = before.partition(": ")
        return text if found else author
    return _PLAIN_AUTHOR.sub("", before)


def part_weights(text: str, at: int) -> dict[str, float]:
    """The BM25 weight of each term of a part of a longer text, discounted for words that only its first line has: among
    the parts below a heading, one that has the words of the heading too is better."""
    title, _, lines = text.partition("\n")
    above = frozenset(terms.terms(title)) - frozenset(terms.terms(lines))
    return terms.repeated_term_discount(terms.weights(terms_of(text, at)), above)


def detail_terms(event: Event, known: Iterable[str]) -> list[str]:
    """The exact strings in the details of an event that are not among the `known` terms of its text.

    If there are too many, those of the beginning and of the end.
    """
    details = kinds.kind_of(event.kind).details
    if details is None:
        return []
    found = dict.fromkeys(term for _, _, term in identifiers.occurrences(details(event.payload)))
    before = frozenset(known)
    more = [term for term in found if identifiers.is_exact(term) and term not in before]
    half = limits.INDEX_DETAIL_TERMS_MAX // 2
    return more if len(more) <= 2 * half else more[:half] + more[-half:]


def _content_tokens(passage: Passage, embedding: Embedding) -> Iterator[int]:
    """The indexes of the tokens that belong to content words."""
    words = terms.content_words(passage.text, passage.tokens_from)
    word = next(words, None)
    for number, (start, end) in enumerate(embedding.token_spans):
        while word is not None and word[1] <= start:
            word = next(words, None)
        if word is not None and word[0] <= start and end <= word[1]:
            yield number


def _point(
    key: str, document: Document, vectors: tuple[np.ndarray, np.ndarray], tokens: TokenVectors, made_with: str
) -> Point:
    """A point with its `dense` and `multilingual` vectors."""
    dense, multilingual = vectors
    payload = documents.payload(document) | {
        TOKENS: tokens.text,
        TOKEN_COUNTS: list(tokens.counts),
        MADE_WITH: made_with,
    }
    return Point(key, dense, terms.sparse(weights_of(document)), seal_payload(key, payload), multilingual)
