"""The check of words: each rule finds its phrase, leaves right uses alone, and gives the line."""

import pytest

from recallog_tools import prose

REJECTED = {
    "is-no": "The row is no event.",
    "is-none": "None if it is none.",
    "stands": "The row stands in a table.",
    "behind": "The page behind `cursor`.",
    "told": "The caller is told the number.",
    "of-those": "The offsets of those that match.",
    "such-as-are": "Rows such as are damaged.",
    "as-such": "An event is counted as such.",
    "of-late": "What was said of late.",
    "at-present": "What is erased at present.",
    "anew": "The file is written anew.",
    "but-for": "All keys but for the first.",
    "is-to-be": "A message that is to be added.",
    "can-be-had": "The rest can be had.",
    "begin-so": "Old documents begin so: a list.",
    "whoever": "Whoever asks first gets it.",
    "ones-own": "Reactors of one's own.",
    "come-to": "It has come to a tier.",
    "that-many": "Wait for that many answers.",
    "lets-no": "The gate lets no log pass.",
    "merge-mark": "One side.\n>>>>>>> branch",
}

RIGHT = [
    "There is no event.",
    "The file is no longer needed.",
    "If there is none, the answer is empty.",
    "None of them is none of the two.",
    "The hit stands for an entry, and a stand-in for a server.",
    "The views may be behind it, and the memory is behind a server.",
    "Two models are told apart; the process is told to stop.",
    "The rows of those agents.",
    "Rows are allowed, but for example tables are not.",
    "In one file, docs/files-are-written-anew-and-again.md.",
]


def rules_of(words: str) -> list[str]:
    return [finding.rule.name for finding in prose.find_in(prose.Text("page.md", 1, words))]


def test_every_rule_has_an_example() -> None:
    assert REJECTED.keys() == {rule.name for rule in prose.RULES}


@pytest.mark.parametrize("name", REJECTED)
def test_a_phrase_is_rejected(name: str) -> None:
    assert rules_of(REJECTED[name]) == [name]


@pytest.mark.parametrize("words", RIGHT)
def test_right_uses_pass(words: str) -> None:
    assert rules_of(words) == []


def test_docstrings_comments_and_messages_of_a_module_are_read() -> None:
    source = '"""One.\n\nA row is no event.\n"""\nX = 1  # anew\n"""Of late."""\nraise E(f"{x} is no folder")\n'
    found = [
        (finding.line, finding.rule.name)
        for text in prose.texts_of_module("package/module.py", source)
        for finding in prose.find_in(text)
    ]
    assert sorted(found) == [(3, "is-no"), (5, "anew"), (7, "is-no")]


def test_strings_of_tests_are_data() -> None:
    source = (
        'def test():\n    """It is no event."""\n    say("The mill is no more than a ruin, and the cat is no dog.")\n'
    )
    texts = list(prose.texts_of_module("tests/unit/test_x.py", source))
    assert [text.words for text in texts] == ["It is no event."]


def test_code_of_a_page_is_not_read() -> None:
    page = "A row\nis no event.\n\n```\nit is no prose\n```\n\nWritten anew.\n"
    found = [
        (finding.line, finding.rule.name)
        for text in prose.texts_of_page("docs/page.md", page)
        for finding in prose.find_in(text)
    ]
    assert found == [(2, "is-no"), (8, "anew")]
