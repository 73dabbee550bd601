"""The page Knowledge of the console: entries, entities, documents and consensus, with filters in the URL."""

import re
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from recallog import Memory
from recallog_service.console import network
from support.console import BAKER, READER, Browser, Page, key_in
from support.events import event, one_loop, run

pytestmark = pytest.mark.models("all")

HOSTILE = '<script>alert(1)</script> {{7*7}} "><img src=x onerror=x> \x1b[31m \u202egnp.exe'
OF_BAKER = "/console/knowledge?space=village&agent=baker"


async def _filled(memory: Memory) -> None:
    keep = memory.long_term.retain
    await keep("village", "baker", "Lea sold flour to Ann Rivers.", type="lesson", tier="slow", entry_id="flour")
    await keep("village", "baker", "Lea bakes for Ann Rivers.", category="people", entry_id="bakes")
    await keep("village", "baker", HOSTILE, type="note", entity=HOSTILE, category=HOSTILE, entry_id="hostile")
    await keep("village", "baker", "Wort " * 20_000, type="note", entry_id="long")
    await keep("village", "miller", "The stone is cracked.", entry_id="secret")
    await memory.items.put("village", "baker", "workspace", "plan.md", f"# Plan\n{HOSTILE}")
    await memory.consensus.record("village", "baker", "bread price", HOSTILE, confidence=0.5, event_id="c-1")
    await memory.consensus.dissent(
        "village", "miller", "Too dear.", type="risk_warning", topic="bread price", confidence=1
    )


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    opened = Memory.open(tmp_path_factory.mktemp("village"))
    with one_loop():
        run(_filled(opened))
        yield opened
        run(opened.close())


@pytest.fixture
def browser(memory: Memory, tmp_path: Path) -> Browser:
    return Browser(memory, tmp_path)


def shown(browser: Browser, **arguments: str) -> Page:
    return browser.page(OF_BAKER + "".join(f"&{name}={value}" for name, value in arguments.items()))


def test_the_entries_of_an_agent_come_first_and_no_others(browser: Browser) -> None:
    page = shown(browser)
    assert "Lea bakes for Ann Rivers." in page.text
    assert "The stone is cracked." not in page.text


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"type": "lesson"}, {"flour"}),
        ({"tier": "slow"}, {"flour"}),
        ({"filter": '{"category": "people"}'}, {"bakes"}),
        ({"show": "long_term.about", "entity": "lea"}, {"flour", "bakes"}),
    ],
)
def test_entries_are_filtered_by_the_address_of_the_page(
    browser: Browser, filters: dict[str, str], found: set[str]
) -> None:
    page = shown(browser, **filters)
    assert {id_ for link in page.links for id_ in re.findall(r"/console/why\?.*&id=(\w+)", link)} == found


def test_a_filter_that_is_not_valid_is_an_error_in_its_place(browser: Browser) -> None:
    page = shown(browser, type="NOT A TYPE")
    assert "type: " in page.text
    assert "Entities" in page.text


def test_each_entry_links_to_the_page_of_its_event(browser: Browser) -> None:
    assert "/console/why?space=village&agent=baker&id=bakes" in shown(browser).links


def test_the_next_page_keeps_the_filters(browser: Browser) -> None:
    (following,) = [link for link in shown(browser, type="note", limit="1").links if "cursor=" in link]
    assert "type=note" in following
    assert "limit=1" in following
    assert "alert(1)" in browser.page(following).text or "Wort" in browser.page(following).text


def test_the_command_answers_what_the_page_answers(browser: Browser) -> None:
    assert "recallog long-term list village baker --tier slow" in shown(browser, tier="slow").text


def test_a_long_text_is_cut(browser: Browser) -> None:
    assert len(browser.get(f"{OF_BAKER}&type=note").text) < 30_000


@pytest.mark.parametrize(
    "show",
    ["long_term.list", "long_term.entities", "items.list", "items.get&key=plan.md", "consensus.list"],
)
def test_a_stored_text_is_text_in_every_panel(browser: Browser, show: str) -> None:
    text = browser.get(f"{OF_BAKER}&show={show}").text
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert not {"\x1b", "\u202e"} & set(text)
    if show != "long_term.entities":
        assert "{{7*7}}" in unescape(text)


def test_entities_are_a_picture_and_a_table(browser: Browser) -> None:
    page = shown(browser, show="long_term.entities")
    assert [tag for tag, _ in page.tags].count("circle") == 3
    assert (
        page.links.count("/console/knowledge?space=village&agent=baker&show=long_term.about&entity=ann%20rivers") >= 2
    )


def test_a_consensus_leads_to_its_dissents(browser: Browser) -> None:
    page = shown(browser, show="consensus.list")
    (dissents,) = [link for link in page.links if "consensus.dissents" in link]
    assert "Too dear." in browser.page(dissents).text


def test_a_document_is_shown_whole(browser: Browser) -> None:
    assert "# Plan" in shown(browser, show="items.get", key="plan.md").text


def test_an_unknown_panel_is_not_found(browser: Browser) -> None:
    assert browser.get(f"{OF_BAKER}&show=admin.status").status_code == 404
    assert browser.get("/console/knowledge?space=village").status_code == 404


def test_a_key_of_one_agent_sees_no_other_one(memory: Memory, tmp_path: Path) -> None:
    key = key_in(tmp_path, BAKER)
    browser = Browser(memory, tmp_path)
    browser.sign_in(key)
    assert browser.get(OF_BAKER).status_code == 200
    assert browser.get(OF_BAKER.replace("baker", "miller")).status_code == 404


def test_a_reader_sees_no_other_space(memory: Memory, tmp_path: Path) -> None:
    key = key_in(tmp_path, READER)
    browser = Browser(memory, tmp_path)
    browser.sign_in(key)
    for more in ("", "&show=long_term.list&type=WRONG", "&show=long_term.about&entity=+", "&show=items.get&key=x"):
        assert browser.get(f"/console/knowledge?space=castle&agent=king{more}").status_code == 404, more


# The picture


def town(count: int, links: int) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    names = [f"person {number:03d}" for number in range(count)]
    nodes = {name: 1 + number * number % 97 for number, name in enumerate(names)}
    pairs = ((names[n % count], names[(n * 7 + n // count * 13 + 1) % count]) for n in range(links))
    return nodes, {(min(pair), max(pair)): 1 + len(pair[0]) % 5 for pair in pairs if pair[0] != pair[1]}


def boxes(picture: network.Network) -> list[tuple[float, float, float, float]]:
    found = []
    for node in picture.nodes:
        if node.is_labelled:
            width = len(node.label) * network.LETTER
            left = node.label_x - {"start": 0, "middle": width / 2, "end": width}[node.anchor]
            found.append((left, node.label_y - network.LINE * 0.8, left + width, node.label_y))
    return found


def test_a_network_looks_the_same_each_time() -> None:
    assert network.draw_network(*town(60, 150)) == network.draw_network(*town(60, 150))


def test_the_labels_of_300_nodes_do_not_overlap_and_the_strongest_ones_have_theirs() -> None:
    picture = network.draw_network(*town(300, 1_000))
    taken = boxes(picture)
    overlapping = [
        (one, other)
        for number, one in enumerate(taken)
        for other in taken[:number]
        if one[0] < other[2] - 0.2 and one[2] > other[0] + 0.2 and one[1] < other[3] - 0.2 and one[3] > other[1] + 0.2
    ]
    assert overlapping == []
    assert len(taken) >= 40
    assert picture.nodes[0].is_labelled


def test_nodes_are_in_the_frame_and_larger_ones_have_more_weight() -> None:
    picture = network.draw_network(*town(300, 1_000))
    assert all(0 <= node.x <= network.WIDTH and 0 <= node.y <= network.HEIGHT for node in picture.nodes)
    radii = [node.radius for node in picture.nodes]
    assert radii == sorted(radii, reverse=True)


def test_a_network_of_300_nodes_is_drawn_in_a_moment() -> None:
    nodes, links = town(300, 1_000)
    network.draw_network(nodes, links)
    began = time.process_time()
    network.draw_network(nodes, links)
    assert time.process_time() - began < 1.0  # 0.07 s: it is bounded for slow machines


@pytest.mark.parametrize("count", [0, 1, 2])
def test_small_networks_are_drawn_too(count: int) -> None:
    picture = network.draw_network(*town(count, 3 * (count > 1)))
    assert len(picture.nodes) == count


def test_a_long_name_is_cut_in_its_label_alone() -> None:
    picture = network.draw_network({"x" * 128: 1}, {})
    assert (len(picture.nodes[0].label), picture.nodes[0].name) == (network.LABEL_CHARS, "x" * 128)


def test_a_page_of_many_entries_reads_a_page_of_them(tmp_path: Path) -> None:
    async def fill(memory: Memory) -> None:
        for first in range(0, 3_000, 1_000):
            await memory.publish_many(
                [
                    event("memory.retained", id=f"e-{n}", payload={"text": f"Fact {n} of Ann Rivers."})
                    for n in range(first, first + 1_000)
                ]
            )

    memory = Memory.open(tmp_path / "many")
    with one_loop():
        run(fill(memory))
        text = Browser(memory, tmp_path).get(OF_BAKER).text
        run(memory.close())
    assert text.count('class="said"') == 50


@pytest.mark.parametrize("name", ["panel", "self", "place", "operation", "template"])
def test_an_argument_of_any_name_does_no_harm(browser: Browser, name: str) -> None:
    assert browser.get(f"{OF_BAKER}&{name}=x").status_code == 200
