"""Documents of entries in the index: the present form of each live entry, through crashes and rebuilds.

Of forms that have ended see `test_index_forms`.
"""

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from contract.test_index_store import Village, assert_same, in_a_village
from recallog import Event
from recallog_projections.index.embedders.embedder import Passage
from recallog_projections.index.engines.engine import StoredPoint
from recallog_projections.index.store import damage
from recallog_schemas.errors import IndexUnavailable
from support.events import event
from support.indexing import catch_up

pytestmark = pytest.mark.models("long_term")

_ids = count(1)


def retained(text: str, agent: str = "baker", id: str | None = None, **more: Any) -> Event:  # noqa: A002
    """An event that retains an entry."""
    envelope = {name: more.pop(name) for name in ("session", "audience", "space") if name in more}
    name = id or f"entry-{next(_ids)}"
    return event(id=name, agent=agent, kind="memory.retained", payload={"text": text, **more}, **envelope)


def changed(kind: str, agent: str = "baker", **payload: Any) -> Event:
    return event(agent=agent, kind=f"memory.{kind}", payload=payload)


async def published(found: Village, *events: Event) -> None:
    await found.memory.publish_many(list(events))
    await catch_up(found.indexing)


async def present_forms(found: Village) -> list[StoredPoint]:
    """The points of entries that have not ended."""
    of_entries = [point for point in (await found.points()).values() if "entry" in point.payload]
    return [point for point in of_entries if point.payload["until"] is None]


async def entries(found: Village) -> dict[str, tuple[str, Sequence[str], int]]:
    """The text, readers and version of each entry's present form, by its id. The index must be as a fold makes it."""
    assert await found.differences() == []
    stored = [point.payload for point in await present_forms(found)]
    assert len({payload["entry"] for payload in stored}) == len(stored)
    active = (await found.rows.pointer(0)).active
    assert active is not None
    assert await damage(found.rows, found.engine, active) == ""
    return {
        payload["entry"]: (
            Event.model_validate_json(payload["event"]).text,
            payload["readers"],
            payload["version"],
        )
        for payload in stored
    }


def test_an_entry_has_one_point_which_follows_its_changes(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await published(found, retained("Rye needs water.", id="rye", session="dusk"))
        assert await entries(found) == {"rye": ("Rye needs water.", ["baker"], 1)}
        await published(found, changed("updated", entry="rye", text="Rye needs more water."))
        assert await entries(found) == {"rye": ("Rye needs more water.", ["baker"], 2)}
        await published(found, changed("transferred", entries=["rye"], to="miller"))
        assert await entries(found) == {"rye": ("Rye needs more water.", ["miller"], 2)}
        await published(found, changed("erased", "miller", entries=["rye"], reason="asked to"))
        assert await entries(found) == {}

    in_a_village(tmp_path, work)


@pytest.mark.parametrize("kind", ["retracted", "archived", "erased"])
def test_an_entry_that_ends_has_no_present_form(tmp_path: Path, kind: str) -> None:
    async def work(found: Village) -> None:
        await published(found, retained("Rye needs water.", id="rye"), retained("Wheat does not.", id="wheat"))
        ended = {"entries": ["rye"]} if kind == "erased" else {"entry": "rye"}
        await published(found, changed(kind, reason="wrong", **ended))
        assert await entries(found) == {"wheat": ("Wheat does not.", ["baker"], 1)}

    in_a_village(tmp_path, work)


@pytest.mark.models("tiers")
@pytest.mark.parametrize("together", [True, False], ids=["in one batch", "one by one"])
def test_a_restored_entry_has_a_present_form_and_its_former_one_has_ended(tmp_path: Path, together: bool) -> None:
    events = [
        retained("Rye needs water.", id="rye", tier="slow"),
        changed("archived", entry="rye"),
        changed("restored", entry="rye"),
        changed("archived", entry="rye"),
        changed("tier_changed", entry="rye", to="fast"),
    ]

    async def work(found: Village) -> None:
        for some in [events] if together else [[each] for each in events]:
            await published(found, *some)
        assert await entries(found) == {"rye": ("Rye needs water.", ["baker"], 1)}
        (present,) = await present_forms(found)
        assert present.payload["tier"] == "fast"
        await published(found, changed("erased", entries=["rye"]))
        assert [point for point in (await found.points()).values() if "entry" in point.payload] == []

    in_a_village(tmp_path, work)


def test_an_entry_that_begins_and_ends_in_one_batch_has_no_point(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await published(
            found,
            retained("Rye needs water.", id="rye"),
            changed("updated", entry="rye", text="Rye needs more water."),
            changed("erased", entries=["rye"]),
            retained("Rye needs water.", id="again"),
        )
        assert await entries(found) == {"again": ("Rye needs water.", ["baker"], 1)}

    in_a_village(tmp_path, work)


def test_duplicates_and_changes_that_are_refused_leave_the_points_as_they_are(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await published(found, retained("Rye needs water.", id="rye"))
        before = await found.points()
        await published(
            found,
            retained("Rye  needs water. ", id="twin"),
            changed("updated", "miller", entry="rye", text="Rye needs none."),
            changed("erased", "miller", entries=["rye"]),
        )
        assert (await entries(found)).keys() == {"rye"}
        assert_same(await found.points(), before)

    in_a_village(tmp_path, work)


def test_readers_are_the_owner_and_its_audience_or_all_by_the_settings_of_then(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        shares = event(agent="narrator", kind="space.configured", payload={"shared_kinds": ["memory.retained"]})
        await published(
            found,
            retained("A.", id="own"),
            retained("B.", id="to", audience=["miller"]),
            shares,
            retained("C.", id="all"),
        )
        readers = {id_: readers for id_, (_, readers, _) in (await entries(found)).items()}
        assert readers == {"own": ["baker"], "to": ["baker", "miller"], "all": ["*"]}

    in_a_village(tmp_path, work)


def test_only_a_new_text_is_embedded_and_its_vector_is_that_of_the_text_alone(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        counts = (await found.store()).counts
        await published(found, retained("Rye needs water.", id="rye", session="dusk"))
        made = counts.embedded
        await published(found, changed("updated", entry="rye", priority="pinned"))
        await published(found, changed("transferred", entries=["rye"], to="miller"))
        assert counts.embedded == made
        (point,) = await present_forms(found)
        assert (point.payload["before"], point.payload["ordinal"]) == ("", -1)
        (alone,) = found.embedders["toy"].embed([Passage("Rye needs water.", 0)])
        assert point.dense is not None
        assert float(point.dense[0] @ alone.vector) == pytest.approx(1.0, abs=1e-3)
        await published(found, changed("updated", "miller", entry="rye", text="Rye needs no water."))
        assert counts.embedded == made + 1

    in_a_village(tmp_path, work)


def test_an_entry_changes_nothing_in_the_documents_of_events(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        before = await found.points()
        await published(
            found, retained("Rye.", session="dusk"), event(session="dusk", payload={"text": "Good morning."})
        )
        after = await found.points()
        assert_same({key: after[key] for key in before}, before)
        (spoken,) = [one for key, one in after.items() if key not in before and "entry" not in one.payload]
        assert "Rye" not in spoken.payload["before"]
        assert spoken.payload["ordinal"] == len(before) // 2

    in_a_village(tmp_path, work)


def test_a_captured_call_is_a_document_of_its_event_and_one_of_its_entry_until_it_is_forgotten(tmp_path: Path) -> None:
    setting = event("agent.configured", payload={"capture": {"enabled": True}})
    call = event("tool.used", id="call", payload={"tool": "water", "result": "The rye is watered."})

    async def kinds(found: Village) -> list[str]:
        assert await found.differences() == []
        of_call = (point.payload["kind"] for point in (await found.points()).values())
        return sorted(kind for kind in of_call if kind != "agent.spoke")

    async def work(found: Village) -> None:
        await published(found, setting, call)
        assert await kinds(found) == ["tool.captured", "tool.used"]
        assert await entries(found) == {"call": ("water: The rye is watered.", ["baker"], 1)}
        before = await found.points()
        await found.memory.admin.rebuild(what="index")
        assert_same(await found.points(), before)
        await published(found, changed("transferred", entries=["call"], to="miller"))
        present = [point.payload["kind"] for point in await present_forms(found)]
        assert present == ["memory.retained"]
        await published(found, changed("erased", "miller", entries=["call"]))
        assert await kinds(found) == ["tool.used"]

    in_a_village(tmp_path, work)


def test_a_rebuild_gives_the_same_points_without_the_model(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await published(
            found,
            retained("Rye needs water.", id="rye"),
            retained("Wheat does not.", id="wheat"),
            changed("updated", entry="rye", text="Rye needs more water."),
            changed("erased", entries=["wheat"]),
        )
        before, made = await found.points(), (await found.store()).counts.embedded
        await found.memory.admin.rebuild(what="index")
        assert_same(await found.points(), before)
        assert (await found.store()).counts.embedded == made
        assert (await entries(found)).keys() == {"rye"}

    in_a_village(tmp_path, work)


def test_a_deletion_that_failed_is_made_by_the_next_commit_and_verify_is_clean_before(tmp_path: Path) -> None:
    async def work(found: Village) -> None:
        await published(found, retained("Rye needs water.", id="rye"), retained("Wheat does not.", id="wheat"))
        whole = len(await found.points())
        found.engine.before["delete"] = IndexUnavailable("pulled")
        await published(found, changed("erased", entries=["rye"]))
        assert len(await found.points()) == whole
        found.engine.up()
        assert await found.differences() == []
        await published(found, event(payload={"text": "Good morning."}))
        assert (await entries(found)).keys() == {"wheat"}
        assert len(await found.points()) == whole

    in_a_village(tmp_path, work)
