"""Progressive disclosure over HTTP: what each path accepts, and how often."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from recallog import Memory, Settings
from support.events import event, numbered, one_loop, run
from support.http import Door, problem

pytestmark = pytest.mark.models("long_term")

BASE = "/api/v1/memory"
WHO = {"space": "village", "agent": "baker"}


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    opened = Memory.open(Settings(home=tmp_path_factory.mktemp("village"), index="off", count_accesses=False))
    with one_loop():
        sent = [event(id=each, payload={"text": f"Bread number {each}"}) for each in ("a", "b", "c", "d", "e")]
        run(opened.publish_many([*sent, *numbered(250), event(id="long", payload={"text": "flour " * 100})]))
        for tier in ("fast", "slow"):
            run(opened.long_term.retain("village", "baker", f"Rye of the {tier} tier", tier=tier, importance=0.9))
        yield opened
        run(opened.close())


@pytest.fixture
def door(memory: Memory, tmp_path: Path) -> Door:
    """A door whose callers have not asked anything yet."""
    return Door(memory, Settings(home=tmp_path))


def search(door: Door, **query: Any) -> httpx.Response:
    return door.get(f"{BASE}/search-index", {**WHO, **query})


def test_a_search_without_a_question_is_a_bad_request(door: Door) -> None:
    assert problem(search(door)) == (400, "InvalidArgument", "q")
    assert problem(search(door, q="  ")) == (400, "InvalidArgument", "q")
    assert problem(search(door, q="x" * 501)) == (400, "InvalidArgument", "q")
    assert search(door, q="x" * 500).status_code == 200


@pytest.mark.parametrize(("given", "used"), [(500, 100), (0, 1), (-7, 1), (7, 7), (None, 20)])
def test_a_limit_out_of_range_is_replaced_by_the_nearest(door: Door, given: int | None, used: int) -> None:
    found = search(door, q="bread", **({} if given is None else {"limit": given})).json()
    assert found["limit"] == used
    assert len(found["hits"]) <= used


def test_a_limit_that_is_no_number_is_a_bad_request(door: Door) -> None:
    assert problem(search(door, q="bread", limit="many")) == (400, "InvalidArgument", "limit")


def texts(response: httpx.Response) -> set[str]:
    return {hit["preview"] for hit in response.json()["hits"]}


@pytest.mark.models("tiers")
def test_unknown_tiers_are_ignored_and_none_that_is_known_means_all(door: Door) -> None:
    fast, slow = "Rye of the fast tier", "Rye of the slow tier"
    assert texts(search(door, q="rye", tier="fast,bogus")) == {fast}
    assert texts(search(door, q="rye", tier=" slow , fast ")) == {fast, slow}
    assert {fast, slow} <= texts(search(door, q="rye", tier="bogus"))
    assert texts(search(door, q="rye", min_importance=0.95)) == set()


def test_a_preview_has_220_characters_and_three_points(door: Door) -> None:
    (hit,) = search(door, q="flour", limit=1).json()["hits"]
    assert (len(hit["preview"]), hit["preview"][-3:], hit["tokens"]) == (223, "...", 150)


def test_external_sources_are_an_empty_list_with_a_reason_if_they_are_asked(door: Door) -> None:
    plain, asked = search(door, q="bread").json(), search(door, q="bread", include_external="true").json()
    assert (plain["external"], plain["external_reason"]) == ([], None)
    assert (asked["external"], asked["external_reason"]) == ([], "no external source is connected")


@pytest.mark.models("tiers")
def test_entries_are_retrieved_by_tier_and_searched_by_similarity(door: Door) -> None:
    def texts_of(path: str, **query: Any) -> list[str]:
        return [hit["entry"]["text"] for hit in door.get(f"{BASE}/{path}", {**WHO, **query}).json()["hits"]]

    fast, slow = "Rye of the fast tier", "Rye of the slow tier"
    assert texts_of("continuum/retrieve", query="rye of the tier", strategy="fast_first") == [fast, slow]
    assert texts_of("continuum/retrieve", query="rye of the tier", tiers="slow,bogus") == [slow]
    assert texts_of("continuum/retrieve", query="rye of the tier", limit=0, strategy="fast_first") == [fast]
    assert set(texts_of("search", q="rye of the tier", tier="bogus", limit=500)) == {fast, slow}
    assert problem(door.get(f"{BASE}/continuum/retrieve", WHO)) == (400, "InvalidArgument", "query")


@pytest.mark.models("tiers")
def test_critiques_are_the_entries_of_that_type(door: Door, memory: Memory) -> None:
    run(memory.long_term.retain("council", "critic", "Nobody has said who pays.", type="critique"))
    run(memory.long_term.retain("council", "critic", "The council meets on Friday."))
    found = door.get(f"{BASE}/critiques", {"space": "council", "agent": "critic"}).json()["entries"]
    assert [each["text"] for each in found] == ["Nobody has said who pays."]


@pytest.mark.models("tiers")
def test_tiers_say_their_limits_and_how_they_age_and_the_archive_what_left_them(door: Door) -> None:
    tiers = door.get(f"{BASE}/tiers", WHO).json()["tiers"]
    assert (tiers["fast"]["count"], tiers["fast"]["limit"]) == (1, 1_000)
    assert (tiers["glacial"]["ttl_seconds"], tiers["glacial"]["half_life_hours"]) == (604_800, 720)
    assert door.get(f"{BASE}/archive-stats", WHO).json()["archived"] == {"expired": 0, "tier_limit": 0}


@pytest.mark.models("tiers")
def test_a_cleanup_is_a_plan(door: Door) -> None:
    assert door.post(f"{BASE}/cleanup", {"space": "nowhere", "agent": "baker"}).json()["archived"] == []
    assert problem(door.get(f"{BASE}/cleanup", WHO))[0] == 405


def timeline(door: Door, **query: Any) -> httpx.Response:
    return door.get(f"{BASE}/search-timeline", {**WHO, **query})


def test_a_timeline_needs_an_anchor_that_is_known(door: Door) -> None:
    assert problem(timeline(door)) == (400, "InvalidArgument", "anchor_id")
    assert problem(timeline(door, anchor_id="zz")) == (404, "OutOfRange", "anchor_id")


@pytest.mark.parametrize(("given", "used"), [({}, (2, 3)), ({"before": -1, "after": 500}, (0, 50))])
def test_a_timeline_has_three_neighbours_on_each_side_or_up_to_fifty(
    door: Door, given: dict[str, int], used: tuple[int, int]
) -> None:
    found = timeline(door, anchor_id="c", **given).json()
    assert (len(found["before"]), len(found["after"])) == used


def entries(door: Door, ids: str) -> httpx.Response:
    return door.get(f"{BASE}/entries", {**WHO, "ids": ids})


def test_entries_come_in_the_order_of_the_ids_each_once_and_without_unknown_ones(door: Door) -> None:
    assert [each["event"]["id"] for each in entries(door, "a , b ,a,zz").json()["entries"]] == ["a", "b"]


@pytest.mark.parametrize("ids", ["", " , ,", "x" * 2001])
def test_blank_ids_and_too_many_characters_are_a_bad_request(door: Door, ids: str) -> None:
    assert problem(entries(door, ids)) == (400, "InvalidArgument", "ids")


def test_of_201_ids_the_first_200_count(door: Door) -> None:
    ids = ["b", *(f"x{number}" for number in range(199)), "a"]
    found = entries(door, ",".join(ids)).json()
    assert [each["event"]["id"] for each in found["entries"]] == ["b"]
    assert len(found["missing"]) == 199


@pytest.mark.models("tiers")
def test_the_61st_read_in_a_minute_is_one_too_many(door: Door) -> None:
    assert {search(door, q="bread").status_code for _ in range(30)} == {200}
    assert {entries(door, "a").status_code for _ in range(30)} == {200}
    refused = search(door, q="bread")
    assert problem(refused)[:2] == (429, "RateLimited")
    assert int(refused.headers["retry-after"]) >= 1
    assert door.get(f"{BASE}/tier-stats", WHO).status_code == 200


@pytest.mark.models("tiers")
def test_the_31st_statistics_and_the_11th_change_in_a_minute_are_one_too_many(door: Door) -> None:
    stats = [door.get(f"{BASE}/{name}", WHO).status_code for name in ["tier-stats", "pressure"] * 16]
    assert stats == [200] * 30 + [429] * 2
    changes = [door.post(f"{BASE}/consolidate", WHO).status_code for _ in range(12)]
    assert changes == [200] * 10 + [429] * 2


@pytest.mark.models("tiers")
def test_a_change_is_not_a_get(door: Door) -> None:
    answer = door.get(f"{BASE}/consolidate", WHO)
    assert problem(answer)[0] == 405
    assert answer.headers["allow"] == "POST"


def test_a_space_that_is_missing_is_a_bad_request(door: Door) -> None:
    assert problem(door.get(f"{BASE}/search-index", {"q": "bread"})) == (400, "InvalidArgument", "space")


@pytest.mark.parametrize(
    ("given", "page"),
    [
        ({**WHO, "q": 'sourdough "><b>'}, "&q=sourdough+%22%3E%3Cb%3E"),
        ({**WHO, "anchor_id": "evil"}, "&id=evil"),
        ({**WHO, "ids": "evil,o-1"}, "&id=evil"),
    ],
)
def test_the_viewer_is_the_page_of_the_console_that_says_why(door: Door, given: dict[str, str], page: str) -> None:
    answer = door.get(f"{BASE}/viewer", given)
    assert answer.status_code == 307
    assert answer.headers["location"] == f"/console/why?space={WHO['space']}&agent={WHO['agent']}{page}"


def test_the_viewer_without_a_space_is_the_start_page(door: Door) -> None:
    assert door.get(f"{BASE}/viewer").headers["location"] == "/"
