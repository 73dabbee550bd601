"""Views in notebooks: as HTML in which stored texts are text, and as data frames."""

import sys
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest

from recallog.sync import Memory
from recallog_schemas import views
from recallog_schemas.errors import SettingsError
from recallog_schemas.views import notebook
from support.events import event

HOSTILE = '<script>alert(1)</script> & "{{7*7}}" \x1b[31mred\x1b[0m \u202egnp.exe'


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path) as opened:
        yield opened


def html_of(view: views.View) -> str:
    return view._repr_html_()


def test_a_stored_text_is_shown_as_text(memory: Memory) -> None:
    memory.publish(event(payload={"text": HOSTILE}))
    shown = html_of(memory.episodic("village", "baker"))
    assert "<script" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;{{7*7}}&quot;" in shown


def test_what_would_hide_or_reorder_characters_is_written_out(memory: Memory) -> None:
    memory.publish(event(payload={"text": HOSTILE}))
    shown = html_of(memory.timeline("village", "baker"))
    assert r"\x1b[31mred\x1b[0m \u202egnp.exe" in shown
    assert not {"\x1b", "\u202e"} & set(shown)


def test_names_and_queries_are_text_too(memory: Memory) -> None:
    shown = html_of(memory.recall("village", "baker", "<b>bread</b>"))
    assert "&lt;b&gt;bread&lt;/b&gt;" in shown


def test_a_long_text_is_cut(memory: Memory) -> None:
    memory.publish(event(payload={"text": "bread " * 10_000}))
    assert len(html_of(memory.episodic("village", "baker"))) < 3_000


def test_a_long_list_shows_its_first_items_and_how_many_follow(memory: Memory) -> None:
    memory.publish_many([event(id=f"e-{number}") for number in range(notebook.ROWS_SHOWN + 7)])
    shown = html_of(memory.timeline("village", "baker", limit=500))
    assert shown.count("<tr>") < notebook.ROWS_SHOWN + 10
    assert "7 more" in shown


def test_a_view_without_a_list_is_a_card_of_its_fields(memory: Memory) -> None:
    memory.publish(event())
    shown = html_of(memory.admin.status())
    assert "<td>records</td><td>1</td>" in shown
    assert "1 of 1 records processed" in shown or "0 of 1 records processed" in shown


def test_every_view_is_shown_by_the_base_class() -> None:
    classes = [getattr(views, name) for name in dir(views)]
    of_views = {found for found in classes if isinstance(found, type) and issubclass(found, views.View)}
    assert [found for found in of_views if {"_repr_html_", "to_frame"} & vars(found).keys()] == [views.View]


@pytest.mark.models("long_term")
def test_a_list_is_a_frame_with_times_that_have_their_zone(memory: Memory) -> None:
    pytest.importorskip("pandas")
    memory.long_term.retain("village", "baker", "Sift the flour first.", type="lesson", entity="flour")
    frame = memory.long_term.list("village", "baker").to_frame()
    assert list(frame["text"]) == ["Sift the flour first."]
    assert frame["at"].dt.tz == UTC
    assert frame["position"][0] == "0:0"


def test_a_view_within_an_item_has_columns_of_its_own(memory: Memory) -> None:
    pytest.importorskip("pandas")
    memory.publish_many([event(id=f"e-{number}", turn=number) for number in range(3)])
    frame = memory.salient("village", "baker").to_frame()
    assert sorted(frame["event.id"]) == ["e-0", "e-1", "e-2"]
    assert {"event.kind", "score", "recency"} <= set(frame.columns)


def test_a_view_without_a_list_is_no_table(memory: Memory) -> None:
    with pytest.raises(TypeError, match="Status has not exactly one list"):
        memory.admin.status().to_frame()


def test_without_pandas_the_error_says_how_to_install_it(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SettingsError, match="pip install pandas"):
        memory.spaces().to_frame()
