"""Judgement of one answer: right, an error that names file and remedy, or a finding."""

import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from flip.questions import Question
from recallog import layout
from recallog_schemas import kinds
from recallog_schemas.errors import (
    IndexUnavailable,
    OutOfRange,
    Rebuilding,
    RecallogError,
    StorageCorrupt,
    StorageError,
    UnknownOutcome,
    ViewsBehind,
)

_VOLATILE = frozenset(
    {
        *("generation", "building", "building_checkpoint", "replaced", "replaces", "joins", "joined", "seconds"),
        *("index", "index_checkpoint", "ledger_bytes", "views_bytes", "index_bytes", "aborted", "degraded"),
        "relevance_by",
    }
)
"""Fields that differ without any damage: ids of generations, sizes, durations, and by what recall compared."""
_NAMED_ERRORS = (StorageError, UnknownOutcome, Rebuilding, ViewsBehind, IndexUnavailable)
"""Errors that say that storage failed. Any other blames somebody else for the damage."""
_REMEDY = re.compile(
    r"recallog [a-z]|restore|delete|try again|put |move |install|free |check the disk|rebuild|--home|keep a copy|"
    r"give this user|next query|tried again",
    re.IGNORECASE,
)
_UNREADABLE = re.compile("cannot be read|malformed|is truncated|is empty")
"""What is said of damage that has no single position."""
_FOLDS_LEDGER = ("admin.rebuild", "admin.verify", "admin.digest", "admin.records", "admin.copy", "admin.reindex")
"""Operations that read every record of the ledger."""
_ADOPTS = ("admin.rebuild", "admin.verify", "admin.reindex")
"""Those whose answers do not show what they have read."""
_SAYS_WHY = ("recall", "search", "salient")
"""Those whose answers say why they are not by the index."""


class Verdict(StrEnum):
    """What one answer is."""

    RIGHT = "right answers"
    BY_WORDS = "right answers by words, without the index"
    ROLLED_BACK = "right answers of an older ledger"
    NAMED = "errors that name file and remedy"
    DIFFERENCE = "differences that verify names"
    RANKED = "answers with right events, ranked otherwise"
    MISSED = "answers that miss lost or older rows"
    WRONG = "wrong values"
    ADOPTED = "damaged records adopted"
    VAGUE = "errors that name no file or no remedy"
    BLAMING = "errors that blame something else"
    INDEX_FAILED = "answers that a damaged index failed"
    RAW = "raw errors"
    CRASH = "crashes"
    ENGINE = "crashes of the engine, then served"
    HANG = "hangs"
    UNNAMED = "missed rows that no verify names"
    NOT_HEALED = "damage that is not repaired"


FINDINGS = frozenset(
    {
        *(Verdict.WRONG, Verdict.ADOPTED, Verdict.VAGUE, Verdict.BLAMING, Verdict.INDEX_FAILED, Verdict.RAW),
        *(Verdict.CRASH, Verdict.HANG, Verdict.UNNAMED, Verdict.NOT_HEALED),
    }
)


@dataclass(frozen=True)
class Expected:
    """The answers of a whole folder, canonical, by the name of the question; an error is its type."""

    by_index: Mapping[str, Any]
    by_words: Mapping[str, Any]
    served: Mapping[str, Any]
    """As `by_index`, of the folder whose index another process serves."""
    events: Mapping[int, Any]
    """By offset: the event as answers show it."""
    records: Mapping[int, tuple[object, ...]]
    """By offset: the row of the ledger."""


@dataclass(frozen=True)
class Damage:
    """What a look at the damaged ledger without Recallog shows."""

    readable: bool = True
    altered: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()

    @property
    def places(self) -> frozenset[int]:
        """The offsets of records that are not as they were."""
        return self.altered | self.lost

    def end(self, records: int) -> int:
        """The number of records up to those at the end that are lost."""
        end = records
        while end - 1 in self.lost:
            end -= 1
        return end

    def within(self, records: int) -> frozenset[int]:
        """The offsets of records that are not as they were, before those at the end that are lost."""
        end = self.end(records)
        return frozenset(offset for offset in self.places if offset < end)


@dataclass
class Outcome:
    """One call of a trial."""

    question: str
    stage: str
    verdict: Verdict
    detail: str = ""
    seconds: float = 0.0

    def document(self) -> dict[str, Any]:
        return {**vars(self), "verdict": self.verdict.name}


@dataclass
class Judge:
    """Judges the answers of one trial."""

    expected: Expected
    home: Path
    files: Sequence[str]
    """The damaged files."""
    ledger: Damage
    live: bool = False
    """Whether the folder was damaged while a memory had it open, which may have read what is damaged before."""
    rolled_back: Mapping[str, Any] = field(default_factory=dict)
    """The answers of the ledger that is left, where only its last records are lost."""

    @property
    def of_ledger(self) -> bool:
        """Whether the ledger is damaged."""
        return any(is_of(layout.LEDGER, file) for file in self.files)

    @property
    def _is_damaged(self) -> bool:
        """Whether records of the ledger are damaged or missing, other than its last ones."""
        return self.ledger.readable and bool(self.ledger.within(len(self.expected.records)))

    @property
    def of_index(self) -> bool:
        """Whether only the index is damaged."""
        return all(file.startswith(f"{layout.INDEX}/") for file in self.files)

    def error(self, question: Question, error: BaseException) -> tuple[Verdict, str]:
        """What an error is."""
        named = f"{type(error).__name__}: {error}"
        if self.expected.by_index.get(question.name) == error_document(error):
            return Verdict.RIGHT, ""
        if not isinstance(error, RecallogError):
            return Verdict.RAW, named
        if self.rolled_back.get(question.name) == error_document(error):
            return Verdict.ROLLED_BACK, ""
        about_index = question.by_index and "index" in (question.arguments.get("what"), question.operation[-5:])
        if self.of_index and not about_index and question.operation != "admin.reindex":
            return Verdict.INDEX_FAILED, named
        if isinstance(error, OutOfRange) and self.of_ledger and question.arguments.get("after"):
            return Verdict.ROLLED_BACK, ""
        if not isinstance(error, _NAMED_ERRORS):
            return Verdict.BLAMING, named
        text = str(error)
        names_file = str(self.home) in text or any(Path(file).name.split("-wal")[0] in text for file in self.files)
        if not names_file or not _REMEDY.search(text):
            return Verdict.VAGUE, named
        if isinstance(error, StorageCorrupt) and self.of_ledger and question.operation in _FOLDS_LEDGER:
            damaged = self.ledger.places
            named_one = any(f"0:{offset}" in text for offset in damaged) or _UNREADABLE.search(text) is not None
            if self.ledger.readable and damaged and not named_one and not self.live:
                return Verdict.VAGUE, f"none of the damaged positions {_first(damaged)} is named: {named}"
        return Verdict.NAMED, named

    def answer(self, question: Question, answer: Any) -> tuple[Verdict, str]:
        """What an answer is; WRONG if it is neither of those expected."""
        name, operation = question.name, question.operation
        if operation == "admin.verify" and (different := differences(answer)):
            return Verdict.DIFFERENCE, "; ".join(different)
        if operation in _ADOPTS and self._is_damaged and not self.live:
            return Verdict.ADOPTED, f"the records {_first(self.ledger.places)} are not as they were"
        if operation == "admin.status":
            problem = _status_problem(answer, self.expected.by_index[name], self.of_ledger)
            return (Verdict.WRONG, problem) if problem else (Verdict.RIGHT, "")
        found, right = canonical(operation, answer), self.expected.by_index[name]
        if _equal(operation, found, right):
            return Verdict.RIGHT, ""
        if question.by_index and name in self.expected.by_words and found == self.expected.by_words[name]:
            why = _why(answer)
            if not why and operation in _SAYS_WHY:
                return Verdict.WRONG, "the words were compared instead of the index, and the answer does not say why"
            return Verdict.BY_WORDS, why
        if name in self.rolled_back and found in (self.rolled_back[name], right):
            return Verdict.ROLLED_BACK, ""
        where = difference(found, right)
        if self._is_damaged and operation in _FOLDS_LEDGER:
            return Verdict.ADOPTED, where
        untrue = self._untrue(answer)
        if untrue:
            return Verdict.WRONG, untrue
        if question.by_index and any(file.startswith(f"{layout.INDEX}/") for file in self.files):
            return Verdict.RANKED, where
        return Verdict.WRONG, where

    def _untrue(self, answer: Any) -> str:
        """The first event of an answer that is not in the ledger as it is shown; "" if all are."""
        if isinstance(answer, list):
            return next(filter(None, map(self._untrue, answer)), "")
        if not isinstance(answer, dict):
            return ""
        at, event = answer.get("position"), answer.get("event")
        if isinstance(at, dict) and isinstance(event, dict):
            true = self.expected.events.get(at.get("offset", -1))
            if kinds.kind_of(event["kind"]).role == kinds.ENTRY:  # an entry is shown as it is now
                event, true = event["id"], true and true["id"]
            if event != true:
                return f"the event at {at} is shown as {event}, not as {true}"
        return next(filter(None, map(self._untrue, answer.values())), "")


UNREADABLE = (sqlite3.Error, OSError, UnicodeDecodeError)
"""What reading a damaged SQLite file raises; the last is for the name of a column."""


def is_of(database: str, file: str) -> bool:
    """Whether a file is an SQLite database or belongs to it."""
    return file in (database, f"{database}-wal", f"{database}-shm")


def canonical(operation: str, answer: Any) -> Any:
    """An answer without the fields that differ without any damage, and with rounded numbers."""
    if isinstance(answer, dict):
        return {key: canonical(operation, value) for key, value in answer.items() if key not in _VOLATILE}
    if isinstance(answer, list):
        return [canonical(operation, value) for value in answer]
    return round(answer, 6) if isinstance(answer, float) else answer


def error_document(error: BaseException) -> dict[str, str]:
    """An error as an expected answer."""
    return {"error": type(error).__name__, "message": str(error)}


def _equal(operation: str, found: Any, right: Any) -> bool:
    if operation == "admin.verify" and isinstance(right, dict) and "tables" in right:
        # The index may have no table yet; all others must be those of the whole folder.
        known, compared = _tables(right), _tables(found)
        missing = {views for views, _ in known.keys() - compared.keys()}
        whole = all(known.get(each) == table for each, table in compared.items())
        return found["records"] == right["records"] and whole and missing <= {"index"}
    if operation in ("admin.rebuild", "admin.reindex", "admin.repair"):
        return True  # whether it was right is what the next questions show
    return bool(found == right)


def _tables(report: Any) -> dict[tuple[str, str], Any]:
    """The tables of a report of `verify`, by views and name."""
    return {(table["views"], table["table"]): table for table in report["tables"]}


def differences(answer: Any) -> list[str]:
    """The differences that a report of `verify` names."""
    found = [
        f"{table['views']} {table['table']}: {table['difference'] or table.get('damaged')}"[:300]
        for table in answer["tables"]
        if table["difference"] is not None or table.get("damaged")
    ]
    return found + [str(each)[:300] for name in ("ledger", "files", "not_compared") for each in answer.get(name) or ()]


def difference(found: Any, right: Any, path: str = "") -> str:
    """The first place where two answers differ."""
    if isinstance(found, dict) and isinstance(right, dict):
        for key in sorted(found.keys() | right.keys()):
            if found.get(key) != right.get(key):
                return difference(found.get(key), right.get(key), f"{path}.{key}")
    if isinstance(found, list) and isinstance(right, list):
        for number, (one, other) in enumerate(zip(found, right, strict=False)):
            if one != other:
                return difference(one, other, f"{path}[{number}]")
        return f"{path}: {len(found)} items, not {len(right)}"
    return f"{path}: {str(found)[:200]}, not {str(right)[:200]}"


def _status_problem(found: Any, right: Any, of_ledger: bool) -> str:
    """What is wrong in a status. Views that are being built again are behind, and have no totals yet."""
    if not of_ledger and found["records"] != right["records"]:
        return f"records: {found['records']}, not {right['records']}"
    whole = {(row["views"], row["partition"]): row for row in right["partitions"]}
    at_end = False
    for row in found["partitions"]:
        has_lost_end = row["end"] <= row["checkpoint"]
        if row["lag"] != max(0, row["end"] - row["checkpoint"] - 1) or (has_lost_end and not of_ledger):
            return f"lag of {row}"
        expected = whole.get((row["views"], row["partition"]))
        if expected is None:
            return f"unknown views: {row}"
        if row["checkpoint"] == expected["checkpoint"]:
            at_end |= row["views"] == "built-in"
            if row["dead_letters"] != expected["dead_letters"]:
                return f"dead letters of {row}, not {expected['dead_letters']}"
    totals = ("spaces", "agents", "sessions", "pending_total", "unreflected_total", "pending", "unreflected")
    for name in totals if at_end else ():
        if canonical("", found[name]) != canonical("", right[name]):
            return difference(canonical("", found[name]), canonical("", right[name]), name)
    return ""


def _why(answer: Any) -> str:
    if not isinstance(answer, dict):
        return ""
    return str(answer.get("degraded") or answer.get("relevance_by") or "")


def _first(offsets: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(offsets)[:8])) + (", …" if len(offsets) > 8 else "")


def records_of(path: Path) -> dict[int, tuple[object, ...]]:
    """By offset: the space, the id, the value and the checksum of each record of a ledger, read without Recallog.

    A record that is only found by reading all is left out: where pages are exchanged, none finds it by its offset.
    """
    connection = sqlite3.connect(path)
    try:
        connection.text_factory = bytes
        names = dict(connection.execute("SELECT number, name FROM spaces").fetchall())
        rows = connection.execute("SELECT offset, space, id, value, crc FROM events ORDER BY offset").fetchall()
        found = {offset: (names.get(space), id_, value, crc) for offset, space, id_, value, crc in rows}
        by_offset = "SELECT 1 FROM events WHERE offset = ?"
        return {offset: row for offset, row in found.items() if connection.execute(by_offset, (offset,)).fetchone()}
    finally:
        connection.close()


def look(path: Path, whole: Mapping[int, tuple[object, ...]]) -> Damage:
    """What a damaged ledger contains, compared with the records of the whole one."""
    try:
        found = records_of(path)
    except UNREADABLE:
        return Damage(readable=False)
    altered = frozenset(offset for offset, row in found.items() if whole.get(offset) != row)
    return Damage(altered=altered, lost=frozenset(whole.keys() - found.keys()))
