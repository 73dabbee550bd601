"""The picture of a lineage: an SVG document that a browser opens, whatever its texts are."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from recallog import Memory
from recallog_schemas.views import Lineage
from recallog_service.lineage_picture import BOX_HEIGHT, BOX_WIDTH, draw_lineage
from support.cli import recallog
from support.events import event, publish_in, run

pytestmark = pytest.mark.models("beliefs")

HOSTILE = '<script>alert(1)</script> & "quoted" \x1b[31m \u202e \x00 ]]>'
SVG = "{http://www.w3.org/2000/svg}"
EVENTS = [
    event(id="e-1", agent="baker", payload={"text": HOSTILE}),
    event(id="e-2", agent="baker", causation_id="e-1"),
    event("agent.reflected", id="b-1", agent="baker", payload={"belief": "Both.", "based_on": ["e-1", "e-2"]}),
    event("agent.reflected", id="b-2", agent="baker", payload={"belief": "All.", "based_on": ["b-1", "e-2"]}),
]


def lineage(*events: object, of: str) -> Lineage:
    async def work() -> Lineage:
        async with Memory.in_memory() as memory:
            await memory.publish_many(events)  # type: ignore[arg-type]
            return await memory.lineage("village", "baker", of)

    return run(work())


def boxes(picture: str) -> dict[str, tuple[int, int]]:
    """Where the box of each id is."""
    found = {}
    for group in ElementTree.fromstring(picture).iter(f"{SVG}g"):
        box, title = group.find(f"{SVG}rect"), group.find(f"{SVG}title")
        if box is not None and title is not None:
            found[str(title.text).partition(":")[0]] = int(box.attrib["x"]), int(box.attrib["y"])
    return found


def test_each_box_is_right_of_what_it_rests_on_and_none_covers_another() -> None:
    found = lineage(*EVENTS, of="b-2")
    places = boxes(draw_lineage(found))
    assert places.keys() == {"e-1", "e-2", "b-1", "b-2"}
    for edge in found.edges:
        assert places[edge.source][0] + BOX_WIDTH < places[edge.product][0]
    taken = sorted(places.values())
    for number, (x, y) in enumerate(taken):
        assert all(abs(x - x2) > BOX_WIDTH or abs(y - y2) > BOX_HEIGHT for x2, y2 in taken[:number])


def test_a_hostile_text_is_shown_as_text() -> None:
    picture = draw_lineage(lineage(*EVENTS, of="e-1"))
    assert "<script" not in picture
    assert not {"\x1b", "\u202e", "\x00"} & {*picture}
    assert "<script>alert(1)" in "".join(ElementTree.fromstring(picture).itertext())


def test_a_circle_and_an_unknown_event_have_pictures_too() -> None:
    circle = [event(id=one, agent="baker", causation_id=other) for one, other in (("a", "c"), ("b", "a"), ("c", "b"))]
    assert boxes(draw_lineage(lineage(*circle, of="a"))).keys() == {"a", "b", "c"}
    assert boxes(draw_lineage(lineage(of="nothing"))) == {}


def test_a_command_writes_the_picture_and_says_if_it_cannot(tmp_path: Path) -> None:
    publish_in(tmp_path / "home", *EVENTS)
    command = "lineage", "village", "baker", "b-2", "--home", tmp_path / "home", "--picture"
    written = recallog(*command, tmp_path / "why.svg")
    assert written.code == 0
    assert "rests on:" in written.out
    assert len(boxes((tmp_path / "why.svg").read_text(encoding="utf-8"))) == 4
    with_json = recallog(*command, tmp_path / "json.svg", "--json")
    assert with_json.json["event_id"] == "b-2"
    assert (tmp_path / "json.svg").read_bytes() == (tmp_path / "why.svg").read_bytes()
    refused = recallog(*command, tmp_path / "nosuch" / "why.svg")
    assert refused.code == 2
    assert "cannot write" in refused.err
