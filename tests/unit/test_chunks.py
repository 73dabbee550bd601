"""The chunks of a document: where they begin and end, and what they say about where they are."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog_projections.models.workspace.chunks import DocumentChunk, chunks
from recallog_schemas.models.workspace import limits as workspace_limits

pytestmark = pytest.mark.models("workspace")


def lines_of(path: str, text: str) -> list[tuple[int, int]]:
    return [(chunk.first, chunk.last) for chunk in chunks(path, text)]


def test_a_chunk_begins_at_each_heading_and_names_those_above_it() -> None:
    text = "Before.\n\n# Backup\nEvery night.\n\n## Retention\n7 days.\n### Tapes\n3.\n## Keys ##\nTwo.\n# Other\nx\n"
    assert chunks("ops.md", text) == [
        DocumentChunk(1, 1, "Before.", "ops.md", ()),
        DocumentChunk(3, 4, "# Backup\nEvery night.", "ops.md", ()),
        DocumentChunk(6, 7, "## Retention\n7 days.", "ops.md", ("Backup",)),
        DocumentChunk(8, 9, "### Tapes\n3.", "ops.md", ("Backup", "Retention")),
        DocumentChunk(10, 11, "## Keys ##\nTwo.", "ops.md", ("Backup",)),
        DocumentChunk(12, 13, "# Other\nx", "ops.md", ()),
    ]
    assert chunks("ops.md", text)[3].text == "ops.md: Backup: Retention\n### Tapes\n3."


def test_a_heading_without_text_belongs_to_the_next_chunk() -> None:
    assert lines_of("a.md", "# Title\n\n## First\none\n\n## Empty\n## Second\ntwo\n# Last\n") == [
        (1, 4),
        (6, 8),
        (9, 9),
    ]


def test_a_heading_in_code_is_none() -> None:
    text = "# One\n```sh\n# a comment\n```\n~~~\n```\n# still code\n~~~~\n# Two\nx\n"
    assert lines_of("a.md", text) == [(1, 8), (9, 10)]
    assert lines_of("a.md", "#hashtag\n#!shebang\n    # code\n####### seven\n # One\nx") == [(1, 4), (5, 6)]


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("# One", "One"), ("#\t One two \t", "One two"), ("## One ##", "One"), ("# One#", "One#"),
        ("# One # #", "One #"), ("   # #1", "#1"), ("#", ""), ("# ", ""), ("# C# # ", "C#"),
    ],
)  # fmt: skip
def test_the_text_of_a_heading_has_no_closing_marks(heading: str, title: str) -> None:
    assert chunks("a.md", f"{heading}\nx\n###### Six\ny")[1].above == (title,)


@pytest.mark.parametrize(
    "line", ["# x" + " " * 60_000 + "x", "#" + " \t" * 30_000 + "#x", "# " + "# " * 30_000 + "x", "#" * 60_000]
)
def test_a_long_line_of_blanks_or_marks_is_divided_at_once(line: str) -> None:
    began = time.process_time()
    assert len(chunks("a.md", f"{line}\nx")) == 2
    assert time.process_time() - began < 1.0  # each pair of blanks in turn takes a minute


def test_scripts_have_no_headings() -> None:
    text = "# one\nx = 1\n# two\ny = 2\n"
    assert lines_of("tool.py", text) == [(1, 4)]
    assert [lines_of(path, text) for path in ("NOTES", "notes.txt", "a/B.MD")] == [[(1, 2), (3, 4)]] * 3


def test_a_chunk_has_at_most_60_lines_and_ends_at_an_empty_one_if_it_can() -> None:
    assert lines_of("a.md", "x\n" * 150) == [(1, 60), (61, 120), (121, 150)]
    paragraphs = ["x"] * 45 + [""] + ["y"] * 100
    assert lines_of("a.md", "\n".join(paragraphs)) == [(1, 45), (47, 106), (107, 146)]
    early = ["x"] * 20 + [""] + ["y"] * 100  # a chunk of 20 lines is too short
    assert lines_of("a.md", "\n".join(early)) == [(1, 60), (61, 120), (121, 121)]


def test_a_chunk_of_several_lines_has_at_most_4000_characters() -> None:
    assert lines_of("a.md", "\n".join(["x" * 1_999] * 4)) == [(1, 2), (3, 4)]
    assert lines_of("a.md", "\n".join(["x" * 3_000, "y" * 9_000, "z"])) == [(1, 1), (2, 2), (3, 3)]


def test_a_document_of_headings_alone_is_divided_by_lines() -> None:
    text = "# x\ny\n" * 300
    assert lines_of("a.md", text)[0] == (1, 60)
    assert len(chunks("a.md", text)) == 10


def test_a_document_without_words_has_no_chunks() -> None:
    assert chunks("a.md", "") == chunks("a.md", " \n\t\n\r\n") == []


def test_windows_line_ends_are_no_part_of_lines() -> None:
    assert chunks("a.md", "# A\r\n\r\none\r\n# B\r\ntwo") == chunks("a.md", "# A\n\none\n# B\ntwo")


LINES = st.lists(
    st.sampled_from(("", "  ", "# a", "## b", "### c", "x", "```", "~~~ py", "words and words")), max_size=90
)


@given(LINES, st.sampled_from(("a.md", "b.py")))
def test_every_line_with_words_is_in_one_chunk(lines: list[str], path: str) -> None:
    found = chunks(path, "\n".join(lines))
    covered = [number for chunk in found for number in range(chunk.first, chunk.last + 1)]
    assert covered == sorted(set(covered))
    assert {number for number, line in enumerate(lines, 1) if line.strip()} <= set(covered)
    for chunk in found:
        assert chunk.lines == "\n".join(lines[chunk.first - 1 : chunk.last])
        assert 0 < chunk.last - chunk.first + 1 <= workspace_limits.DOCUMENT_CHUNK_LINES
        assert lines[chunk.first - 1].strip()
        assert lines[chunk.last - 1].strip()
