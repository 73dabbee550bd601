"""What blocks of facts make of documents: headings, limits and the compaction of daily documents, through the fold."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from recallog_projections.models.items import fact_blocks
from recallog_projections.models.items import projection as items
from recallog_projections.models.items.projection import ItemsProjection
from recallog_schemas import Event
from recallog_testing import ProjectionDriver
from support.events import event

pytestmark = pytest.mark.models("items")

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
NEXT_DAY = datetime(2026, 11, 24, 0, 5, tzinfo=UTC)
TODAY = "memory/2026-11-23.md"
WORKSPACE = ["workspace"]


def block(key: str, lines: str, namespace: list[str] | None = None, *, at: datetime = NOON, **more: Any) -> Event:
    payload = {"namespace": namespace or WORKSPACE, "key": key, "text": lines, "block": True, **more}
    return event("item.appended", payload=payload, at=at)


def put(key: str, text: Any, namespace: list[str] | None = None) -> Event:
    return event("item.put", payload={"namespace": namespace or WORKSPACE, "key": key, "value": text}, at=NOON)


def appended(key: str, text: str) -> Event:
    return event("item.appended", payload={"namespace": WORKSPACE, "key": key, "text": text}, at=NOON)


class Documents(ProjectionDriver):
    """The documents of an agent; each event is delivered once, or twice."""

    def __init__(self, *, twice: bool) -> None:
        super().__init__(ItemsProjection(), unique_ids=not twice)
        self._twice = twice

    def given(self, *events: Event) -> None:
        for each in events:
            super().given(*(each, each) if self._twice else (each,))

    def text(self, key: str, namespace: list[str] = WORKSPACE) -> Any:
        row = self.row(items.ROWS, "village", "baker", items.path_of(namespace, key))
        return None if row is None else items.value_of(row)

    def refused(self) -> list[str]:
        return [each.why for each in self.log_entries(items.REFUSALS, "village", "baker")]


@pytest.fixture(params=[False, True], ids=["once", "twice"])
def documents(request: pytest.FixtureRequest) -> Iterator[Documents]:
    driver = Documents(twice=request.param)
    yield driver
    driver.check()  # a rebuild makes the same rows


# The daily document.


def test_a_daily_document_gets_a_heading_with_the_date_of_the_event(documents: Documents) -> None:
    documents.given(block(TODAY, "- User asked: bread\n- Done: baked"))
    first = "## Session Facts (2026-11-23)\n- User asked: bread\n- Done: baked\n\n"
    assert documents.text(TODAY) == first
    documents.given(block(TODAY, "- Done: sold", at=NEXT_DAY))
    assert documents.text(TODAY) == f"{first}## Session Facts (2026-11-24)\n- Done: sold\n\n"


def test_the_key_of_a_day_is_that_of_its_date() -> None:
    assert fact_blocks.daily_key(NOON) == TODAY
    assert fact_blocks.daily_key(NEXT_DAY.date()) == "memory/2026-11-24.md"


@pytest.mark.parametrize(("room", "fits"), [(0, True), (-1, False)])
def test_a_daily_document_gets_no_block_that_would_exceed_8000_characters(
    documents: Documents, room: int, fits: bool
) -> None:
    added = "\n## Session Facts (2026-11-23)\n- 请\n\n"
    before = "é" * (8_000 - len(added) - room)
    documents.given(put(TODAY, before), block(TODAY, "- 请"))
    assert documents.text(TODAY) == (before + added if fits else before)
    assert documents.refused() == ([] if fits else ["too_large"])


def long_document(chars: int) -> tuple[str, str]:
    """A daily document of the issue's table with `chars` characters, and what is left of it."""
    bullets = [f"- {'A' * 78}{'.' * 9}one", f"- {'a' * 78} two", f"- {'A' * 77}three"]
    plain = "plain " * ((chars - sum(map(len, bullets)) - 20) // 6)
    lines = ["# heading", *bullets, plain]
    lines[-1] += "." * (chars - len("\n".join(lines)))
    return "\n".join(lines), "\n".join([lines[0], lines[1], lines[3], lines[4]])


def test_a_daily_document_over_2000_characters_keeps_headings_and_first_bullets() -> None:
    text, left = long_document(2_001)
    assert len(text) == 2_001
    assert fact_blocks.compact_document(text) == left
    assert fact_blocks.compact_document(left) == left
    longer = left + "plain" * 100
    assert fact_blocks.compact_document(longer) == longer


def test_a_daily_document_of_2000_characters_stays_as_it_is() -> None:
    text, _ = long_document(2_000)
    assert len(text) == 2_000
    assert fact_blocks.compact_document(text) == text


@pytest.mark.parametrize(("chars", "shorter"), [(2_000, False), (2_001, True)])
def test_a_block_compacts_what_is_too_long_with_it(documents: Documents, chars: int, shorter: bool) -> None:
    added = "\n## Session Facts (2026-11-23)\n- x\n\n"
    text, left = long_document(chars - len(added))
    documents.given(put(TODAY, f"{text}\n"), block(TODAY, "- x"))
    assert documents.text(TODAY) == (left if shorter else text) + added


def test_bullets_are_compared_by_80_characters_whatever_their_case(documents: Documents) -> None:
    same = "- " + "STRASSE " * 9 + "......"
    assert len(same) == 80
    other = same[:-1] + "!"
    filler = "plain\n" * 400
    documents.given(put(TODAY, f"{filler}{same}1\n{same.lower()}2\n  {same}\n{other}\n"), block(TODAY, f"{same}3"))
    left = documents.text(TODAY)
    assert left == f"{filler}{same}1\n  {same}\n{other}\n## Session Facts (2026-11-23)\n\n"


def test_a_daily_document_that_is_no_text_gets_no_block(documents: Documents) -> None:
    documents.given(put(TODAY, {"a": 1}), block(TODAY, "- x"))
    assert (documents.text(TODAY), documents.refused()) == ({"a": 1}, ["not_text"])


# MEMORY.md.


def test_the_memory_document_gets_facts_only_where_it_exists(documents: Documents) -> None:
    documents.given(block("MEMORY.md", "- one"))
    assert (documents.text("MEMORY.md"), documents.refused()) == (None, ["unknown"])
    documents.given(put("MEMORY.md", "# Memory\n"), block("MEMORY.md", "- one\n- two"), block("MEMORY.md", "- three"))
    expected = "# Memory\n\n## Auto-extracted (2026-11-23)\n- one\n- two\n## Auto-extracted (2026-11-23)\n- three"
    assert documents.text("MEMORY.md") == expected


@pytest.mark.parametrize(("chars", "fits"), [(3_999, True), (4_000, False)])
def test_a_memory_document_of_4000_characters_gets_no_facts(documents: Documents, chars: int, fits: bool) -> None:
    documents.given(put("MEMORY.md", "x" * chars), block("MEMORY.md", "- one"))
    assert documents.text("MEMORY.md").endswith("- one") == fits
    assert documents.refused() == ([] if fits else ["too_large"])


# Other items, and other changes.


def test_the_facts_of_a_session_stand_on_lines_of_their_own(documents: Documents) -> None:
    pad = ["session", "x1"]
    documents.given(block("session_facts", "- one\n- two", pad))
    assert documents.text("session_facts", pad) == "- one\n- two"
    documents.given(block("session_facts", "- three", pad))
    assert documents.text("session_facts", pad) == "- one\n- two\n- three"
    documents.given(put("session_facts", "", pad), block("session_facts", "- four", pad))
    assert documents.text("session_facts", pad) == "- four"


def test_documents_of_other_namespaces_and_names_have_no_headings(documents: Documents) -> None:
    for namespace, key in ((["notes"], TODAY), (["workspace", "old"], "MEMORY.md"), (WORKSPACE, "memory/today.md")):
        documents.given(block(key, "- one", namespace), block(key, "- two", namespace))
        assert documents.text(key, namespace) == "- one\n- two"


def test_what_a_user_appends_is_neither_headed_nor_compacted(documents: Documents) -> None:
    text, _ = long_document(3_000)
    documents.given(put(TODAY, text), appended(TODAY, "\n- more"))
    assert documents.text(TODAY) == f"{text}\n- more"
    documents.given(put(TODAY, "x" * 9_000))
    assert documents.text(TODAY) == "x" * 9_000


@pytest.mark.parametrize("limit", [7_990, 100], ids=["full", "free"])
def test_the_three_places_of_facts_do_not_depend_on_each_other(documents: Documents, limit: int) -> None:
    pad = ["session", "x1"]
    documents.given(put(TODAY, "x" * limit), put("MEMORY.md", ""))
    documents.given(block(TODAY, "- one"), block("MEMORY.md", "- one"), block("session_facts", "- one", pad))
    assert documents.refused() == (["too_large"] if limit > 1_000 else [])
    assert documents.text("MEMORY.md") == "\n## Auto-extracted (2026-11-23)\n- one"
    assert documents.text("session_facts", pad) == "- one"


def test_a_block_may_rely_on_a_state(documents: Documents) -> None:
    documents.given(block(TODAY, "- one", base=0), block(TODAY, "- two", base=0))
    assert documents.refused() == ["conflict"]
    assert "two" not in documents.text(TODAY)


@pytest.mark.parametrize("make", [block, appended], ids=["block", "append"])
def test_no_text_makes_an_item_of_more_than_64_kib(documents: Documents, make: Callable[..., Event]) -> None:
    documents.given(put("USER.md", "x" * 65_000), make("USER.md", "y" * 600))
    assert (documents.text("USER.md"), documents.refused()) == ("x" * 65_000, ["too_large"])
