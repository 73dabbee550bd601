"""Checksums of stored bytes: each covers the address at which they are stored, so that swapped rows fail it too."""

from collections.abc import Sequence
from zlib import crc32

_SEAL_BYTES = 4


def checksum(number: int, address: Sequence[str], data: bytes) -> int:
    """The CRC-32, as in zlib, of `address` and `data`, started with the lower 32 bits of `number`."""
    return crc32(data, crc32("\0".join(address).encode(), number))


def add_checksum(data: bytes, address: int, generation: int = 0) -> bytes:
    """`data`, followed by its checksum, for stores that keep single values; both numbers are checksums themselves."""
    return data + (crc32(data, address) ^ generation).to_bytes(_SEAL_BYTES, "big")


def strip_checksum(data: bytes, address: int, generation: int = 0) -> bytes | None:
    """The data in `data`; None if it fails its checksum."""
    bare = data[:-_SEAL_BYTES]
    return bare if data[-_SEAL_BYTES:] == (crc32(bare, address) ^ generation).to_bytes(_SEAL_BYTES, "big") else None


def is_intact(number: int, address: Sequence[str], data: object, stored: object) -> bool:
    """Whether `data` has the checksum `stored`. In a damaged file both can be values of any type."""
    try:
        return crc32(data, crc32("\0".join(address).encode(), number)) == stored  # type: ignore[arg-type]
    except (TypeError, UnicodeEncodeError):
        return False
