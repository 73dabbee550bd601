"""The LoCoMo format: sessions, turns and pictures of a conversation; ids that an evaluation maps to evidence."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from recallog_eval import locomo
from recallog_schemas import Event, codec
from recallog_schemas.errors import InvalidArgument, InvalidEvent
from recallog_schemas.kinds import shared_kinds
from recallog_service.formats import Item
from support import real_data

DATE = "1:56 pm on 8 May, 2023"
BEGINS = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def turn(speaker: str, dia_id: object, text: object, **fields: Any) -> dict[str, Any]:
    return {"speaker": speaker, "dia_id": dia_id, "text": text, **fields}


def sample(*turns: object, sample_id: object = "conv-1", **fields: Any) -> dict[str, Any]:
    sessions = {"session_1": list(turns), "session_1_date_time": DATE} if turns else {}
    return {"sample_id": sample_id, "conversation": {"speaker_a": "Ann", "speaker_b": "Bob", **sessions, **fields}}


def items_of(*samples: object, space: str | None = None) -> list[Item]:
    return list(locomo.read(json.dumps(samples).encode(), space=space))


def events_of(*samples: object, space: str | None = None) -> list[Event]:
    return [event_of(item) for item in items_of(*samples, space=space)]


def spoken(*samples: object) -> list[Event]:
    return [event for event in events_of(*samples) if event.kind == "agent.spoke"]


def event_of(item: Item) -> Event:
    assert item.event is not None, item.error
    return item.event


def errors_of(*samples: object) -> list[str]:
    return [str(item.error) for item in items_of(*samples) if item.error is not None]


HELLO = (turn("Ann", "D1:1", "Hello!"), turn("Bob", "D1:2", "Hi, Ann."))


def test_who_speaks_is_the_subject_if_asked_for() -> None:
    items = locomo.read(json.dumps([sample(*HELLO)]).encode(), subjects=True)
    found = [(event.kind, event.subject) for event in map(event_of, items)]
    assert found == [
        ("space.configured", None),
        ("session.started", None),
        ("agent.spoke", "Ann"),
        ("agent.spoke", "Bob"),
        ("session.ended", None),
    ]
    assert {event.subject for event in events_of(sample(*HELLO))} == {None}


def test_a_session_is_started_by_its_first_speaker_and_ended_after_its_last_turn() -> None:
    events = events_of(sample(*HELLO))
    assert [(event.agent, event.kind, event.turn, event.session) for event in events] == [
        ("narrator", "space.configured", 0, None),
        ("Ann", "session.started", 1, "session-1"),
        ("Ann", "agent.spoke", 1, "session-1"),
        ("Bob", "agent.spoke", 2, "session-1"),
        ("Bob", "session.ended", 2, "session-1"),
    ]
    assert events[1].payload == {"title": DATE}


def test_both_speakers_remember_the_whole_conversation() -> None:
    assert events_of(sample(*HELLO))[0].payload == {"shared_kinds": sorted(shared_kinds() | {"agent.spoke"})}


def test_times_start_at_the_sessions_date_and_increase_by_a_second_per_turn() -> None:
    assert [event.at - BEGINS for event in events_of(sample(*HELLO))] == [
        timedelta(seconds=seconds) for seconds in (0, 0, 1, 2, 3)
    ]


def test_sessions_come_in_the_order_of_their_numbers_and_turns_count_on() -> None:
    conversation = {
        "session_10": [turn("Ann", "D10:1", "Ten.")],
        "session_10_date_time": "12:00 am on 1 June, 2023",
        "session_2": [turn("Bob", "D2:1", "Two."), turn("Ann", "D2:2", "Too.")],
        "session_2_date_time": "12:05 pm on 9 May, 2023",
    }
    events = spoken({"sample_id": "conv-1", "conversation": conversation})
    assert [(event.id, event.session, event.turn) for event in events] == [
        ("D2:1", "session-2", 1),
        ("D2:2", "session-2", 2),
        ("D10:1", "session-10", 3),
    ]
    assert events[2].at == datetime(2023, 6, 1, 0, 0, 1, tzinfo=UTC)


def test_a_session_with_a_date_but_no_turns_is_skipped() -> None:
    events = events_of(sample(*HELLO, session_2_date_time=DATE, session_3=[], session_3_date_time=DATE))
    assert {event.session for event in events} == {None, "session-1"}


def test_a_turns_id_is_its_dia_id() -> None:
    assert [(event.id, event.payload["dia_id"]) for event in spoken(sample(*HELLO))] == [
        ("D1:1", "D1:1"),
        ("D1:2", "D1:2"),
    ]


@pytest.mark.parametrize("dia_id", ["D1:1", "", None, 5, "D" * 129])
def test_a_repeated_or_missing_dia_id_is_replaced_by_a_reproducible_id(dia_id: object) -> None:
    conversation = sample(*HELLO, turn("Ann", dia_id, "Again."))
    first, second = spoken(conversation), spoken(conversation)
    assert first == second
    assert [event.id for event in first[:2]] == ["D1:1", "D1:2"]
    assert len({event.id for event in first}) == 3


def test_a_picture_is_described_by_its_caption_and_not_by_the_annotators_query() -> None:
    picture = {"blip_caption": "a photo of a dog", "query": "golden retriever", "img_url": ["https://..."]}
    events = spoken(sample(turn("Ann", "D1:1", "Look!", **picture), turn("Bob", "D1:2", "", **picture)))
    assert [event.text for event in events] == ["Look! [shares a photo of a dog]", "[shares a photo of a dog]"]
    assert "retriever" not in str(events)


def test_a_turn_without_text_and_picture_is_counted_and_makes_no_event() -> None:
    items = items_of(sample(*HELLO, turn("Ann", "D1:3", "")))
    assert [item.event.id for item in items if item.event and item.event.kind == "agent.spoke"] == ["D1:1", "D1:2"]
    assert [item.left_out for item in items if item.left_out] == ["empty_turn"]


def test_a_speaker_is_an_agent_of_the_same_name() -> None:
    assert spoken(sample(turn("Anne Marie (mum)", "D1:1", "Hello!")))[0].agent == "Anne Marie (mum)"


def test_the_given_space_is_a_prefix_of_the_conversations_name() -> None:
    assert {event.space for event in events_of(sample(*HELLO))} == {"conv-1"}
    assert {event.space for event in events_of(sample(*HELLO), space="locomo")} == {"locomo/conv-1"}
    with pytest.raises(InvalidArgument, match="space: 'my space ' is not a name"):
        items_of(sample(*HELLO), space="my space ")


def test_a_list_of_one_may_come_without_its_list() -> None:
    assert [event_of(item) for item in locomo.read(json.dumps(sample(*HELLO)).encode())] == events_of(sample(*HELLO))


def test_an_empty_list_and_a_conversation_without_sessions_have_no_events() -> None:
    assert items_of() == []
    assert items_of(sample()) == []


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (17, "conversation 2: conversation: not an object"),
        ({"sample_id": "conv-2"}, "conversation 2: conversation: not an object"),
        (sample(*HELLO, sample_id=None), "conversation 2: sample_id: None cannot name a space"),
        (sample(*HELLO, sample_id="no*name"), "conversation 2: sample_id: 'no*name' cannot name a space"),
        (sample(*HELLO, sample_id="conv-1"), "conversation 2: sample_id: conv-1 is used by an earlier conversation"),
    ],
)
def test_a_broken_conversation_is_an_error_and_the_next_is_read(broken: object, message: str) -> None:
    items = items_of(sample(*HELLO), broken, sample(*HELLO, sample_id="conv-3"))
    (refused,) = [item for item in items if item.error is not None]
    assert (refused.number, str(refused.error).startswith(message)) == (2, True), refused
    assert event_of(items[-1]).space == "conv-3"


@pytest.mark.parametrize("broken", [17, {}, turn("Bob", "D1:9", None)])
def test_a_broken_turn_is_an_error_and_its_neighbours_keep_turn_and_time(broken: object) -> None:
    conversation = sample(HELLO[0], broken, HELLO[1])
    assert errors_of(conversation) == ["conversation 1: session_1.2: not a turn with speaker, dia_id and text"]
    events = [item.event for item in items_of(conversation) if item.event and item.event.kind == "agent.spoke"]
    assert [(event.turn, event.at) for event in events] == [
        (1, BEGINS + timedelta(seconds=1)),
        (3, BEGINS + timedelta(seconds=3)),
    ]


def test_a_speaker_that_cannot_be_a_name_is_an_error() -> None:
    conversation = sample(HELLO[0], turn("Мария*", "D1:2", "Hi."), HELLO[1])
    (error,) = errors_of(conversation)
    assert error.startswith("conversation 1: session_1.2: agent: ")


@pytest.mark.parametrize("date", [None, "2023-05-08", "13:56 on 8 May, 2023"])
def test_a_session_without_a_readable_date_is_an_error_and_the_next_is_read(date: object) -> None:
    later = {"session_2": [turn("Ann", "D2:1", "Hello again!")], "session_2_date_time": DATE}
    conversation = sample(*HELLO, **later)
    conversation["conversation"]["session_1_date_time"] = date
    (error,) = errors_of(conversation)
    assert error.startswith("conversation 1: session_1_date_time: ")
    events = [item.event for item in items_of(conversation) if item.event]
    assert [event.kind for event in events] == ["space.configured", "session.started", "agent.spoke", "session.ended"]


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (b"", "not JSON: "),
        (b'{"kind": "x.y", "space": "s"}', "try --format jsonl"),
        (b'[{"messages": [{"role": "user", "content": "Hi."}]}]', "try --format chat"),
        (b'[{"traj": [{"role": "user", "content": "Hi."}]}]', "try --format chat"),
        (b'["a"]', "recallog ingest recognises the format"),
        (b"17", "expected LoCoMo"),
    ],
)
def test_a_file_of_another_format_is_refused_with_the_format_to_try(text: bytes, advice: str) -> None:
    with pytest.raises(InvalidEvent) as refused:
        list(locomo.read(text))
    assert "expected LoCoMo" in str(refused.value)
    assert advice in str(refused.value)


# The real conversations.


@pytest.fixture(scope="module")
def tuning() -> list[Event]:
    return [event_of(item) for item in locomo.read(recorded())]


def recorded() -> bytes:
    return real_data.path("locomo-tuning.json").read_bytes()


def test_all_sessions_and_turns_are_read_without_an_error(tuning: list[Event]) -> None:
    assert Counter(event.kind for event in tuning) == {
        "space.configured": 3,
        "session.started": 70,
        "agent.spoke": 1_451,
        "session.ended": 70,
    }
    assert Counter(event.space for event in tuning if event.kind == "agent.spoke") == {
        "conv-26": 419,
        "conv-30": 369,
        "conv-41": 663,
    }


def test_the_evidence_of_a_question_is_found_by_id(tuning: list[Event]) -> None:
    payloads = {(event.space, event.id): event.payload for event in tuning}
    assert len(payloads) == len(tuning)
    for sample in json.loads(recorded()):
        for key, turns in sample["conversation"].items():
            if isinstance(turns, list):
                for original in turns:
                    payload = payloads[sample["sample_id"], original["dia_id"]]
                    assert payload["dia_id"] == original["dia_id"], key
                    assert payload["text"].startswith(original["text"].strip())
                    assert ("[shares " in payload["text"]) == bool(original.get("blip_caption"))


def test_time_and_turn_increase_in_each_conversation(tuning: list[Event]) -> None:
    for before, after in pairwise(tuning):
        if before.space == after.space:
            assert (before.turn, before.at) <= (after.turn, after.at)


def test_conversations_read_twice_are_the_same_and_survive_the_codec(tuning: list[Event]) -> None:
    assert [item.event for item in locomo.read(recorded())] == tuning
    assert [codec.decode(codec.encode(event)) for event in tuning] == tuning
