"""Entries by id, as the middle of `around`, and in explanations: in their present form, for who may read them."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contract.test_index_entries import changed, retained
from recallog import Event, Memory, Position
from recallog.settings import Settings
from recallog_schemas import limits
from recallog_schemas.errors import OutOfRange
from support.events import event, run

pytestmark = pytest.mark.models("long_term")

SHARES = event(agent="narrator", kind="space.configured", payload={"shared_kinds": ["memory.retained"]})


def tell(*events: Event, work: Callable[[Memory, list[Position]], Awaitable[None]], home: Path | None = None) -> None:
    async def whole() -> None:
        memory = Memory.in_memory() if home is None else Memory.open(Settings(home=home, index="off"))
        async with memory:
            await work(memory, await memory.publish_many(list(events)))

    run(whole())


async def texts(memory: Memory, agent: str, *ids: str, as_of: Position | datetime | None = None) -> dict[str, str]:
    found = await memory.entries("village", agent, list(ids), as_of=as_of)
    assert set(found.missing) == set(ids) - {one.event.id for one in found.entries}
    return {one.event.id: one.text for one in found.entries}


def test_entries_are_found_by_id_beside_events_in_their_present_form() -> None:
    async def work(memory: Memory, positions: list[Position]) -> None:
        found = await memory.entries("village", "baker", ["rye", "said", "nothing", "rye"])
        assert [(one.event.id, one.text, one.position) for one in found.entries] == [
            ("rye", "Rye needs more water.", positions[1]),
            ("said", "Good morning.", positions[0]),
        ]
        assert found.missing == ("nothing",)
        assert await texts(memory, "miller", "rye") == {}

    tell(
        event(id="said", payload={"text": "Good morning."}),
        retained("Rye needs water.", id="rye"),
        changed("updated", entry="rye", text="Rye needs more water."),
        work=work,
    )


def test_an_entry_that_ended_is_found_by_its_owner_and_an_erased_one_by_nobody() -> None:
    async def work(memory: Memory, positions: list[Position]) -> None:
        ids = ("wrong", "old", "gone", "twin")
        assert (await texts(memory, "baker", *ids)).keys() == {"wrong", "old"}
        assert await texts(memory, "miller", *ids) == {}

    tell(
        SHARES,
        retained("Wrong.", id="wrong"),
        retained("Old.", id="old"),
        retained("Gone.", id="gone"),
        retained("Old.", id="twin"),
        changed("retracted", entry="wrong"),
        changed("archived", entry="old"),
        changed("erased", entries=["gone"]),
        work=work,
    )


def test_a_past_shows_entries_as_they_were_but_none_that_was_erased_since() -> None:
    async def work(memory: Memory, positions: list[Position]) -> None:
        last = positions[-1]
        assert await texts(memory, "baker", "rye", "gone", as_of=positions[2]) == {"rye": "Rye is dry."}
        assert await texts(memory, "baker", "rye", as_of=positions[0]) == {"rye": "Rye needs water."}
        assert await texts(memory, "baker", "rye", as_of=last) == {}
        assert await texts(memory, "miller", "rye", as_of=last) == {"rye": "Rye is dry."}

    tell(
        retained("Rye needs water.", id="rye"),
        changed("updated", entry="rye", text="Rye is dry."),
        retained("Gone.", id="gone"),
        changed("transferred", entries=["rye"], to="miller"),
        changed("erased", entries=["gone"]),
        work=work,
    )


def test_as_of_a_time_a_later_duplicate_does_not_show_the_text_of_an_erased_entry() -> None:
    """Its event happened earlier than that of the entry that it repeats, which the past has not reached."""
    noon, evening = datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 1, 18, tzinfo=UTC)

    async def work(memory: Memory, positions: list[Position]) -> None:
        assert await texts(memory, "baker", "first", "twin", as_of=noon) == {}

    first = retained("My name is Ada.", id="first").model_copy(update={"at": evening})
    twin = retained("My name is Ada.", id="twin").model_copy(update={"at": noon})
    tell(first, twin, changed("erased", entries=["first"]), work=work)


def test_around_an_entry_are_the_events_of_its_time() -> None:
    async def work(memory: Memory, positions: list[Position]) -> None:
        found = await memory.around("village", "baker", "rye", entries_before=1, entries_after=2)
        assert [one.id for one in found.before] == ["e-1"]
        assert (found.anchor.id, found.anchor.preview, found.anchor.position) == ("rye", "Rye is dry.", positions[2])
        assert [one.id for one in found.after] == ["e-3", "e-4"]
        for agent, id_ in (("miller", "rye"), ("baker", "gone")):
            with pytest.raises(OutOfRange, match=id_):
                await memory.around("village", agent, id_, entries_before=1, entries_after=1)

    tell(
        event(id="e-0", payload={"text": "0."}),
        event(id="e-1", payload={"text": "1."}),
        retained("Rye needs water.", id="rye"),
        retained("Gone.", id="gone"),
        event(id="e-3", payload={"text": "3."}),
        event(id="e-4", payload={"text": "4."}),
        changed("updated", entry="rye", text="Rye is dry."),
        changed("erased", entries=["gone"]),
        work=work,
    )


def test_around_an_entry_older_than_the_logs_are_the_events_of_its_time(tmp_path: Path) -> None:
    async def work(memory: Memory, positions: list[Position]) -> None:
        found = await memory.around("village", "baker", "rye", entries_before=2, entries_after=2)
        assert [one.id for one in (*found.before, found.anchor, *found.after)] == ["e-8", "e-9", "rye", "e-10", "e-11"]

    events = [event(id=f"e-{n}", payload={"text": f"{n}."}) for n in range(limits.LOG_EVENTS_KEPT + 100)]
    tell(*events[:10], retained("Rye needs water.", id="rye"), *events[10:], work=work, home=tmp_path)


@pytest.mark.models("prompt")
@pytest.mark.parametrize(
    ("agent", "id_", "verdict", "why"),
    [
        ("baker", "rye", "entry", "kept on purpose"),
        ("miller", "rye", "not_visible", "may not read"),
        ("baker", "wrong", "entry", "retracted: a mistake"),
        ("baker", "gone", "entry", "erased"),
        ("baker", "twin", "entry", "rye has the same text"),
        ("miller", "gone", "not_visible", "may not read"),
    ],
)
def test_an_entry_is_explained_by_what_became_of_it(agent: str, id_: str, verdict: str, why: str) -> None:
    async def work(memory: Memory, positions: list[Position]) -> None:
        found = await memory.explain("village", agent, id_)
        assert (found.verdict, found.in_episodic, found.memory) == (verdict, False, None)
        assert why in found.why

    tell(
        event(payload={"text": "Good morning."}),
        retained("Rye needs water.", id="rye"),
        retained("Wrong.", id="wrong"),
        retained("Gone.", id="gone"),
        retained("Rye needs water.", id="twin"),
        changed("retracted", entry="wrong", reason="a mistake"),
        changed("erased", entries=["gone"], reason="asked to"),
        work=work,
    )
