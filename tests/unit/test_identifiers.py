"""Exact strings of a text: paths, flags, identifiers, versions and codes have terms of their own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog_projections.index import identifiers, terms


def exact(text: str) -> list[str]:
    return [term for _, _, term in identifiers.occurrences(text) if identifiers.is_exact(term)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("src/app/server.py", ["=src/app/server.py", "=src/app", "=app/server.py", "=server.py"]),
        (r"C:\app\server.py", ["=app/server.py", "=server.py"]),
        ("~/.config/app", ["=config/app"]),
        ("os.path.join(a, b)", ["=os.path.join", "=os.path", "=path.join"]),
        ("def parse_args():", ["=parse_args"]),
        ("raise HTTPError", ["=httperror"]),
        ("pip install --no-cache -e .", ["=--no-cache", "=-e"]),
        ("curl -F a -f b", ["=-F", "=-f"]),
        ("--log_level=debug", ["=--log_level", "=log_level"]),
        ("E999 at 4.0.1", ["=e999", "=4.0.1"]),
        ("commit ad388c7, model gpt-4", ["=ad388c7", "=gpt-4"]),
        ("mail ada@example.org", ["=ada@example.org", "=ada@example"]),
        ("打开src/应用/a.py", ["=a.py"]),
    ],
)
def test_an_exact_string_has_terms_of_its_own(text: str, found: list[str]) -> None:
    assert set(found) <= set(exact(text))
    assert set(found) <= set(terms.terms(text))


@pytest.mark.parametrize(
    "text",
    [
        "The smith burned the mill, didn't he?",
        "A well-known mother-in-law -- e.g. in the U.S. -- said: no.",
        "It's 5pm on the 20th; we ran 100km in the 1990s...and so on",
        "HELLO World",
        "On 25.01.2024, 2024-01-25 and 1/25/2024 she watched it.",
        "谁烧了磨坊？",
    ],
)
def test_plain_prose_has_no_exact_strings(text: str) -> None:
    assert exact(text) == []


def test_a_path_shares_terms_with_its_longer_and_shorter_forms() -> None:
    path = set(exact("app/server.py"))
    assert path < set(exact("/repo/src/app/server.py"))
    assert "=server.py" in path


def test_the_words_of_a_name_in_camel_case_are_words_of_the_text() -> None:
    assert set(terms.terms("HTTPError")) >= set(terms.terms("http error"))
    assert set(terms.terms("parseArguments")) >= set(terms.terms("parse arguments"))


def test_exact_strings_do_not_lower_the_weights_of_words() -> None:
    words = ["mill", "smith"]
    assert terms.weights([*words, *exact("src/app/server.py")])["mill"] == terms.weights(words)["mill"]


def test_data_is_not_taken_for_strings() -> None:
    assert exact("aGVsbG8_" * 100) == []


@given(st.text())
def test_terms_lie_where_their_string_is(text: str) -> None:
    for start, end, term in identifiers.occurrences(text):
        written = text[start:end].lower().replace("\\", "/")
        assert all(part in written for part in term.removeprefix(identifiers.MARK).lower().split("/"))


@given(st.text(st.sampled_from("aB9_./\\@-= \n,é猫１")))
def test_a_text_that_cannot_have_exact_strings_has_none(text: str) -> None:
    assert identifiers.may_occur(text) or not list(identifiers.occurrences(text))
    assert [term for term in terms.terms(text) if identifiers.is_exact(term)] == [
        term for _, _, term in identifiers.occurrences(text) if identifiers.is_exact(term)
    ]
