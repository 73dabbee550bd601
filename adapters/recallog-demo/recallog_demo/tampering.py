"""Forgery for the demo, directly in SQLite: changes an event in the ledger, and a remembered event in a view.

The checksums are changed too, as by somebody who knows the format. Reads do not detect the change, but `recallog
verify` does.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

from recallog_projections.stores.checksums import checksum
from recallog_projections.stores.sqlite_logs import segment_address
from recallog_streams.ledgers.sqlite_records import event_checksum

TRUE, FORGED = b" right ", b" wrong "  # of the same length, so that the entry stays well-formed


def forge(ledger: Path, id_: str, true: bytes, forged: bytes) -> None:
    """Replace `true` by `forged` in the record of the event with that id, and correct its checksum."""
    with closing(sqlite3.connect(ledger)) as connection, connection:
        offset, space, value, appended = connection.execute(
            "SELECT offset, space, value, appended FROM events WHERE id = ?", (id_,)
        ).fetchone()
        value = value.replace(true, forged, 1)
        connection.execute(
            "UPDATE events SET value = ?, crc = ? WHERE offset = ?",
            (value, event_checksum(offset, space, id_, value, appended), offset),
        )


def tamper(views: Path, space: str, agent: str) -> None:
    """Replace "right" by "wrong" in the newest of the agent's own memories that contains it."""
    with closing(sqlite3.connect(views)) as connection, connection:
        slot, count, keep, entries = connection.execute(
            "SELECT s.slot, s.count, s.keep, s.entries FROM segments s JOIN logs l ON s.slot >> 32 = l.number "
            "JOIN generations g ON g.number = l.generation AND g.checkpoint IS NOT NULL "
            "WHERE l.name = 'episodic.own' AND l.space = ? AND l.owner = ? AND instr(s.entries, ?) "
            "ORDER BY s.slot DESC LIMIT 1",
            (space, agent, TRUE),
        ).fetchone()
        segment = msgspec.msgpack.decode(entries, type=list[bytes])
        number = max(number for number, entry in enumerate(segment) if TRUE in entry)
        # The first occurrence is in the bytes of the event; later ones are derived from them.
        segment[number] = segment[number].replace(TRUE, FORGED, 1)
        forged = msgspec.msgpack.encode(segment)
        crc = checksum(0, segment_address(slot, count, keep), forged)
        connection.execute("UPDATE segments SET entries = ?, crc = ? WHERE slot = ?", (forged, crc, slot))
