"""The view of entries: what agents keep on purpose, the verdict on each event, and what becomes of it."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from recallog_projections.models.long_term import tables, texts
from recallog_projections.models.long_term.projection import EntriesProjection
from recallog_projections.models.long_term.reading import event_of, may_read
from recallog_projections.models.long_term.tables import AgentEntries, EntryRef, EntryRow
from recallog_projections.refusals import Refusal
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.views import builtin
from recallog_schemas import Event, codec, limits, timestamps
from recallog_schemas.models.long_term import limits as long_term_limits
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.projector import Projector
from recallog_testing import ProjectionDriver
from support.events import MOMENT, event
from support.folding import finish, folded

pytestmark = pytest.mark.models("long_term")

MODEL = "all-minilm-l6-v2"


class Village:
    """The driver of the projection, with the questions that these tests ask of one space."""

    def __init__(self) -> None:
        self.driver = ProjectionDriver(EntriesProjection())
        self.offset = -1

    def given(self, *events: Event) -> None:
        self.offset = self.driver.given(*events)[-1].offset
        self.driver.check()

    def verdict(self, id_: str) -> EntryRef | None:
        return self.driver.row(tables.IDS, "village", "", id_)

    def status(self, id_: str) -> tuple[str, str | None, str | None]:
        """Status, reason, and the entry that it duplicates, or with whose erasure it ended."""
        ref = self.verdict(id_)
        assert ref is not None
        return ref.status, ref.reason, ref.of

    def entry(self, id_: str) -> EntryRow:
        """The row of a live, retracted or archived entry."""
        ref = self.verdict(id_)
        assert ref is not None
        address = tables.row_key("village", ref)
        assert address is not None
        table = tables.ROWS if ref.status == tables.LIVE else tables.ENDED
        row = self.driver.row(table, *address[1:])
        assert row is not None
        return row

    def agent(self, agent: str = "baker") -> AgentEntries:
        return self.driver.row(tables.AGENTS, "village", agent) or AgentEntries()

    def count(self, type_: str = "fact", agent: str = "baker") -> int:
        found = self.driver.row(tables.TYPES, "village", agent, type_)
        return 0 if found is None else found.entries

    def refused(self, agent: str = "baker") -> list[tuple[str, str | dict[str, str]]]:
        entries = self.driver.log_entries(tables.REFUSALS, "village", agent)
        return [(refusal.event, refusal.why) for refusal in entries]

    def audit(self, agent: str = "baker") -> list[tuple[str, str, str, str | None]]:
        entries = self.driver.log_entries(tables.AUDIT, "village", agent)
        return [(one.operation, one.id, one.actor, one.reason) for one in entries]

    def rows(self) -> dict[tuple[str, str, str, str], bytes]:
        """All rows of the view but the verdicts and the erasures, which stay."""
        projector, generation = folded(self.driver.ledger, builtin.with_settings(EntriesProjection()))
        found = {}
        for table in (*tables.ALL,):
            if table not in (tables.IDS, tables.ERASURES):
                items = finish(projector.store.scan(generation, table.name, limit=limits.AS_OF_RECORDS_MAX)).items
                found.update({(table.name, *item.row_key): item.data for item in items})
        return found


@pytest.fixture
def village() -> Village:
    return Village()


def keeps(id_: str, text: str | None = None, *, agent: str = "baker", **fields: Any) -> Event:
    """A `memory.retained`; fields of the envelope are recognised by name."""
    envelope = {name: fields.pop(name) for name in ("audience", "subject", "session", "turn", "at") if name in fields}
    payload = {"text": text if text is not None else f"the text of {id_}", **fields}
    return event("memory.retained", id=id_, agent=agent, payload=payload, **envelope)


def changes(kind: str, id_: str = "", *, agent: str = "baker", at: Any = MOMENT, **payload: Any) -> Event:
    return event(f"memory.{kind}", agent=agent, payload=payload, at=at, **({"id": id_} if id_ else {}))


def near(id_: str, similarity: float, version: int = 1) -> dict[str, Any]:
    return {"id": id_, "version": version, "similarity": similarity, "model": MODEL}


# Retaining.


def test_a_retained_text_is_an_entry_with_defaults(village: Village) -> None:
    village.given(keeps("e-1", "The mill is down.", turn=7, session="morning", at=MOMENT))
    at = timestamps.micros(datetime.fromisoformat(MOMENT))
    row = village.entry("e-1")
    assert (row.owner, row.offset, row.turn, row.session, row.at, row.updated_at) == (
        "baker", 0, 7, "morning", at, at,
    )  # fmt: skip
    assert (row.text, row.type, row.priority, row.tier, row.version) == ("The mill is down.", "fact", "normal", None, 1)
    assert (row.confidence, row.red_line, row.preseeded, row.metadata) == (1.0, False, False, b"")
    assert village.status("e-1") == ("live", None, None)
    assert village.count() == 1
    assert village.audit() == [("retained", "e-1", "baker", None)]
    assert village.refused() == []


def test_an_entry_has_what_its_event_says(village: Village) -> None:
    fields = {
        "type": "lesson", "entity": "Acme", "category": "customers", "source": "a call", "topic": "trade",
        "importance": 1, "confidence": 0.25, "tier": "slow", "priority": "low", "red_line": True,
        "metadata": {"b": [1, 2.5], "a": None}, "sources": ["x", "y", "x"], "preseeded": True,
    }  # fmt: skip
    village.given(keeps("e-1", subject="user-7", **fields))
    row = village.entry("e-1")
    assert (row.type, row.entity, row.category, row.source, row.topic) == (
        "lesson", "Acme", "customers", "a call", "trade",
    )  # fmt: skip
    assert (row.importance, row.confidence, row.tier, row.priority, row.red_line) == (1.0, 0.25, "slow", "low", True)
    assert (row.metadata, row.sources, row.subject) == (b'{"b":[1,2.5],"a":null}', ("x", "y"), "user-7")
    assert row.preseeded


def test_an_experience_is_an_entry_that_costs_nothing_and_is_kept_as_often_as_it_happened(village: Village) -> None:
    payload = {"action_type": "trade", "summary": "sold bread", "outcome": "3 coins", "score": 1, "cost": 7}
    first, second = (event("experience.recorded", id=id_, payload=payload) for id_ in ("x-1", "x-2"))
    village.given(changes("metered", units=1), first, second)
    row = village.entry("x-1")
    assert (row.type, row.text) == ("experience", "sold bread → 3 coins")
    assert row.metadata == b'{"action_type":"trade","score":1,"cost":7}'
    assert (village.count("experience"), village.agent().balance) == (2, 1.0)


def test_entries_are_counted_by_type_and_owner(village: Village) -> None:
    village.given(keeps("e-1"), keeps("e-2"), keeps("e-3", type="lesson"), keeps("e-4", agent="miller"))
    assert (village.count(), village.count("lesson"), village.count("note")) == (2, 1, 0)
    assert village.count(agent="miller") == 1


# Equal texts.


@pytest.mark.parametrize("text", ["Bread is dear.", "  Bread is\tdear.\n", "Bread\u3000is dear."])
def test_an_equal_text_is_skipped(village: Village, text: str) -> None:
    village.given(keeps("e-1", "Bread is dear."), keeps("e-2", text))
    assert village.status("e-2") == ("duplicate", "equal", "e-1")
    ref = village.verdict("e-2")
    assert ref is not None
    assert ref.similarity == 1.0
    assert village.count() == 1
    assert village.audit() == [("retained", "e-1", "baker", None)]


def test_texts_are_compared_after_normalisation(village: Village) -> None:
    village.given(keeps("e-1", "café"), keeps("e-2", "cafe\u0301"), keeps("e-3", "cafe"))
    assert village.status("e-2")[0] == "duplicate"
    assert village.status("e-3")[0] == "live"


@pytest.mark.parametrize(
    "other",
    [
        {"text": "bread is dear."},
        {"type": "lesson"},
        {"agent": "miller"},
        {"audience": ["miller"]},
        {"subject": "user-7"},
    ],
)
def test_a_text_is_no_duplicate_if_anything_else_distinguishes_it(village: Village, other: dict[str, Any]) -> None:
    """Another type, owner or person, or other readers: who is granted an entry must find it."""
    village.given(keeps("e-1", "Bread is dear."), keeps("e-2", **({"text": "Bread is dear."} | other)))
    assert village.status("e-2") == ("live", None, None)


@pytest.mark.parametrize("audience", [None, [], ["baker"]])
def test_an_audience_without_others_is_none(village: Village, audience: list[str] | None) -> None:
    village.given(keeps("e-1", "Bread is dear."), keeps("e-2", "Bread is dear.", audience=audience))
    assert village.status("e-2")[0] == "duplicate"


@pytest.mark.parametrize("type_", ["tool_usage", "summary"])
def test_some_types_are_never_deduplicated(village: Village, type_: str) -> None:
    same = {"text": "ls", "type": type_}
    village.given(keeps("e-1", **same), keeps("e-2", **same), keeps("e-3", **same, nearest=near("e-1", 1.0)))
    assert village.count(type_) == 3


def test_the_same_about_another_person_outlives_the_erasure_of_the_first(village: Village) -> None:
    text = "Prefers a seat at the aisle."
    village.given(keeps("e-1", text, subject="user-1"), keeps("e-2", text, subject="user-2"))
    village.given(changes("erased", entries=["e-1"]), keeps("e-3", text, subject="user-2"))
    assert village.status("e-2") == ("live", None, None)
    assert village.status("e-3") == ("duplicate", "equal", "e-2")


def test_a_text_that_was_forgotten_is_retained_as_a_new_entry(village: Village) -> None:
    village.given(keeps("e-1", "secret"), changes("erased", entries=["e-1"]), keeps("e-2", "secret"))
    assert village.status("e-1")[0] == "erased"
    assert village.status("e-2") == ("live", None, None)


@pytest.mark.parametrize("kind", ["retracted", "archived"])
def test_a_text_that_has_ended_is_retained_as_a_new_entry(village: Village, kind: str) -> None:
    village.given(keeps("e-1", "late"), changes(kind, entry="e-1"), keeps("e-2", "late"))
    assert village.status("e-2") == ("live", None, None)


# Nearly equal texts.


@pytest.mark.parametrize(("similarity", "outcome"), [(0.93, "updated"), (0.92, None), (0.91, None), (0.9200001, None)])
def test_a_fact_that_is_nearly_equal_takes_the_place_of_the_older_one(
    village: Village, similarity: float, outcome: str | None
) -> None:
    first = keeps("e-1", "Rye costs 3.", entity="rye", metadata={"a": 1}, at=MOMENT)
    village.given(first, keeps("e-2", "Rye costs 4.", category="prices", nearest=near("e-1", similarity)))
    assert village.status("e-2") == (("duplicate", outcome, "e-1") if outcome else ("live", None, None))
    row = village.entry("e-1")
    assert row.text == ("Rye costs 4." if outcome else "Rye costs 3.")
    assert (row.entity, row.metadata) == ("rye", b'{"a":1}')
    assert (row.category, row.version) == (("prices", 2) if outcome else (None, 1))
    assert (row.updated_at > row.at) == (outcome is not None)
    assert village.count() == (1 if outcome else 2)


def test_the_new_text_of_a_fact_is_the_one_that_equal_texts_are_compared_with(village: Village) -> None:
    village.given(keeps("e-1", "three"), keeps("e-2", "four", nearest=near("e-1", 0.95)))
    village.given(keeps("e-3", "four"), keeps("e-4", "three"))
    assert village.status("e-3") == ("duplicate", "equal", "e-1")
    assert village.status("e-4") == ("live", None, None)


@pytest.mark.parametrize("type_", ["lesson", "note", "strategy", "anything_else"])
@pytest.mark.parametrize(("similarity", "skipped"), [(0.86, True), (0.85, False), (0.8500004, False)])
def test_other_types_that_are_nearly_equal_are_skipped(
    village: Village, type_: str, similarity: float, skipped: bool
) -> None:
    village.given(keeps("e-1", "a", type=type_), keeps("e-2", "b", type=type_, nearest=near("e-1", similarity)))
    assert village.status("e-2") == (("duplicate", "similar", "e-1") if skipped else ("live", None, None))
    assert village.entry("e-1").text == "a"


@pytest.mark.parametrize(
    ("before", "nearest"),
    [
        ([], near("nobody", 1.0)),
        ([keeps("e-1")], near("e-1", 1.0, version=2)),
        ([keeps("e-1"), changes("updated", entry="e-1", text="other")], near("e-1", 1.0)),
        ([keeps("e-1", type="lesson")], near("e-1", 1.0)),
        ([keeps("e-1", agent="miller")], near("e-1", 1.0)),
        ([keeps("e-1", audience=["miller"])], near("e-1", 1.0)),
        ([keeps("e-1", subject="user-7")], near("e-1", 1.0)),
        ([keeps("e-1"), changes("retracted", entry="e-1")], near("e-1", 1.0)),
        ([keeps("e-1"), changes("erased", entries=["e-1"])], near("e-1", 1.0)),
        ([keeps("e-1"), changes("transferred", entries=["e-1"], to="miller")], near("e-1", 1.0)),
        ([keeps("e-0", "same"), keeps("e-1", "same")], near("e-1", 1.0)),
    ],
)
def test_a_nearest_entry_that_is_not_what_was_compared_is_ignored(
    village: Village, before: list[Event], nearest: dict[str, Any]
) -> None:
    """Not live, of another owner, type, version, person or readers, or no entry at all."""
    village.given(*before, keeps("e-9", "new", nearest=nearest))
    assert village.status("e-9") == ("live", None, None)


def test_a_pin_does_not_change_what_was_compared(village: Village) -> None:
    village.given(keeps("e-1"), changes("updated", entry="e-1", priority="pinned"))
    village.given(keeps("e-2", nearest=near("e-1", 0.95)))
    assert village.status("e-2") == ("duplicate", "updated", "e-1")
    assert village.entry("e-1").priority == "pinned"


# Pins.


def test_the_sixth_pin_of_a_raw_event_lives_with_normal_priority(village: Village) -> None:
    village.given(*(keeps(f"e-{n}", priority="pinned") for n in range(7)))
    assert village.agent().pinned == ("e-0", "e-1", "e-2", "e-3", "e-4")
    for late in ("e-5", "e-6"):
        assert village.status(late) == ("live", "pins", None)
        assert village.entry(late).priority == "normal"


def test_a_pin_beyond_the_limit_is_refused_and_holds_after_another_is_taken_back(village: Village) -> None:
    village.given(*(keeps(f"e-{n}", priority="pinned") for n in range(6)))
    village.given(changes("updated", "u-1", entry="e-5", priority="pinned", text="never seen"))
    assert village.refused() == [("u-1", {"e-5": "pins"})]
    assert village.entry("e-5").text == "the text of e-5"
    village.given(changes("updated", "u-2", entry="e-2", priority="normal"))
    village.given(changes("updated", "u-3", entry="e-5", priority="pinned"))
    assert village.refused() == [("u-1", {"e-5": "pins"})]
    assert village.agent().pinned == ("e-0", "e-1", "e-3", "e-4", "e-5")


@pytest.mark.parametrize(
    "end",
    [
        changes("retracted", entry="e-0"),
        changes("archived", entry="e-0"),
        changes("erased", entries=["e-0"]),
        changes("transferred", entries=["e-0"], to="miller"),
        changes("updated", entry="e-0", priority=None),
    ],
)
def test_a_pin_is_free_again_when_its_entry_leaves(village: Village, end: Event) -> None:
    village.given(*(keeps(f"e-{n}", priority="pinned") for n in range(5)), end, keeps("e-9", priority="pinned"))
    assert village.agent().pinned == ("e-1", "e-2", "e-3", "e-4", "e-9")


def test_a_pinned_entry_that_changes_stays_pinned(village: Village) -> None:
    village.given(*(keeps(f"e-{n}", priority="pinned") for n in range(5)))
    village.given(changes("updated", entry="e-0", text="new", priority="pinned"))
    assert sorted(village.agent().pinned) == ["e-0", "e-1", "e-2", "e-3", "e-4"]
    assert village.refused() == []


# Balance.


def test_a_duplicate_costs_nothing(village: Village) -> None:
    village.given(changes("metered", units=10), keeps("e-1", "L", type="lesson"))
    assert village.agent().balance == 9.0
    village.given(keeps("e-2", "L", type="lesson"), keeps("e-3", "l", type="lesson", nearest=near("e-1", 0.99)))
    assert (village.agent().balance, village.agent().spent) == (9.0, 1.0)


def test_an_entry_that_the_balance_does_not_cover_is_refused(village: Village) -> None:
    village.given(changes("metered", units=2.5), keeps("e-1", cost=2), keeps("e-2", cost=0.75), keeps("e-3", cost=0.5))
    assert village.status("e-2") == ("refused", "balance", None)
    assert village.status("e-3") == ("live", None, None)
    assert (village.agent().balance, village.agent().spent, village.count()) == (0.0, 2.5, 2)


def test_an_agent_without_a_grant_pays_nothing(village: Village) -> None:
    village.given(changes("metered", units=-3), keeps("e-1", cost=1000))
    assert (village.agent().balance, village.agent().spent) == (None, 3.0)
    assert village.status("e-1")[0] == "live"


def test_uses_may_overdraw_a_balance_and_euros_have_an_account_of_their_own(village: Village) -> None:
    village.given(changes("metered", units=1), changes("metered", units=-3), changes("metered", eur=-0.25))
    assert village.agent() == AgentEntries(balance=-2.0, spent=3.0, eur=-0.25)
    village.given(keeps("e-1"), changes("metered", units=3), keeps("e-2"))
    assert village.status("e-1") == ("refused", "balance", None)
    assert village.status("e-2")[0] == "live"


def test_an_agent_that_is_overdrawn_keeps_what_costs_nothing(village: Village) -> None:
    experience = event("experience.recorded", id="x-1", payload={"action_type": "trade", "summary": "sold bread"})
    village.given(changes("metered", units=0), changes("metered", units=-3), experience, keeps("e-1", cost=0))
    assert (village.status("x-1")[0], village.status("e-1")[0]) == ("live", "live")
    assert village.agent().balance == -3.0


def test_accounts_are_those_of_the_event_s_agent(village: Village) -> None:
    village.given(changes("metered", agent="miller", units=1), keeps("e-1"), keeps("e-2", agent="miller"))
    assert (village.agent().balance, village.agent("miller").balance) == (None, 0.0)


# Changes.


def test_an_update_replaces_what_it_names(village: Village) -> None:
    later = datetime.fromisoformat(MOMENT) + timedelta(hours=1)
    village.given(keeps("e-1", entity="rye", importance=0.7, at=MOMENT, metadata={"a": 1}))
    village.given(changes("updated", entry="e-1", text="new", metadata={"b": 2}, red_line=True, at=later))
    row = village.entry("e-1")
    assert (row.text, row.entity, row.importance, row.metadata) == ("new", "rye", 0.7, b'{"b":2}')
    assert (row.red_line, row.version, row.updated_at) == (True, 2, timestamps.micros(later))
    village.given(changes("updated", entry="e-1", text=None, entity=None, importance=None, metadata=None, type=None))
    row = village.entry("e-1")
    assert (row.text, row.entity, row.importance, row.metadata, row.version) == ("new", None, 0.5, b"", 2)
    assert village.audit()[1:] == [("updated", "e-1", "baker", None)] * 2


def test_an_update_to_a_text_that_another_entry_has_is_refused(village: Village) -> None:
    village.given(keeps("e-1", "one"), keeps("e-2", "two"), changes("updated", "u-1", entry="e-2", text=" one"))
    assert village.refused() == [("u-1", {"e-2": "equal"})]
    assert village.entry("e-2").text == "two"


def test_an_update_of_the_type_moves_the_count(village: Village) -> None:
    village.given(keeps("e-1"), changes("updated", entry="e-1", type="lesson"))
    assert (village.count(), village.count("lesson")) == (0, 1)


@pytest.mark.parametrize(
    "change",
    [
        changes("updated", "c-1", agent="miller", entry="e-1", text="mine"),
        changes("retracted", "c-1", agent="miller", entry="e-1"),
        changes("archived", "c-1", agent="miller", entry="e-1"),
        changes("erased", "c-1", agent="miller", entries=["e-1"]),
        changes("transferred", "c-1", agent="miller", entries=["e-1"], to="miller"),
    ],
)
def test_only_its_owner_changes_an_entry(village: Village, change: Event) -> None:
    """Not even a reader. It is not a dead letter, and the owner's log does not contain it."""
    village.given(keeps("e-1", audience=["miller"]))
    before = village.entry("e-1")
    village.given(change)
    assert village.entry("e-1") == before
    assert village.refused("miller") == [("c-1", {"e-1": "not_owner"})]
    assert (len(village.audit()), village.refused(), village.driver.dead_letters()) == (1, [], [])


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ([], "unknown"),
        ([event(id="e-1")], "unknown"),
        ([keeps("e-0", "same"), keeps("e-1", "same")], "duplicate"),
        ([changes("metered", units=0), keeps("e-1")], "refused"),
        ([keeps("e-1"), changes("retracted", entry="e-1")], "retracted"),
        ([keeps("e-1"), changes("archived", entry="e-1")], "archived"),
        ([keeps("e-1"), changes("erased", entries=["e-1"])], "erased"),
    ],
)
@pytest.mark.parametrize("kind", ["updated", "retracted", "archived", "transferred"])
def test_what_is_not_live_is_not_changed(village: Village, before: list[Event], reason: str, kind: str) -> None:
    if before:
        village.given(*before)
    rows = village.rows()
    named: dict[str, Any] = {"entries": ["e-1"], "to": "miller"} if kind == "transferred" else {"entry": "e-1"}
    village.given(changes(kind, "c-1", **named, **({"text": "new"} if kind == "updated" else {})))
    assert village.refused() == [("c-1", {"e-1": reason})]
    after = {key: data for key, data in village.rows().items() if key[0] != tables.REFUSALS.name}
    assert after == rows


def test_a_retracted_entry_stays_readable_to_its_owner_alone(village: Village) -> None:
    village.given(keeps("e-1", audience=["miller"]), changes("retracted", entry="e-1", reason="it was wrong"))
    assert village.status("e-1") == ("retracted", "it was wrong", None)
    row = village.entry("e-1")
    assert row.text == "the text of e-1"
    assert may_read("baker", row, tables.RETRACTED)
    assert not may_read("miller", row, tables.RETRACTED)
    assert village.driver.row(tables.READERS, "village", "miller", tables.key_of(0)) is None
    assert village.count() == 0
    assert village.audit()[-1] == ("retracted", "e-1", "baker", "it was wrong")


def test_an_archived_entry_keeps_its_reason(village: Village) -> None:
    village.given(keeps("e-1"), changes("archived", entry="e-1", reason="expired"))
    assert village.status("e-1") == ("archived", "expired", None)


# Erasure.


@pytest.mark.parametrize("ended", [None, "retracted", "archived"])
def test_an_erased_entry_leaves_no_content(village: Village, ended: str | None) -> None:
    secret = {"text": "SECRET", "entity": "SECRET", "metadata": {"k": "SECRET"}, "topic": "SECRET"}
    village.given(keeps("e-1", **secret, subject="user-7", audience=["miller"], sources=["s"], priority="pinned"))
    village.given(changes("updated", entry="e-1", text="SECRET too"))
    village.given(*([changes(ended, entry="e-1")] if ended else []), changes("erased", entries=["e-1"], reason="asked"))
    rows = village.rows()
    assert b"SECRET" not in b"".join(rows.values())
    assert {key[0] for key in rows} <= {tables.AUDIT.name, tables.AGENTS.name}
    assert village.agent() == AgentEntries()
    assert village.verdict("e-1") == EntryRef("baker", 0, tables.ERASED)
    erasure = village.driver.row(tables.ERASURES, "village", "baker", "e-1")
    assert erasure is not None
    assert (erasure.actor, erasure.reason) == ("baker", "asked")
    assert village.audit()[-1] == ("erased", "e-1", "baker", "asked")


def test_an_erasure_is_decided_entry_by_entry(village: Village) -> None:
    village.given(keeps("e-1"), keeps("e-2", agent="miller"), keeps("e-3"))
    village.given(changes("erased", "f-1", entries=["e-1", "e-2", "e-1", "none", "e-3"]))
    assert village.refused() == [("f-1", {"e-2": "not_owner", "none": "unknown"})]
    assert [village.status(id_)[0] for id_ in ("e-1", "e-2", "e-3")] == ["erased", "live", "erased"]


def test_a_second_erasure_changes_nothing(village: Village) -> None:
    village.given(keeps("e-1"), changes("erased", entries=["e-1"]), changes("erased", "f-2", entries=["e-1"]))
    assert village.refused() == [("f-2", {"e-1": "erased"})]
    assert [operation for operation, *_ in village.audit()] == ["retained", "erased"]


def test_an_erasure_retracts_what_was_made_from_it_one_level(village: Village) -> None:
    village.given(
        keeps("e-1"),
        keeps("s-1", type="summary", agent="miller", sources=["e-1", "x"]),
        keeps("s-2", type="summary", sources=["s-1"]),
        keeps("other", sources=["x"]),
        changes("erased", entries=["e-1"]),
    )
    assert village.status("s-1") == ("retracted", "source_erased", "e-1")
    assert village.status("s-2") == ("live", None, None)
    assert village.status("other") == ("live", None, None)
    assert village.verdict("e-1") == EntryRef("baker", 0, tables.ERASED, retracted=("s-1",))
    assert village.audit("miller")[-1] == ("retracted", "s-1", "baker", "source_erased")
    next_level = village.driver.row(tables.SOURCES, "village", "", "s-1")
    assert next_level is not None
    assert next_level.ids == ("s-2",)


def test_any_agent_may_retract_what_was_made_from_a_lost_entry(village: Village) -> None:
    """As the reactor does that continues an erasure, for the agent that erased."""
    second = keeps("s-2", type="summary", agent="miller", sources=["s-1"])
    village.given(keeps("e-1"), keeps("s-1", type="summary", sources=["e-1"]), second)
    village.given(changes("retracted", "r-1", agent="smith", entry="s-2"), changes("erased", entries=["e-1"]))
    assert village.refused("smith") == [("r-1", {"s-2": "not_owner"})]
    village.given(changes("retracted", "r-2", agent="smith", entry="s-2"))
    assert village.status("s-2") == ("retracted", "source_erased", "s-1")
    assert village.audit("miller")[-1] == ("retracted", "s-2", "smith", "source_erased")


def test_fields_that_a_kind_does_not_define_are_ignored(village: Village) -> None:
    stray = {"entries": 5, "sources": 5, "nearest": 5, "entry": 5}
    experience = {"action_type": "trade", "summary": "sold bread"} | stray
    village.given(keeps("e-1", entries=5, entry=5), event("experience.recorded", id="x-1", payload=experience))
    village.given(changes("retracted", entry="e-1", entries=5), changes("erased", entries=["x-1"], entry=5))
    assert (village.status("e-1")[0], village.status("x-1")[0]) == ("retracted", "erased")


def test_what_ended_before_is_not_retracted_again(village: Village) -> None:
    village.given(keeps("e-1"), keeps("s-1", sources=["e-1"]), changes("archived", entry="s-1"))
    village.given(changes("erased", entries=["e-1"]))
    assert village.status("s-1") == ("archived", None, None)


@pytest.mark.parametrize("source", ["e-1", "e-2", "s-1"])
def test_nothing_is_made_from_an_erased_entry_afterwards(village: Village, source: str) -> None:
    """Nor from an event that duplicated it, nor from what was retracted with it: a reactor may still be at work."""
    village.given(keeps("e-1", "secret"), keeps("e-2", "secret"), keeps("s-1", sources=["e-1"]))
    village.given(changes("erased", entries=["e-1"]), keeps("late", sources=["x", source]))
    assert village.status("late") == ("refused", "source_erased", None)


def test_a_source_that_duplicates_an_entry_stands_for_it(village: Village) -> None:
    """Producers that do not read verdicts name the ids that they have chosen."""
    village.given(keeps("e-1", "secret"), keeps("e-2", "secret"), keeps("s-1", sources=["e-2", "e-1"]))
    assert village.entry("s-1").sources == ("e-1",)
    village.given(changes("erased", entries=["e-1"]))
    assert village.status("s-1") == ("retracted", "source_erased", "e-1")


def test_a_source_has_a_bounded_number_of_dependents(village: Village) -> None:
    village.driver.given(*(keeps(f"d-{n}", sources=["e-1"]) for n in range(long_term_limits.ENTRY_DEPENDENTS_MAX)))
    village.driver.given(
        keeps("one more", sources=["e-1"]), changes("archived", entry="d-0"), keeps("then", sources=["e-1"])
    )
    assert village.status("one more") == ("refused", "dependents", None)
    assert village.status("then") == ("live", None, None)


def test_a_subject_s_entries_are_found_until_they_are_erased(village: Village) -> None:
    village.given(keeps("e-1", subject="u"), keeps("e-2", subject="u/1"), changes("retracted", entry="e-1"))
    for subject, offset, id_ in (("u", 0, "e-1"), ("u/1", 1, "e-2")):
        found = village.driver.row(tables.SUBJECTS, "village", "baker", tables.subject_key(subject, offset))
        assert found is not None
        assert found.id == id_
    village.given(changes("erased", entries=["e-1", "e-2"]))
    assert not [key for key in village.rows() if key[0] == tables.SUBJECTS.name]


# Transfer.


def test_a_transferred_entry_belongs_to_its_receiver(village: Village) -> None:
    village.given(keeps("e-1", audience=["smith"], priority="critical", subject="u"))
    village.given(changes("transferred", entries=["e-1"], to="miller"))
    row = village.entry("e-1")
    assert (row.owner, row.offset, row.priority, row.audience) == ("miller", 0, "normal", ())
    assert (village.count(), village.count(agent="miller")) == (0, 1)
    assert village.driver.row(tables.READERS, "village", "smith", tables.key_of(0)) is None
    assert village.driver.row(tables.SUBJECTS, "village", "miller", tables.subject_key("u", 0)) is not None
    assert village.driver.row(tables.SUBJECTS, "village", "baker", tables.subject_key("u", 0)) is None
    assert village.audit()[-1] == ("transferred", "e-1", "baker", None)
    assert village.audit("miller") == [("received", "e-1", "baker", None)]
    village.given(changes("updated", "u-1", entry="e-1", text="x"))
    village.given(changes("updated", agent="miller", entry="e-1", text="y"))
    assert village.refused() == [("u-1", {"e-1": "not_owner"})]
    assert village.entry("e-1").text == "y"


def test_a_transfer_to_one_who_has_the_text_or_the_entry_is_refused(village: Village) -> None:
    village.given(keeps("e-1", "same"), keeps("e-2", "same", agent="miller"), keeps("e-3"))
    village.given(changes("transferred", "t-1", entries=["e-1", "e-3"], to="miller"))
    village.given(changes("transferred", "t-2", entries=["e-1"], to="baker"))
    assert village.refused() == [("t-1", {"e-1": "equal"}), ("t-2", {"e-1": "own"})]
    assert (village.entry("e-1").owner, village.entry("e-3").owner) == ("baker", "miller")


# Readers.


def test_an_entry_is_private_unless_its_audience_or_the_space_says_otherwise(village: Village) -> None:
    shared = event("space.configured", payload={"shared_kinds": ["memory.retained"]})
    village.given(
        keeps("e-1"), keeps("e-2", audience=["miller", "baker"]), shared, keeps("e-3"), keeps("e-4", audience=[])
    )
    rows = {id_: village.entry(id_) for id_ in ("e-1", "e-2", "e-3", "e-4")}
    for reader, wanted in {"baker": {"e-1", "e-2", "e-3", "e-4"}, "miller": {"e-2", "e-3"}, "smith": {"e-3"}}.items():
        assert {id_ for id_, row in rows.items() if may_read(reader, row)} == wanted
    found = sorted(key[2:] for key in village.rows() if key[0] == tables.READERS.name)
    assert found == [("", tables.key_of(3)), ("miller", tables.key_of(1))]


def test_a_shared_entry_stays_shared_under_another_owner(village: Village) -> None:
    village.given(event("space.configured", payload={"shared_kinds": ["memory.retained"]}), keeps("e-1"))
    village.given(changes("transferred", entries=["e-1"], to="miller"))
    reader = village.driver.row(tables.READERS, "village", "", tables.key_of(1))
    assert reader is not None
    assert reader.owner == "miller"


def test_a_private_text_is_no_duplicate_of_a_shared_one(village: Village) -> None:
    village.given(keeps("e-1", "same"), event("space.configured", payload={"shared_kinds": ["memory.retained"]}))
    village.given(keeps("e-2", "same"), keeps("e-3", "same", audience=[]), keeps("e-4", "same"))
    assert village.status("e-2") == ("live", None, None)
    assert village.status("e-3") == ("duplicate", "equal", "e-1")
    assert village.status("e-4") == ("duplicate", "equal", "e-2")


# Other rules of every fold.


def test_spaces_share_nothing(village: Village) -> None:
    village.given(keeps("e-1", "same"), event("memory.retained", space="city", payload={"text": "same"}, id="e-2"))
    village.given(event("memory.erased", space="city", id="f-1", payload={"entries": ["e-1"]}))
    assert village.status("e-1")[0] == "live"
    (refusal,) = village.driver.log_entries(tables.REFUSALS, "city", "baker")
    assert refusal == Refusal("f-1", {"e-1": "unknown"})


def test_an_event_that_is_delivered_twice_counts_once() -> None:
    driver = ProjectionDriver(EntriesProjection(), unique_ids=False)
    pinned = keeps("e-1", "L", cost=2, at=MOMENT, priority="pinned")
    for one in (changes("metered", "m-1", units=10), pinned, changes("updated", "u-1", entry="e-1", text="M")):
        for _ in range(2):
            driver.ledger.append_bytes(codec.encode(one))
    driver.fold()
    driver.check()
    assert driver.row(tables.AGENTS, "village", "baker") == AgentEntries(("e-1",), 8.0, 2.0)
    row = driver.row(tables.ROWS, "village", "baker", tables.key_of(2))
    assert row is not None
    assert (row.text, row.version) == ("M", 2)


def test_an_entry_that_would_exceed_a_row_is_refused(village: Village) -> None:
    """No event is larger than a row, but an entry gets its fields from several events."""
    large = "é" * 100_000
    village.given(keeps("e-1", metadata={"m": large}))
    village.given(changes("updated", "u-1", entry="e-1", text=large), keeps("e-2", large, nearest=near("e-1", 0.99)))
    assert village.refused() == [("u-1", {"e-1": "too_large"})]
    assert village.status("e-2") == ("refused", "too_large", None)
    assert village.driver.dead_letters() == []


def test_numbers_that_grow_when_they_are_stored_are_no_dead_letter() -> None:
    driver = ProjectionDriver(EntriesProjection())
    numbers = b",".join([b"1e5"] * 60_000)
    empty = codec.encode(keeps("e-1", metadata={"n": []}))
    driver.ledger.append_bytes(empty.replace(b'"n":[]', b'"n":[' + numbers + b"]"))
    driver.fold()
    ref = driver.row(tables.IDS, "village", "", "e-1")
    assert ref is not None
    assert (ref.status, ref.reason) == ("refused", "too_large")


def test_events_that_time_travel_has_not_reached_change_nothing() -> None:
    later = datetime.fromisoformat(MOMENT) + timedelta(hours=1)
    ledger = MemoryLedger()
    for one in (keeps("e-1", at=MOMENT), keeps("e-2", at=later), changes("retracted", entry="e-1", at=later)):
        ledger.append_bytes(codec.encode(one))
    projector, generation = folded(ledger, remember_until=datetime.fromisoformat(MOMENT))
    (first, second) = finish(
        projector.store.read(0, [tables.ref_key("village", id_) for id_ in ("e-1", "e-2")], generation=generation)
    ).rows
    assert first is not None
    assert tables.IDS.decode(first).status == tables.LIVE
    assert second is None


def test_a_fold_reads_rows_that_it_has_not_cached(village: Village) -> None:
    """Each event is folded by a new process, which knows the rows from the store only."""
    events = [
        changes("metered", units=5),
        keeps("e-1", "a", priority="pinned", subject="u", audience=["miller"]),
        keeps("e-2", "b", sources=["e-1"], nearest=near("e-1", 0.5)),
        keeps("e-3", "c", nearest=near("e-1", 0.97)),
        changes("updated", entry="e-2", text="d", priority="pinned"),
        changes("transferred", entries=["e-2"], to="miller"),
        changes("erased", entries=["e-1", "e-2"]),
    ]
    ledger, store = MemoryLedger(), MemoryStore()
    generation = finish(Projector(ledger, store, builtin.projections()).first_generation(0, 0))
    for end, one in enumerate(events, start=1):
        ledger.append_bytes(codec.encode(one))
        finish(Projector(ledger, store, builtin.projections()).catch_up(generation, end))
    whole, complete = folded(ledger)
    for table in tables.ALL:
        wanted = finish(whole.store.scan(complete, table.name, limit=1000)).items
        assert finish(store.scan(generation, table.name, limit=1000)).items == wanted


# What readers show.


def test_the_event_of_an_entry_is_its_current_form(village: Village) -> None:
    village.given(keeps("e-1", subject="u", session="s", turn=3, at=MOMENT, importance=0.75, tier="fast"))
    village.given(changes("updated", entry="e-1", text="new", metadata={"k": [1]}))
    village.given(changes("transferred", entries=["e-1"], to="miller"))
    shown = event_of(village.entry("e-1"))
    assert (shown.id, shown.agent, shown.kind, shown.text) == ("e-1", "miller", "memory.retained", "new")
    assert (shown.turn, shown.session, shown.subject, shown.audience) == (3, "s", "u", None)
    assert shown.at == datetime.fromisoformat(MOMENT)
    assert shown.payload == {
        "text": "new", "type": "fact", "importance": 0.75, "confidence": 1.0, "priority": "normal",
        "metadata": {"k": [1]},
    }  # fmt: skip


def test_the_key_of_equal_texts_is_documented_by_its_parts() -> None:
    form = texts.form_of("a b").key
    key = texts.digest_key("fact", texts.form_of(" a  b ").key, ("miller",))
    assert key == texts.digest_key("fact", form, ("miller",))
    others = [
        texts.digest_key("fact", form),
        texts.digest_key("lesson", form, ("miller",)),
        texts.digest_key("fact", form, shared=True),
        texts.digest_key("fact", texts.form_of("a c").key, ("miller",)),
        texts.digest_key("fact", form, ("miller",), subject="user-7"),
    ]
    assert len({key, *others}) == 6
