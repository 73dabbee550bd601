"""The events whose points have no vectors yet, as the rows of the index note them."""

from recallog_projections.stores.store import Generation, Store

UNREAD = "index.unread"
"""The table of these points, whose keys are the offset of the event in 20 digits and the id of the point."""
_OFFSET_DIGITS = 20


def key_of(offset: int, point: str) -> str:
    """The key of the row that notes a point."""
    return f"{offset:0{_OFFSET_DIGITS}} {point}"


def point_of(key: str) -> str:
    """The id of the point that the row at `key` notes."""
    return key[_OFFSET_DIGITS + 1 :]


async def unread(rows: Store, generation: Generation) -> range:
    """The offsets from the oldest to the newest event whose point has no vectors yet. Raises `Rebuilding`."""
    found: list[int] = []
    for newest_first in (False, True):
        chunk = await rows.scan(generation, UNREAD, newest_first=newest_first, limit=1)
        found += [int(item.key[:_OFFSET_DIGITS]) for item in chunk.items]
    return range(found[0], found[-1] + 1) if found else range(0)
