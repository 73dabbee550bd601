"""The temporal channel of presets: entries by age, use and confidence."""

import math
from typing import Any

import msgspec
import pytest

from recallog.models.long_term import by_recency
from recallog_projections.models.long_term.tables import EntryRow

pytestmark = pytest.mark.models("long_term")

DAY = 86_400 * 1_000_000
NOW = 100 * DAY


def row(offset: int, days: float = 0.0, confidence: float = 1.0) -> EntryRow:
    at = NOW - round(days * DAY)
    fields: dict[str, Any] = {
        "space": "village", "owner": "baker", "id": f"e-{offset}", "offset": offset, "at": at, "turn": 0,
        "session": None, "text": "Rye.", "type": "fact", "entity": None, "category": None, "source": None,
        "topic": None, "importance": 0.5, "confidence": confidence, "tier": None, "priority": "normal",
        "red_line": False, "metadata": b"", "sources": (), "subject": None, "version": 1, "updated_at": at,
        "audience": (), "shared": False, "preseeded": False, "since": offset, "since_at": at,
    }  # fmt: skip
    return EntryRow(**fields)


@pytest.mark.parametrize(
    ("days", "accesses", "confidence", "expected"),
    [
        (0, 0, 1.0, 0.5),
        (1, 0, 1.0, 0.5),
        (10, 0, 1.0, 0.05),
        (-5, 0, 1.0, 0.5),
        (2, 1, 1.0, (math.log(2) + 0.5) / 2),
        (1, 4, 1.0, 2.0),
        (1, 1_000, 0.8, 1.6),
        (4, 3, 0.5, (math.log(4) + 0.5) * 0.5 / 4),
    ],
)
def test_the_worth_of_an_entry(days: float, accesses: int, confidence: float, expected: float) -> None:
    assert by_recency.worth(row(1, days, confidence), accesses, NOW) == pytest.approx(expected)


def test_the_age_is_that_of_the_text() -> None:
    updated = msgspec.structs.replace(row(1, days=10), since_at=NOW - 2 * DAY)
    assert by_recency.worth(updated, 0, NOW) == pytest.approx(0.25)
    pinned = msgspec.structs.replace(row(1, days=10), updated_at=NOW)
    assert by_recency.worth(pinned, 0, NOW) == pytest.approx(0.05)


def test_the_worthiest_entry_comes_first_and_of_equal_ones_the_newer() -> None:
    rows = [row(1, 10), row(2), row(3), row(4, 1, confidence=0.1), row(5, 3)]
    assert by_recency.rank_by_recency(rows, {5: 1_000}, NOW) == [5, 3, 2, 4, 1]
    assert by_recency.rank_by_recency([], {}, NOW) == []
