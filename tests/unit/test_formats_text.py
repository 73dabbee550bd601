"""Transcripts as text: speakers, times, lines that continue a message, and texts that are not transcripts."""

from collections import Counter

import pytest

from recallog_schemas import Event
from recallog_schemas.errors import InvalidEvent
from recallog_service.formats import Item, Source, registry, text
from support import formats


def items(*lines: str, **options: str) -> list[Item]:
    return formats.items(text.FORMAT, "\n".join(lines).encode(), **options)


def events(*lines: str, **options: str) -> list[Event]:
    return formats.events(items(*lines, **options))


def left_out(*lines: str) -> dict[str, int]:
    return Counter(item.left_out for item in items(*lines) if item.left_out is not None)


def said(*lines: str) -> list[tuple[str, str]]:
    return [(event.agent, event.text) for event in events(*lines)]


def recognised(*lines: str) -> bool:
    found = registry.recognise(Source("\n".join(lines).encode().splitlines(keepends=True)).sample)
    return found is text.FORMAT


def test_a_dialogue_of_a_user_and_an_assistant() -> None:
    found = events(
        "System: Be kind.", "User: Who owes the miller?", "Assistant: The baker,", "nine sacks.", "", "You: Ah."
    )
    assert [(event.agent, event.kind, event.turn) for event in found] == [
        ("assistant", "agent.configured", 0), ("user", "user.injected", 1), ("assistant", "agent.spoke", 1),
        ("user", "user.injected", 2),
    ]  # fmt: skip
    assert found[2].text == "The baker,\nnine sacks."


def test_a_line_may_have_separators_of_unicode_in_it() -> None:
    assert said("Alice: one\u2028two\x0bthree", "Alice: four\r") == [
        ("Alice", "one\u2028two\x0bthree"),
        ("Alice", "four"),
    ]


def test_people_are_users_with_their_names_who_see_what_the_others_say() -> None:
    found = events("Alice: Hello.", "Bob Lee: Hi, Alice.", "张伟: 你好", "Alice: Bye.")
    assert [(event.agent, event.kind, event.payload["name"], event.text) for event in found] == [
        ("Alice", "user.injected", "Alice", "Hello."), ("Bob Lee", "user.injected", "Bob Lee", "Hi, Alice."),
        ("张伟", "user.injected", "张伟", "你好"), ("Alice", "user.injected", "Alice", "Bye."),
    ]  # fmt: skip
    assert len({event.space for event in found}) == 1


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("[2024-05-01 10:02] Alice: Hi.", "2024-05-01T10:02:00"),
        ("2024-05-01T10:02:05Z Alice: Hi.", "2024-05-01T10:02:05"),
        ("2024-05-01 12:02:05+02:00 Alice: Hi.", "2024-05-01T10:02:05"),
        ("2024-05-01 10:02:05.250 - Alice: Hi.", "2024-05-01T10:02:05.250000"),
        ("5/1/24, 10:02 PM - Alice: Hi.", "2024-05-01T22:02:00"),
        ("5/1/24, 12:02\u202fAM - Alice: Hi.", "2024-05-01T00:02:00"),
        ("01/05/2024, 10:02 - Alice: Hi.", "2024-05-01T10:02:00"),
        ("05/31/2024, 10:02 - Alice: Hi.", "2024-05-31T10:02:00"),
        ("[01.05.24, 10:02:05] Alice: Hi.", "2024-05-01T10:02:05"),
        ("\u200e[01.05.24, 10:02:05] Alice: Hi.", "2024-05-01T10:02:05"),
        ("2024/05/01 10:02 Alice: Hi.", "2024-05-01T10:02:00"),
    ],
)
def test_a_time_before_the_name_is_the_time_of_the_message(line: str, time: str) -> None:
    (found,) = events(line)
    assert (found.agent, found.text, found.at.isoformat()) == ("Alice", "Hi.", f"{time}+00:00")


@pytest.mark.parametrize(
    "line", ["10:02 Alice: Hi.", "[10:02:05] Alice: Hi.", "Alice (10:02): Hi.", "Alice [10:02 AM]: Hi."]
)
def test_a_clock_without_a_date_is_no_time(line: str) -> None:
    (found,) = events(line)
    assert (found.agent, found.text, found.at.year) == ("Alice", "Hi.", 2000)


def test_in_a_dated_transcript_only_dated_lines_begin_a_message() -> None:
    lines = ["[2024-05-01 10:02] Alice: Buy:", "Flour: two bags", "[2024-05-01 10:03] Bob: Yes."]
    assert said(*lines) == [("Alice", "Buy:\nFlour: two bags"), ("Bob", "Yes.")]


def test_lines_that_nobody_said_are_counted() -> None:
    lines = ["Meeting of May", "", "[2024-05-01 10:02] Alice: Hi.", "[2024-05-01 10:03] Bob joined", "Carol too"]
    assert said(*lines) == [
        ("Alice", "Hi."),
    ]
    assert left_out(*lines) == {"line_before_the_first_message": 1, "notice": 2}


@pytest.mark.parametrize("length", range(1, 6))
def test_a_grown_transcript_adds_its_tail(length: int) -> None:
    lines = ["Alice: Hi.", "Bob: Hello.", "Alice: Bye.", "Alice: Bye.", "Bob: Bye."]
    before, after = events(*lines[:length]), events(*lines)
    assert after[:length] == before


def test_a_given_space_has_the_transcript_as_a_session() -> None:
    (found,) = events("Alice: Hi.", space="village")
    assert found.space == "village"
    assert found.session != "1"


@pytest.mark.parametrize(
    "lines",
    [
        ("User: Hi.", "Assistant: Hello."),
        ("Alice: Hi.", "Bob: Hello.", "Alice: Bye.", "Bob: Bye."),
        ("[2024-05-01 10:02] Alice: Hi.", "[2024-05-01 10:03] Bob: Hello."),
        ("5/1/24, 10:01 PM - Messages are encrypted.", "5/1/24, 10:02 PM - Alice: Hi.", "5/1/24, 10:03 PM - Bob: Ho."),
        ("Human：你好", "AI：你好！"),
    ],
)
def test_transcripts_are_recognised(lines: tuple[str, ...]) -> None:
    assert recognised(*lines)


@pytest.mark.parametrize(
    "lines",
    [
        ("",),
        ("Once upon a time there was a miller.", "He was poor."),
        ("name: app", "version: 1", "license: MIT", "main: a.py"),
        ("From: alice", "To: bob", "Subject: Bread", "Date: today"),
        ("2024-05-01 10:02:03,123 INFO root: started", "2024-05-01 10:02:04,123 ERROR root: failed"),
        ("ERROR: no flour", "ERROR: no water", "WARNING: late", "ERROR: no salt"),
        ("a,b,c", "1,2,3"),
        ("# Notes", "", "- Buy: flour", "- Sell: bread"),
    ],
)
def test_other_texts_are_not(lines: tuple[str, ...]) -> None:
    assert not recognised(*lines)


def test_a_file_that_is_no_transcript_is_refused() -> None:
    with pytest.raises(InvalidEvent, match="expected a transcript"):
        items("Once upon a time")
    with pytest.raises(InvalidEvent, match="not UTF-8"):
        formats.items(text.FORMAT, b"Alice: \xff\n")
    assert items("", " ") == []


def test_the_notice_with_which_a_chat_of_whatsapp_begins_is_nobody_s() -> None:
    lines = [
        "[13.03.24, 21:04:10] Jörg: \u200eNachrichten und Anrufe sind Ende-zu-Ende-verschlüsselt.",
        "[13.03.24, 21:04:12] Jörg: Hallo.",
        "\u200e[13.03.24, 21:05:00] Zoë: \u200eBild weggelassen",
        "[13.03.24, 21:05:01] Zoë: Schön.",
    ]
    assert said(*lines) == [("Jörg", "Hallo."), ("Zoë", "Bild weggelassen"), ("Zoë", "Schön.")]
    assert left_out(*lines) == {"notice": 1}
