"""The forms of the chunks of a document over time: which of them stay, begin and end when the document changes.

A chunk is the same as long as its text is, wherever it is in the document. Its lines are those of the present
document, so they are not part of a form.
"""

from collections import defaultdict, deque
from collections.abc import Sequence

import msgspec

from recallog_projections.models.workspace.chunks import DocumentChunk
from recallog_schemas.models.workspace import limits as workspace_limits


class ChunkForm(msgspec.Struct, frozen=True, array_like=True):
    """One chunk, from the change of its document that added it to the change that removes it."""

    text_key: int
    """Stands for its text."""
    since: int
    """The offset of the change that added it."""
    since_at: int
    """When that happened, in microseconds since 1970."""
    number: int
    """Its number among the chunks of that change, from 0."""


class DocumentChunks(msgspec.Struct, frozen=True, array_like=True):
    """The chunks of one document in the index."""

    present: tuple[ChunkForm, ...]
    """The chunks that it has, in its order."""
    ended: tuple[str, ...]
    """The ids of the points of chunks that it had, oldest first, at most `workspace_limits.DOCUMENT_CHUNKS_ENDED`."""


class ChunkChanges(msgspec.Struct, frozen=True):
    """What a change of a document did to its chunks."""

    present: tuple[ChunkForm, ...]
    """The chunks that it has now, in its order."""
    begun: tuple[tuple[ChunkForm, DocumentChunk], ...]
    """The chunks that it did not have before."""
    ended: tuple[tuple[ChunkForm, DocumentChunk], ...]
    """The chunks that it no longer has."""


def changes(
    known: Sequence[ChunkForm],
    before: Sequence[tuple[int, DocumentChunk]],
    after: Sequence[tuple[int, DocumentChunk]],
    offset: int,
    at: int,
) -> ChunkChanges:
    """What a change of a document at an offset and a time did.

    `known` are the forms of the chunks `before`, in the same order; chunks come with the keys of their texts.
    """
    left: dict[int, deque[tuple[ChunkForm, DocumentChunk]]] = defaultdict(deque)
    for form, (key, chunk) in zip(known, before, strict=True):
        left[key].append((form, chunk))
    present: list[ChunkForm] = []
    begun: list[tuple[ChunkForm, DocumentChunk]] = []
    for number, (key, chunk) in enumerate(after):
        if left[key]:
            present.append(left[key].popleft()[0])
        else:
            present.append(ChunkForm(key, offset, at, number))
            begun.append((present[-1], chunk))
    ended = sorted((each for of_key in left.values() for each in of_key), key=lambda each: each[1].first)
    return ChunkChanges(tuple(present), tuple(begun), tuple(ended))


def select_retained(ended: Sequence[str]) -> tuple[str, ...]:
    """The ended points that are retained, of `ended`, oldest first."""
    return tuple(ended[-workspace_limits.DOCUMENT_CHUNKS_ENDED :])
