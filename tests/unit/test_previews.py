"""Progressive disclosure: previews that answer a query, the neighbours of an event, and whole events."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recallog import Event, Memory, Position
from recallog_schemas import limits
from recallog_schemas.errors import InvalidArgument, OutOfRange
from support.events import after, event

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def spoke(text: str, **fields: Any) -> Event:
    return event(payload={"text": text}, **fields)


def of_bread(count: int) -> list[Event]:
    return [spoke(f"bread {n}", id=f"b-{n}", turn=n, at=NOON + timedelta(minutes=n)) for n in range(count)]


def mixed(count: int) -> list[Event]:
    """Alternately private events of the baker, of the miller, and shared ones; one a minute from noon."""
    return [
        event(
            ["agent.spoke", "agent.thought", "world.observed"][n % 3],
            agent=["baker", "miller", "narrator"][n % 3],
            id=f"e-{n}",
            turn=n,
            at=NOON + timedelta(minutes=n),
            session=f"s-{n % 2}",
            payload={"text": f"number {n}"},
        )
        for n in range(count)
    ]


def seen_by_the_baker(count: int) -> list[str]:
    return [f"e-{n}" for n in range(count) if n % 3 != 1]


# Search.


@pytest.mark.parametrize(("limit", "hits"), [(500, 100), (100, 100), (20, 20), (1, 1), (0, 1), (-7, 1)])
def test_the_limit_is_clamped_to_1_and_100(tmp_path: Path, limit: int, hits: int) -> None:
    page = after(tmp_path, of_bread(120), lambda memory: memory.search("village", "baker", "bread", limit=limit))
    assert (page.limit, len(page.hits)) == (hits, hits)


def test_twenty_hits_are_shown_by_default(tmp_path: Path) -> None:
    assert len(after(tmp_path, of_bread(30), lambda memory: memory.search("village", "baker", "bread")).hits) == 20


@pytest.mark.parametrize("query", ["", " \n", "x" * 501])
def test_a_query_has_1_to_500_characters(tmp_path: Path, query: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^query: "):
        after(tmp_path, [], lambda memory: memory.search("village", "baker", query))
    assert after(tmp_path, [], lambda memory: memory.search("village", "baker", "x" * 500)).hits == ()


def test_a_query_that_is_not_valid_text_is_refused(tmp_path: Path) -> None:
    async def ask(memory: Memory) -> None:
        for question in (memory.recall("village", "baker", "\udcff"), memory.search("village", "baker", "\udcff")):
            with pytest.raises(InvalidArgument, match=r"^query: is not valid text"):
                await question

    after(tmp_path, [], ask)


@pytest.mark.parametrize(
    ("text", "preview", "tokens"),
    [
        ("bread" + "." * 495, "bread" + "." * 215 + "...", 125),
        ("bread" + "." * 216, "bread" + "." * 215 + "...", 56),
        ("bread" + "." * 215, "bread" + "." * 215, 55),
        ("bread 7890", "bread 7890", 3),
        ("bread", "bread", 2),
    ],
)
def test_a_preview_has_220_characters_and_a_token_four(tmp_path: Path, text: str, preview: str, tokens: int) -> None:
    (hit,) = after(tmp_path, [spoke(text)], lambda memory: memory.search("village", "baker", "bread")).hits
    assert (hit.preview, hit.tokens) == (preview, tokens)


def test_a_preview_has_the_fields_needed_to_choose_and_to_fetch_the_event(tmp_path: Path) -> None:
    written = spoke("bread", id="b-1", at=NOON, turn=3, session="s-1")
    (hit,) = after(tmp_path, [written], lambda memory: memory.search("village", "baker", "bread")).hits
    assert (hit.id, hit.position, hit.at, hit.turn) == ("b-1", Position(0, 0), NOON, 3)
    assert (hit.agent, hit.kind, hit.session) == ("baker", "agent.spoke", "s-1")
    assert hit.line("baker") == "[turn 003][agent.spoke] bread"
    assert hit.line("miller", dated=True) == f"[turn 003, {NOON:%Y-%m-%d}][agent.spoke][baker] bread"


def test_search_finds_what_recall_finds_and_rounds_its_scores(tmp_path: Path) -> None:
    async def ask(memory: Memory) -> None:
        question = {"author": "baker", "kinds": ["agent.spoke"], "since": NOON, "until": NOON + timedelta(minutes=20)}
        whole = await memory.recall("village", "baker", "bread 7", top_k=9, **question)  # type: ignore[arg-type]
        short = await memory.search("village", "baker", "bread 7", limit=9, **question)  # type: ignore[arg-type]
        assert [(hit.id, hit.score) for hit in short.hits] == [
            (hit.event.id, round(hit.score, 4)) for hit in whole.hits
        ]
        shared = short.model_dump(exclude={"limit", "hits", "external", "external_reason"})
        assert shared == whole.model_dump(exclude={"top_k", "hits"})
        assert (shared["index"], shared["degraded"]) == (None, None)

    after(tmp_path, of_bread(30), ask)


# Around.


def around(home: Path, events: list[Event], anchor: str, **question: Any) -> list[str]:
    """The ids that the baker sees around an event; the event itself has a star."""
    view = after(home, events, lambda memory: memory.around("village", "baker", anchor, **question))
    return [*(each.id for each in view.before), f"{view.anchor.id}*", *(each.id for each in view.after)]


def test_around_shows_three_visible_neighbours_on_each_side(tmp_path: Path) -> None:
    assert around(tmp_path, mixed(30), "e-15") == ["e-11", "e-12", "e-14", "e-15*", "e-17", "e-18", "e-20"]


def test_around_shows_fewer_neighbours_at_the_ends(tmp_path: Path) -> None:
    assert around(tmp_path, mixed(30), "e-0") == ["e-0*", "e-2", "e-3", "e-5"]
    assert around(tmp_path, [], "e-29") == ["e-24", "e-26", "e-27", "e-29*"]


@pytest.mark.parametrize(("requested", "shown"), [(-1, 0), (0, 0), (1, 1), (50, 50), (51, 50), (9_999, 50)])
def test_the_number_of_neighbours_is_clamped_to_0_and_50(tmp_path: Path, requested: int, shown: int) -> None:
    async def ask(memory: Memory) -> tuple[int, int]:
        view = await memory.around("village", "baker", "b-60", entries_before=requested, entries_after=3)
        other = await memory.around("village", "baker", "b-60", entries_before=3, entries_after=requested)
        return len(view.before), len(other.after)

    assert after(tmp_path, of_bread(120), ask) == (shown, shown)


def test_the_event_itself_is_shown_at_more_length_than_its_neighbours(tmp_path: Path) -> None:
    long = [spoke("x" * 300, id=f"e-{n}") for n in range(3)]
    view = after(tmp_path, long, lambda memory: memory.around("village", "baker", "e-1"))
    assert [(len(each.preview), each.tokens) for each in view.events] == [(223, 75), (263, 75), (223, 75)]
    assert all(each.preview.endswith("...") for each in view.events)


def test_filters_apply_to_the_neighbours_and_not_to_the_event(tmp_path: Path) -> None:
    assert around(tmp_path, mixed(30), "e-15", session="s-0") == [
        "e-8",
        "e-12",
        "e-14",
        "e-15*",
        "e-18",
        "e-20",
        "e-24",
    ]
    assert around(tmp_path, [], "e-15", kinds=["agent.spoke"]) == [
        "e-6",
        "e-9",
        "e-12",
        "e-15*",
        "e-18",
        "e-21",
        "e-24",
    ]
    since, until = NOON + timedelta(minutes=14), NOON + timedelta(minutes=18)
    assert around(tmp_path, [], "e-15", since=since, until=until) == ["e-14", "e-15*", "e-17"]


def test_an_invisible_event_is_refused_like_a_missing_one(tmp_path: Path) -> None:
    async def refused(memory: Memory, anchor: str) -> str:
        with pytest.raises(OutOfRange) as caught:
            await memory.around("village", "baker", anchor)
        return str(caught.value).replace(anchor, "THE ID")

    async def ask(memory: Memory) -> set[str]:
        return {await refused(memory, anchor) for anchor in ("e-1", "nosuch", "c-1", "o-1")}

    others = [event("agent.configured", id="c-1", payload={"window": 3}), event(id="o-1", space="city")]
    assert len(after(tmp_path, [*mixed(30), *others], ask)) == 1


def test_around_refuses_the_options_of_pages(tmp_path: Path) -> None:
    async def ask(memory: Memory) -> None:
        await memory.around("village", "baker", "e-0", before=Position(0, 3))  # type: ignore[call-arg]

    with pytest.raises(InvalidArgument, match=r"^before: around has no such argument"):
        after(tmp_path, mixed(9), ask)


def test_around_as_of_a_position_shows_nothing_newer(tmp_path: Path) -> None:
    assert around(tmp_path, mixed(30), "e-15", as_of=Position(0, 17)) == ["e-11", "e-12", "e-14", "e-15*", "e-17"]
    with pytest.raises(OutOfRange, match="may see no event"):
        around(tmp_path, [], "e-18", as_of=Position(0, 17))


# Whole events.


def entries(home: Path, events: list[Event], ids: list[str], **question: Any) -> list[str]:
    view = after(home, events, lambda memory: memory.entries("village", "baker", ids, **question))
    return [shown.event.id for shown in view.entries]


def test_entries_are_returned_once_each_in_the_order_of_the_ids(tmp_path: Path) -> None:
    assert entries(tmp_path, mixed(30), ["e-9", "e-2", "e-9", "e-27", "e-2"]) == ["e-9", "e-2", "e-27"]


def test_invisible_events_are_left_out_of_entries_like_missing_ones(tmp_path: Path) -> None:
    assert entries(tmp_path, mixed(30), ["e-1", "nosuch", "e-3", "", "x" * 500]) == ["e-3"]


def test_an_entry_is_the_whole_event(tmp_path: Path) -> None:
    long = spoke("bread " * 1_000, id="b-1", at=NOON, session="s-1", subject="bread")
    (found,) = after(tmp_path, [long], lambda memory: memory.entries("village", "baker", ["b-1"])).entries
    assert (found.event, found.text, found.position) == (long, "bread " * 1_000, Position(0, 0))


def test_more_than_200_ids_are_refused(tmp_path: Path) -> None:
    ids = [f"e-{n}" for n in range(200)]
    assert len(entries(tmp_path, mixed(200), ids)) == len(seen_by_the_baker(200))
    with pytest.raises(InvalidArgument, match=r"^ids: .*at most 200"):
        entries(tmp_path, [], [*ids, "e-200"])
    assert entries(tmp_path, [], []) == []


def test_a_string_instead_of_a_list_of_ids_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"^ids: should be a list"):
        after(tmp_path, [], lambda memory: memory.entries("village", "baker", "e-17"))


def test_entries_as_of_a_time_contain_no_later_events(tmp_path: Path) -> None:
    assert entries(tmp_path, mixed(30), ["e-12", "e-14", "e-15"], as_of=NOON + timedelta(minutes=14)) == [
        "e-12",
        "e-14",
    ]
    assert entries(tmp_path, [], ["e-12", "e-14", "e-15"], as_of=Position(0, 12)) == ["e-12"]


# Events dropped from the views.


@pytest.fixture(scope="module")
def long_memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A village in which the baker sees 4,700 events; the miller's speech is shared from the 300th event on."""
    events = mixed(7_000)
    events.insert(300, event("space.configured", agent="narrator", payload={"shared_kinds": ["agent.thought"]}))
    events.insert(600, event("space.configured", agent="narrator", payload={"shared_kinds": ["world.observed"]}))
    home = tmp_path_factory.mktemp("long")
    after(home, events, lambda memory: memory.episodic("village", "baker"))
    return home


def visible(number: int) -> bool:
    """Whether the baker could see event `number` when it was published."""
    return number % 3 != (2 if 300 <= number < 599 else 1)


def nearest(number: int, count: int = 3) -> list[str]:
    before = [f"e-{n}" for n in range(number) if visible(n)][-count:]
    return [*before, f"e-{number}*", *[f"e-{n}" for n in range(number + 1, 7_000) if visible(n)][:count]]


@pytest.mark.parametrize("number", [0, 3, 299, 300, 301, 598, 600, 1_001, 2_999, 3_000, 3_002, 4_998, 6_999])
def test_around_an_older_event_shows_what_the_agent_could_see_when_it_was_published(
    long_memory: Path, number: int
) -> None:
    assert visible(number)
    assert around(long_memory, [], f"e-{number}") == nearest(number)


def test_neighbours_beyond_the_views_are_read_from_the_ledger(long_memory: Path) -> None:
    async def ask(memory: Memory) -> int:
        page = await memory.timeline("village", "baker", limit=limits.PAGE_ITEMS_MAX)
        while page.older is not None:
            page = await memory.timeline("village", "baker", limit=limits.PAGE_ITEMS_MAX, before=page.older)
        assert page.kept_from is not None
        return int(page.items[0].event.id[2:])

    first = after(long_memory, [], ask)
    number = [n for n in range(first) if visible(n)][-1]
    for anchor in (number, first, first + 2):
        assert visible(anchor)
        assert around(long_memory, [], f"e-{anchor}") == nearest(anchor)


@pytest.mark.parametrize("number", [1, 302, 596, 1_000])
def test_an_invisible_older_event_is_refused(long_memory: Path, number: int) -> None:
    assert not visible(number)
    with pytest.raises(OutOfRange, match=f"baker may see no event 'e-{number}' in village"):
        around(long_memory, [], f"e-{number}")


def test_a_neighbour_of_an_older_event_may_lie_far_from_it(long_memory: Path) -> None:
    since = NOON + timedelta(minutes=5_001)
    assert around(long_memory, [], "e-9", since=since) == ["e-9*", "e-5001", "e-5003", "e-5004"]


def test_older_entries_are_found_if_the_agent_could_see_them(long_memory: Path) -> None:
    ids = ["e-6999", "e-1", "e-301", "e-0", "e-302", "e-4997", "e-601", "e-602", "e-6999"]
    assert entries(long_memory, [], ids) == [each for each in dict.fromkeys(ids) if visible(int(each[2:]))]


def test_older_events_are_found_as_of_a_past_position(long_memory: Path) -> None:
    moment = Position(0, 6_001)
    assert entries(long_memory, [], ["e-301", "e-302", "e-6000", "e-5999"], as_of=moment) == ["e-301", "e-5999"]
    assert around(long_memory, [], "e-301", as_of=moment) == nearest(301)


def test_an_unknown_space_has_no_entries_and_no_neighbours(long_memory: Path) -> None:
    async def ask(memory: Memory) -> None:
        assert (await memory.entries("nowhere", "baker", ["e-1"])).entries == ()
        with pytest.raises(OutOfRange):
            await memory.around("nowhere", "baker", "e-1")

    after(long_memory, [], ask)
