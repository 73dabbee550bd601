"""The hash chain of a partition: one value that stands for all records up to an offset.

    chain(n) = blake2b-16(chain(n - 1) + n as 8 bytes, big-endian + the value of the record n)

It begins with 16 zero bytes; an offset without a record does not change it. So it depends only on the records, not on
where batches end. A checkpoint has the value at its offset, and a table of the fold the value at the end of each block
of 1,024 offsets: where the ledger differs from what the views were computed from, the first block that differs
shows it.
"""

import struct
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b

import msgspec

from recallog_projections.stores.store import CHAIN_START
from recallog_projections.tables import RowKey, Table
from recallog_schemas.errors import StorageCorrupt
from recallog_streams.ledgers.ledger import Batch

VERSION = 1
"""Part of the code of each generation. Raised whenever the values change; the views are then rebuilt."""

BLOCK_OFFSETS = 1024


class BlockEnd(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The value of the chain after the last offset of a block."""

    chain: bytes


BLOCKS = Table("ledger.chain", BlockEnd, write_only=True)
"""By the last offset of the block, in 20 digits."""


def link_records(chain: bytes, records: Sequence[tuple[int, bytes]]) -> bytes:
    """The value after `records`, (offset, value) in order, if it was `chain` before them."""
    digest, joined, packed = blake2b, b"".join, struct.Struct(">Q").pack  # this loop is 3 % of a fold
    for offset, data in records:
        chain = digest(joined((chain, packed(offset), data)), digest_size=16).digest()
    return chain


def extend_chain(chain: bytes, batch: Batch) -> tuple[bytes, dict[tuple[str, str, str, str], bytes]]:
    """The value after `batch` if it was `chain` before it, and the rows of the blocks that end in the batch."""
    rows: dict[tuple[str, str, str, str], bytes] = {}
    records, begin = batch.stored, 0
    for last in block_ends(batch.start, batch.next):
        end = begin
        while end < len(records) and records[end][0] <= last:
            end += 1
        chain = link_records(chain, records[begin:end])
        rows[RowKey(BLOCKS.name, "", "", key_of(last))] = BLOCKS.encode(BlockEnd(chain))
        begin = end
    return link_records(chain, records[begin:]), rows


def block_ends(start: int, end: int) -> range:
    """The last offsets of the blocks that end at `start` or later and before `end`."""
    return range(start // BLOCK_OFFSETS * BLOCK_OFFSETS + BLOCK_OFFSETS - 1, end, BLOCK_OFFSETS)


def key_of(last: int) -> str:
    """The key of the row of a block."""
    return f"{last:020d}"


def kept_value(key: str, data: bytes) -> tuple[int, bytes] | None:
    """The last offset of a block, and the value of the chain after it; None if a fold did not write this row."""
    with suppress(StorageCorrupt):
        value = BLOCKS.decode(data).chain
        if key.isdecimal() and key == key_of(int(key)) and len(value) == len(CHAIN_START):
            return int(key), value
    return None
