"""Checksums of stored bytes: each covers the address at which they are stored, so that exchanged rows fail it too."""

from collections.abc import Sequence
from zlib import crc32


def checksum(number: int, address: Sequence[str], data: bytes) -> int:
    """The CRC-32, as in zlib, of `address` and `data`, started with the lower 32 bits of `number`."""
    return crc32(data, crc32("\0".join(address).encode(), number))


def is_intact(number: int, address: Sequence[str], data: object, stored: object) -> bool:
    """Whether `data` has the checksum `stored`. In a damaged file both can be values of any type."""
    try:
        return crc32(data, crc32("\0".join(address).encode(), number)) == stored  # type: ignore[arg-type]
    except (TypeError, UnicodeEncodeError):
        return False
