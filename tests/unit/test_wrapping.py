"""Lines that fit a number of columns: as rich would break them."""

from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from recallog_service.cli.wrapping import cut, wrap_line

words = st.text(st.sampled_from("abz-.,é中文字ひ🍞"), min_size=1, max_size=8)
lines = st.lists(words, min_size=1, max_size=12).map(" ".join)


@given(lines, st.integers(16, 40))  # no word is wider
@example("Sack 15 of flour went to house 1.", 16)
def test_a_line_is_broken_as_rich_breaks_it(line: str, width: int) -> None:
    expected = [part.plain.rstrip() for part in Text(line).wrap(Console(), width)]
    assert wrap_line(line, width) == expected


@given(lines, st.integers(2, 30))
@example("  two\twords ", 9)
def test_no_part_is_wider_and_no_word_is_lost(line: str, width: int) -> None:
    found = wrap_line(line, width)
    assert all(cell_len(part) <= width for part in found)
    assert "".join("".join(found).split()) == "".join(line.split())


def test_a_line_is_cut_at_its_width() -> None:
    assert cut("Bread for all", 6) == "Bread"
    assert cut("Bread", 60) == "Bread"
    assert cell_len(cut("中文字中文字", 5)) <= 5


def test_a_line_of_spaces_takes_time_in_proportion_to_its_length() -> None:
    # 16,000 of them once took minutes.
    assert wrap_line(" " * 200_000, 80) == [""]
    assert wrap_line("a" + "\t" * 50_000 + "b", 80)[-1] == "b"


def test_words_without_width_are_kept() -> None:
    # One after a full line once ended a command with a ValueError.
    assert "".join(wrap_line("a" * 20 + " \u200d \u200d \u0301", 20)).count("\u200d") == 2
