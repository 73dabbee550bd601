"""The entities of a text. A changed expectation means another version of `entities.VERSION`."""

import pytest

from recallog_projections.models.facts import entities as module
from recallog_projections.models.facts.entities import entities, key_of, possible
from recallog_schemas import limits
from recallog_schemas.models.facts import limits as facts_limits

pytestmark = pytest.mark.models("facts")

TEXTS = {
    # Runs of capitalised words; a leading name stays, leading function words do not.
    "Alpha works with Beta.": ["alpha", "beta"],
    "What does Acme prefer?": ["acme"],
    "The Acme Corp is in New York City": ["acme corp", "new york city"],
    "Is Alice in Wonderland? When Is Bob?": ["alice", "wonderland", "bob"],
    "Ask Bob. Then Carol.": ["bob", "carol"],
    "However, I think I'm Spartacus": ["spartacus"],
    "On Monday Alice met the user.": ["alice"],
    "User prefers React": ["react"],
    "nothing here, not even I": [],
    "LESSON: Alpha waits": ["alpha"],
    "Note: see LESSON": ["lesson"],
    "The.": [],
    # Common words at the beginning of a sentence, and words that are not part of a name.
    "Keep going. Glad to hear it! (Sounds good)": [],
    "Wow John, OMG": ["john"],
    "Hope called Grace, and we met Hope": ["grace", "hope"],
    "Best Buy sells LIFE": ["best buy", "life"],
    "Glad I met Bob. How're Alice and Carol? Must've been Dave": ["bob", "alice", "carol", "dave"],
    # Ends of runs.
    "Alice, Bob; Carol (Dave) \u2013 Erin: Frank/Grace": ["alice", "bob", "carol", "dave", "erin", "frank", "grace"],
    "Alice\nBob": ["alice", "bob"],
    "Alice. Bob": ["alice", "bob"],
    "Dr. Jane Roe and J. R. R. Tolkien, St. Mary": ["dr jane roe", "j r r tolkien", "st mary"],
    "Johnson & Johnson, AT&T": ["johnson johnson", "at t"],
    # Possessives.
    "Alice's Bakery and Bob\u2019s": ["alice", "bakery", "bob"],
    "the Joneses' House": ["joneses", "house"],
    "O'Brien's D\u2019Angelo": ["o brien", "d angelo"],
    "What's Acme's plan? It's Acme": ["acme"],
    # Letters, digits and signs.
    "an iPhone and 3M, C++ or C#": ["iphone", "3m", "c++", "c#"],
    "Jean-Luc Picard": ["jean luc picard"],
    "Windows 11": ["windows"],
    "The WHO is in the US, and It is not": ["who", "us"],
    "Łódź, Ελλάδα and Москва with Étienne": ["łódź", "ελλάδα", "москва", "étienne"],
    "Cafe\u0301 Zoe\u0308": ["café zoë"],
    "STRASSE and Straße": ["strasse"],
    # Quoted phrases come first.
    'Bob read "the hobbit" and “Dune”': ["hobbit", "dune", "bob"],
    '"Acme Corp" and Acme Corp': ["acme corp"],
    'The "Acme Corp."': ["acme corp"],
    'she said "I am leaving, Bob"': ["bob"],
    'she said "Run!"': ["run"],
    "„Haus am See“ «Le Monde»": ["haus am see", "le monde"],
    'one " only': [],
    '"" and " "': [],
    # Scripts without capitals.
    "贾宝玉在《红楼梦》里": ["红楼梦"],
    "「東京」と『大阪』": ["東京", "大阪"],
    "他说“你好，再见”": [],
    "小明在Google工作": ["google"],
    "هو يعمل في “أرامكو”": ["أرامكو"],
    "वह “हिन्दी भवन” में है": ["हिन्दी भवन"],
    "สมชายทำงานที่Google": ["google"],
    "": [],
    "\ud800 Alice \x00": ["alice"],
}


@pytest.mark.parametrize("text", TEXTS, ids=repr)
def test_entities_of_a_text(text: str) -> None:
    assert entities(text) == tuple(TEXTS[text])
    assert module.VERSION == 1


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Acme Corp", "acme corp"),
        ("  ACME   corp. ", "acme corp"),
        ("The Hobbit", "hobbit"),
        ("The", "the"),
        ("Acme's", "acme"),
        ("\uff21\uff43\uff4d\uff45", "acme"),
        ("C++", "c++"),
        ("贾 宝玉", "贾 宝玉"),
        ("...", ""),
    ],
)
def test_the_key_of_a_name(name: str, key: str) -> None:
    assert key_of(name) == key


def test_the_entity_that_an_entry_states_comes_first() -> None:
    assert entities("Bob prefers React", "Acme Corp") == ("acme corp", "bob", "react")
    assert entities("它更喜欢 React", "极点公司") == ("极点公司", "react")
    assert entities("Bob", "...") == ("bob",)


def test_the_first_sixteen_entities_count() -> None:
    names = [f"{letter}lpha" for letter in "ABCDEFGHIJKLMNOPQRST"]
    assert entities(", ".join(names)) == tuple(name.lower() for name in names[: facts_limits.GRAPH_ENTITIES_MAX])


def test_the_beginning_of_a_long_text_counts() -> None:
    assert entities("Alpha " + "x " * facts_limits.GRAPH_TEXT_CHARS_MAX + "Omega") == ("alpha",)


def test_a_long_question_without_spaces_means_a_limited_number_of_entities() -> None:
    assert "极点公司" in possible("极点公司喜欢什么")
    letters = "".join(chr(0x4E00 + number) for number in range(4_000))
    questions = [letters, " ".join(letters[first : first + 9] for first in range(0, 3_600, 9))]
    assert max(len(possible(question)) for question in questions) <= 7 * 2 * limits.RECALL_TERMS_MAX


def test_a_long_run_in_capitals_is_a_heading() -> None:
    assert entities("ALL OF THE NAMES IN THIS HEADING ARE WRITTEN IN CAPITALS") == ()


def test_a_long_name_is_cut() -> None:
    (key,) = entities("", "x" * 127 + " y" * 40)
    assert len(key) <= facts_limits.GRAPH_KEY_CHARS_MAX
    assert key == "x" * 127
