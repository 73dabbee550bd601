"""Checksums of stored bytes: each covers the address at which they are stored, so that exchanged rows fail it too."""

from zlib import crc32


def checksum(address: str, data: bytes) -> int:
    """The CRC-32 of `data` stored at `address`, as in zlib: any flip of up to 32 neighbouring bits changes it."""
    return crc32(data, crc32(address.encode()))


def is_intact(address: str, data: object, stored: object) -> bool:
    """Whether `data` has the checksum `stored`. A damaged file can return values of any type."""
    return isinstance(data, bytes) and checksum(address, data) == stored
