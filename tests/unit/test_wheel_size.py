"""The wheel stays small: what few people need is a distribution of its own."""

from recallog_tools import lines


def test_the_wheel_has_at_most_61_400_lines_of_code() -> None:
    assert sum(lines.of_wheel().values()) <= lines.LINES_MAX == 61_400


def test_blank_lines_comments_and_docstrings_do_not_count() -> None:
    source = '"""A module.\n\nWith a text."""\n\n# why\nx = 1  # what\n"""An attribute."""\ny = """two\nlines"""\n'
    assert lines.of_source(source) == 3
