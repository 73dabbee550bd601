"""Recorded ledgers: their views have the digests that were recorded with them.

A digest here changes only where a projection's version, or the catalogue's, is raised on purpose: then record it again.
"""

import asyncio
import hashlib
from pathlib import Path

import msgspec
import pytest

from recallog_demo import village
from recallog_projections.models.tiers import tables as tiers
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.views import builtin
from recallog_schemas import codec, kinds
from recallog_schemas.errors import InvalidEvent
from recallog_streams import dead_letters, generations
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.projector import Projector
from recallog_streams.verify import verify
from support.folding import folded, ledger_at, rows_of

pytestmark = pytest.mark.models("all")

HERE = Path(__file__).parent
CATALOGUE = (68, "21bd090fead74712")
VILLAGE = {
    "episodic.own": "050d0549f5f66f25",
    "episodic.shared": "b78c445344206117",
    "episodic.actions": "26b1d65dc9705e82",
    "salience.clock": "6aeaa2ec056a941b",
    "reflection.agents": "bc240757294b12d0",
    "reflection.spaces": "fc02bcf3b84a9b74",
    "due.count": "8ba828ee3be917ba",
    "beliefs": "63e1375c22dd715b",
    "beliefs.about": "35a8261233f9a49d",
    "scene.newest": "de41632263091ba5",
    "scene.visitor.shared": "dd3e8ddbbff6be37",
    "activity.totals": "962f005a19de1484",
    "activity.spaces": "40662220b2467540",
    "activity.agents": "8ce0ef4ebf984549",
    "activity.sessions": "6a5835ca72fb88dc",
    "activity.kinds": "9bde5b4d1ef7ce38",
    "outline.space": "808d5dfafbfc3f30",
    "clock.now": "623f9f71299dbe75",
    "conversations.messages": "4d45c8c1f0caca1f",
    "conversations.newest": "7633c2277c9125f5",
    "settings.space": "cf818b47d5b2032e",
    "settings.agent": "c446009e440dd5c8",
}
DOCUMENT_000 = {
    "dead_letters": "0e772174ee654f62",
    "dead_letters.count": "2620bca27e1b4ca2",
    "episodic.own": "234c4774a89c72e4",
    "episodic.shared": "8efb718992563502",
    "salience.clock": "9bac515013988037",
    "reflection.agents": "7c12b820932fa082",
    "beliefs": "783b22259528340b",
    "scene.newest": "863b9a1d4c6119dd",
    "activity.totals": "1dff8f8079bd8aa6",
    "activity.spaces": "013b5af2907ffaaf",
    "activity.agents": "187c256e5a169857",
    "activity.sessions": "29208edac98eaa9f",
    "activity.kinds": "24c044e2a7da0aee",
    "outline.space": "b57a6fb42787df68",
    "clock.now": "9c68dedb9e4cec76",
    "identity.size": "157a7e2e0b4212ea",
    "identity.bucket": "fdea8779fcdc859c",
}

REFLECTIONS = {"beliefs": "6b12f43fea9af14c", "beliefs.about": "d1923cfaceb8d8d0"}
PLANS = {
    "tiers.agents": "d8dbad0da000d51e",
    "tiers.moves": "22633da67b453f3c",
    "due.at": "f64c6b687d8ea425",
}
PLANNED_ROWS = "6abb7b08d2262314"
"""Of the rows of tiers, without the number of their changes, which earlier versions did not count."""


async def fold(lines: list[bytes], *, unique_ids: bool) -> tuple[dict[str, str], list[str]]:
    """The digest of each view (its first 16 digits), and the dead letters."""
    ledger = MemoryLedger(unique_ids=unique_ids)
    for line in lines:
        ledger.append_bytes(line)
    projector = Projector(ledger, MemoryStore(), builtin.projections())
    active = await generations.current(projector, 0)
    checked = await verify(projector, builtin.projections(), active)
    letters = await dead_letters.all_dead_letters(projector.store, active)
    digests = {table.table: table.digest[:16] for table in checked.tables if table.items}
    return digests, [f"{letter.offset} {letter.reason} {letter.detail}" for letter in letters]


def test_the_recorded_village_in_envelope_1_has_its_digests() -> None:
    digests, letters = asyncio.run(fold(village.RECORDING.read_bytes().splitlines(), unique_ids=True))
    assert letters == []
    assert digests == VILLAGE


def test_the_recorded_run_in_envelope_0_has_its_digests() -> None:
    digests, letters = asyncio.run(fold((HERE / "document_000.jsonl").read_bytes().splitlines(), unique_ids=False))
    assert letters == [
        "4 conflict its id names another event, at 0:3",
        "5 invalid mood: extra_forbidden",
        "6 invalid at: timezone_aware",
    ]
    assert digests == DOCUMENT_000


def test_plans_that_name_an_offset_fold_as_they_did_when_they_were_written() -> None:
    """Three of the plans met changes of their entries, and other spaces write between all events."""
    lines = (HERE / "plans_with_offsets.jsonl").read_bytes().splitlines()
    digests, letters = asyncio.run(fold(lines, unique_ids=True))
    assert letters == []
    assert {name: digests[name] for name in PLANS} == PLANS
    projector, generation = folded(ledger_at(lines))
    rows = [tiers.ROWS.decode(data) for _, data in sorted(rows_of(projector.store, generation, "tiers.rows").items())]
    names = [name for name in tiers.TierRow.__struct_fields__ if name != "changes"]
    written = [msgspec.json.encode([getattr(row, name) for name in names]) for row in rows]
    assert hashlib.sha256(b"\n".join(written)).hexdigest()[:16] == PLANNED_ROWS


def test_reflections_of_before_they_named_subjects_are_read_without_what_does_not_fit() -> None:
    """They became dead letters in a rebuild, since a later version checks `about`, `stance` and `supersedes`."""
    lines = (HERE / "reflections_version_1.jsonl").read_bytes().splitlines()
    digests, letters = asyncio.run(fold(lines, unique_ids=True))
    assert letters == ["5 invalid payload: missing"]
    assert {name: digests[name] for name in REFLECTIONS} == REFLECTIONS
    found = [codec.decode(line).payload for line in lines[1:5]]
    assert [{name: each[name] for name in ("about", "stance", "supersedes") if name in each} for each in found] == [
        {}, {}, {}, {"about": "the miller"},
    ]  # fmt: skip
    with pytest.raises(InvalidEvent):
        codec.parse(lines[1])


def test_the_catalogue_has_its_recorded_digest() -> None:
    assert (kinds.version(), kinds.digest()) == CATALOGUE


def test_the_recorded_run_in_envelope_0_has_its_texts() -> None:
    lines = (HERE / "document_000.jsonl").read_bytes().splitlines()
    event = codec.decode(lines[2])
    assert (event.space, event.agent, event.session, event.turn) == ("village-run-7", "miller", None, 2)
    assert event.at.isoformat() == "2025-11-03T08:00:09.250000+00:00"
    assert event.payload == {"text": "I heard the crack at dawn.", "model_id": "local-3b", "model_profile": "small"}
    assert [codec.decode(line).session for line in lines[:2]] == ["s.1", None]
