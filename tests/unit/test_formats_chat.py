"""The chat format: messages, tool calls with their results, and space and time of each conversation."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from recallog_schemas import Event, codec, limits
from recallog_schemas.errors import EventTooLarge, InvalidArgument, InvalidEvent
from recallog_service.formats import DEFAULT_START, Item, chat
from support import real_data

START = datetime(2026, 3, 1, 12, tzinfo=UTC)

Message = dict[str, Any]


def user(text: object, **fields: Any) -> Message:
    return {"role": "user", "content": text, **fields}


def assistant(text: object = None, *calls: Message, **fields: Any) -> Message:
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {}), **fields}


def call(name: str, arguments: object = "{}", **fields: Any) -> Message:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **fields}


def result(text: object, **fields: Any) -> Message:
    return {"role": "tool", "content": text, **fields}


def items_of(document: object, **options: Any) -> list[Item]:
    return list(chat.read(json.dumps(document).encode(), **options))


def events_of(document: object, **options: Any) -> list[Event]:
    return [event_of(item) for item in items_of(document, **options)]


def event_of(item: Item) -> Event:
    assert item.event is not None, item.error
    return item.event


def error_of(item: Item) -> InvalidEvent:
    assert item.error is not None, item.event
    return item.error


def contents(*messages: Message) -> list[tuple[str, str, dict[str, Any]]]:
    return [(event.agent, event.kind, event.payload) for event in events_of(list(messages))]


def tools(*messages: Message) -> list[dict[str, Any]]:
    return [event.payload for event in events_of(list(messages)) if event.kind == "tool.used"]


def spaces(document: object, **options: Any) -> list[str]:
    return list(dict.fromkeys(event.space for event in events_of(document, **options)))


def talk(**fields: Any) -> dict[str, Any]:
    return {"messages": [user("hello")], **fields}


# Messages.


def test_roles_become_agents_and_kinds() -> None:
    assert contents({"role": "system", "content": "Be kind."}, user("Handshake"), assistant("Hi!")) == [
        ("assistant", "agent.configured", {"persona": "Be kind."}),
        ("user", "user.injected", {"text": "Handshake"}),
        ("assistant", "agent.spoke", {"text": "Hi!"}),
    ]


def test_a_developer_message_is_a_system_message() -> None:
    assert contents({"role": "developer", "content": "Be kind."}) == [
        ("assistant", "agent.configured", {"persona": "Be kind."})
    ]


@pytest.mark.parametrize("empty", [None, "", "  \n", []])
def test_empty_texts_make_no_event(empty: object) -> None:
    assert contents({"role": "system", "content": empty}, user(empty), assistant(empty), {"role": "user"}) == []


def test_parts_are_joined_and_parts_without_text_are_shown_as_their_type() -> None:
    parts = [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "data:..."}},
        {"type": "input_audio", "input_audio": {}},
        {"type": "output_text", "text": "and"},
        {"type": "file"},
        "done",
    ]
    assert contents(user(parts)) == [("user", "user.injected", {"text": "Look:\n[image]\n[audio]\nand\n[file]\ndone"})]


def test_turns_count_the_users_messages() -> None:
    messages = [
        {"role": "system", "content": "s"},
        assistant("hi"),
        user("a"),
        assistant("b"),
        assistant("c"),
        user("d"),
    ]
    assert [event.turn for event in events_of(messages)] == [0, 0, 1, 1, 1, 2]


def test_a_reward_ends_the_session() -> None:
    last = events_of(talk(reward=1, outcome="booked"))[-1]
    assert (last.agent, last.kind, last.turn) == ("assistant", "session.ended", 1)
    assert last.payload == {"reward": 1.0, "outcome": "booked"}


@pytest.mark.parametrize("fields", [{}, {"reward": None}, {"reward": "1"}, {"reward": True}, {"outcome": "booked"}])
def test_without_a_number_as_reward_the_session_stays_open(fields: dict[str, Any]) -> None:
    assert [event.kind for event in events_of(talk(**fields))] == ["user.injected"]


# Tools


def test_a_call_and_its_result_are_one_event_at_the_position_of_the_result() -> None:
    messages = [
        user("Weather?"),
        assistant("Let me look.", call("weather", '{"city": "Ulm"}', id="c1")),
        result("sunny", tool_call_id="c1", name="weather"),
        assistant("Sunny."),
    ]
    assert contents(*messages)[1:] == [
        ("assistant", "agent.spoke", {"text": "Let me look."}),
        (
            "assistant",
            "tool.used",
            {"tool": "weather", "arguments": {"city": "Ulm"}, "result": "sunny", "ok": True},
        ),
        ("assistant", "agent.spoke", {"text": "Sunny."}),
    ]


def test_parallel_calls_find_their_results_by_id() -> None:
    used = tools(
        assistant(None, call("a", '"1"', id="x"), call("a", '"2"', id="y")),
        result("second", tool_call_id="y"),
        result("first", tool_call_id="x"),
    )
    assert [(tool["arguments"], tool["result"]) for tool in used] == [("2", "second"), ("1", "first")]


@pytest.mark.parametrize("ids", [{"id": "same"}, {}])
def test_calls_whose_ids_repeat_or_are_missing_find_their_results_in_order(ids: dict[str, str]) -> None:
    answer = {"tool_call_id": "same"} if ids else {}
    used = tools(
        assistant(None, call("a", "1", **ids), call("a", "2", **ids)),
        result("first", **answer),
        result("second", **answer),
        user("again"),
        assistant(None, call("a", "3", **ids)),
        result("third", **answer),
    )
    assert [(tool["arguments"], tool["result"]) for tool in used] == [(1, "first"), (2, "second"), (3, "third")]


def test_a_result_without_id_is_not_given_to_a_call_that_an_earlier_turn_left_open() -> None:
    used = tools(
        user("one"), assistant(None, call("a", "1")), user("two"), assistant(None, call("a", "2")), result("late")
    )
    assert used == [
        {"tool": "a", "arguments": 1, "ok": False},
        {"tool": "a", "arguments": 2, "result": "late", "ok": True},
    ]


def test_without_ids_an_open_call_of_an_earlier_turn_gets_no_result() -> None:
    used = tools(user("one"), assistant(None, call("a", "1")), user("two"), result("stray", name="a"))
    assert used == [{"tool": "a", "arguments": 1, "ok": False}, {"tool": "a", "result": "stray", "ok": True}]


def test_the_result_of_a_repeated_id_belongs_to_the_call_of_its_own_turn() -> None:
    first, second = call("a", "1", id="x"), call("a", "2", id="x")
    used = tools(
        user("one"), assistant(None, first), user("two"), assistant(None, second), result("r", tool_call_id="x")
    )
    assert [(tool["arguments"], tool["ok"]) for tool in used] == [(1, False), (2, True)]


def test_a_named_result_without_id_belongs_to_the_call_of_that_name() -> None:
    used = tools(assistant(None, call("a", "1"), call("b", "2")), result("of b", name="b"), result("of a", name="a"))
    assert [(tool["tool"], tool["result"]) for tool in used] == [("b", "of b"), ("a", "of a")]


def test_a_result_that_comes_after_the_user_spoke_again_finds_its_call_by_id() -> None:
    used = tools(user("one"), assistant(None, call("a", "1", id="x")), user("two"), result("late", tool_call_id="x"))
    assert used == [{"tool": "a", "arguments": 1, "result": "late", "ok": True}]


def test_a_legacy_function_call_finds_its_result_by_name() -> None:
    used = tools(
        assistant(None, function_call={"name": "weather", "arguments": '{"city": "Ulm"}'}),
        {"role": "function", "name": "weather", "content": "sunny"},
    )
    assert used == [{"tool": "weather", "arguments": {"city": "Ulm"}, "result": "sunny", "ok": True}]


def test_a_call_without_a_result_failed() -> None:
    assert tools(assistant(None, call("weather", id="x")), assistant("Hm.")) == [
        {"tool": "weather", "arguments": {}, "ok": False}
    ]


def test_a_result_without_a_call_keeps_the_tools_name() -> None:
    assert tools(result("sunny", name="weather"), result("rain", tool_call_id="nobody's")) == [
        {"tool": "weather", "result": "sunny", "ok": True},
        {"tool": "unknown", "result": "rain", "ok": True},
    ]


@pytest.mark.parametrize(
    ("content", "ok"),
    [("Error: no seat", False), ("ERROR", False), ("error", False), ("No error", True), ("", True), (None, True)],
)
def test_a_result_that_starts_with_error_failed(content: str | None, ok: bool) -> None:
    assert tools(assistant(None, call("book", id="x")), result(content, tool_call_id="x")) == [
        {"tool": "book", "arguments": {}, "result": content or "", "ok": ok}
    ]


@pytest.mark.parametrize(
    "arguments",
    ["", "{city: Ulm}", '{"x": NaN}', '{"x": 1e999}', '{"x": 123456789012345678901234567890}', '{"x": "\\ud800"}'],
)
def test_arguments_that_the_ledger_cannot_hold_parsed_are_stored_as_text(arguments: str) -> None:
    assert tools(assistant(None, call("a", arguments))) == [{"tool": "a", "arguments": arguments, "ok": False}]


def test_arguments_and_results_that_are_objects_are_stored_unchanged() -> None:
    assert tools(assistant(None, call("a", {"x": 1}, id="i")), result({"y": 2}, tool_call_id="i")) == [
        {"tool": "a", "arguments": {"x": 1}, "result": {"y": 2}, "ok": True}
    ]


# Spaces of conversations.


def test_one_conversation_gets_the_given_space() -> None:
    for document in ([user("hello")], talk(id="c-9"), [talk(id="c-9")]):
        assert spaces(document, space="support") == ["support"]


def test_one_conversation_without_a_space_is_called_by_its_id() -> None:
    assert spaces(talk(id="c-9")) == ["chat/c-9"]
    assert spaces([user("hello")]) == ["chat/0001"]


@pytest.mark.parametrize("key", ["id", "conversation_id", "sample_id", "uuid"])
def test_several_conversations_are_called_by_their_ids(key: str) -> None:
    assert spaces([talk(**{key: "a"}), talk(**{key: 17})], space="support") == ["support/a", "support/17"]


def test_a_repeated_or_invalid_id_is_replaced_by_the_ordinal() -> None:
    document = [talk(id="a"), talk(id="b"), talk(id="a"), talk(id="no name"), talk(id="x" * 128), talk(id=None)]
    assert spaces(document) == ["chat/0001", "chat/b", "chat/0003", "chat/0004", "chat/0005", "chat/0006"]


def test_runs_of_a_task_are_called_by_task_and_trial() -> None:
    document = [talk(task_id=task, trial=trial) for task in (0, 1) for trial in (0, 1)]
    assert spaces(document) == ["chat/0-0", "chat/0-1", "chat/1-0", "chat/1-1"]


def test_no_two_conversations_share_a_space_whatever_their_ids() -> None:
    document = [talk(id="0002"), talk(), talk(uuid="3-0"), talk(task_id=3, trial=0), talk(id="0004")]
    found = spaces(document)
    assert len(set(found)) == 5
    assert found[0] == "chat/0002"


def test_an_invalid_space_is_refused_once() -> None:
    with pytest.raises(InvalidArgument, match="space: 'my chats' is not a name"):
        items_of([talk(), talk()], space="my chats")


# Times.


def test_missing_times_count_up_from_the_start_in_each_conversation() -> None:
    both = events_of([talk(id="a", reward=1), talk(id="b")], start=START)
    assert [event.at for event in both] == [START, START + timedelta(seconds=1), START]
    assert events_of(talk())[0].at == DEFAULT_START


@pytest.mark.parametrize(
    "own", ["2024-05-15T15:00:00-05:00", "2024-05-15T20:00:00Z", 1715803200, 1715803200.0, 1715803200000]
)
@pytest.mark.parametrize("key", ["timestamp", "created_at", "at"])
def test_a_messages_own_time_is_used(key: str, own: object) -> None:
    assert events_of([user("hello", **{key: own})])[0].at == datetime(2024, 5, 15, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    "own", ["2024-05-15T15:00:00", "yesterday", None, True, 1e300, -(10**400), "0001-01-01T00:00:00+14:00"]
)
def test_a_time_without_a_zone_or_a_meaning_counts_as_missing(own: object) -> None:
    assert events_of([user("hello", timestamp=own)], start=START)[0].at == START


def test_missing_times_count_up_from_the_last_given_time() -> None:
    own = datetime(2026, 5, 1, tzinfo=UTC)
    messages = [user("a"), assistant("b", at=own.isoformat()), user("c"), assistant("d", at=own.isoformat())]
    assert [event.at for event in events_of(messages, start=START)] == [START, own, own + timedelta(seconds=1), own]


def test_a_time_in_the_last_year_of_the_calendar_is_not_counted_up_from() -> None:
    messages = [user("a", at="9999-12-31T23:59:59Z"), assistant("b")]
    assert [event.at for event in events_of(messages, start=START)] == [START, START + timedelta(seconds=1)]


def test_a_tool_event_has_the_time_of_its_result() -> None:
    used = events_of([assistant(None, call("a", id="x"), at=100), result("r", tool_call_id="x", at=160)])[0]
    assert used.at == datetime(1970, 1, 1, 0, 2, 40, tzinfo=UTC)


# Ids


def test_reading_twice_gives_the_same_events() -> None:
    document = [talk(id="a", reward=0.5), talk(id="b")]
    assert items_of(document) == items_of(document)
    assert len({event.id for event in events_of(document)}) == 3


def test_a_continued_conversation_has_its_earlier_events_unchanged() -> None:
    longer = [user("a"), assistant("b"), user("c"), assistant("d")]
    assert events_of(longer, space="s")[:2] == events_of(longer[:2], space="s")


def test_all_events_of_a_conversation_are_one_session() -> None:
    assert {event.session for event in events_of([user("a"), assistant("b")])} == {"1"}


# Shapes of files


def test_a_list_one_object_and_jsonl_give_the_same_events() -> None:
    one, two = talk(id="a"), talk(id="b")
    lines = "\n".join(map(json.dumps, (one, two)))
    assert [event_of(item) for item in chat.read(lines.encode())] == events_of([one, two])
    assert [event_of(item) for item in chat.read(b"\xef\xbb\xbf" + lines.encode() + b"\n\n")] == events_of([one, two])
    assert events_of(one) == events_of([one])


def test_conversations_may_be_bare_lists_and_messages_may_be_lines() -> None:
    messages = [user("a"), assistant("b")]
    assert spaces([messages, messages]) == ["chat/0001", "chat/0002"]
    lines = "\n".join(map(json.dumps, messages))
    assert [event_of(item) for item in chat.read(lines.encode())] == events_of(messages)


def test_messages_may_be_under_another_key() -> None:
    assert len(events_of({"traj": [user("a")]}, messages_key="traj")) == 1


def test_an_empty_list_has_no_events() -> None:
    assert items_of([]) == []
    assert items_of({"messages": []}) == []


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (b"", "not JSON: "),
        (b"hello\nworld\n", "--format jsonl reads one event per line"),
        (b'[\n{"messages": []},\n{"messages": []},\n]', "not JSON: "),
        (b"17", "expected conversations"),
        (b'[{"traj": [{"role": "user"}]}]', "try --format chat --messages-key traj"),
        (b'[{"sample_id": "a", "conversation": {}}]', "try --format locomo"),
        (b'{"space": "s", "agent": "a", "kind": "x.y"}', "try --format jsonl"),
        (b"[" * 100_000, "not JSON: "),
    ],
)
def test_a_file_of_another_format_is_refused_with_the_format_to_try(text: bytes, advice: str) -> None:
    with pytest.raises(InvalidEvent) as refused:
        list(chat.read(text))
    assert "expected conversations" in str(refused.value)
    assert advice in str(refused.value)


# Errors


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"role": "alien", "content": "x"}, "role: 'alien' is not one of system, developer, user"),
        ({"content": "x"}, "role: None is not one of"),
        (user(17), "content: neither a string, null nor a list of parts"),
        (user([{"text": "x"}]), "content.0: not a part with a type"),
        (user("\ud800"), "half of a surrogate pair"),
        (assistant("x", tool_calls="x"), "tool_calls: not a list of calls"),
        ("hello", "not a JSON object with role and content"),
    ],
)
def test_an_invalid_message_is_an_error_and_does_not_change_its_neighbours(broken: Any, message: str) -> None:
    items = items_of([user("a"), broken, user("b")])
    whole = events_of([user("a"), assistant("x"), user("b")])
    assert str(error_of(items[1])).startswith(f"conversation 1: message 2: {message}")
    neighbours = [(event.id, event.at, event.text) for event in map(event_of, (items[0], items[2]))]
    assert neighbours == [(event.id, event.at, event.text) for event in (whole[0], whole[2])]


def test_a_broken_conversation_is_an_error_with_its_ordinal_and_the_next_is_read() -> None:
    items = items_of([talk(), {"messages": "none"}, 17, talk()])
    assert [item.number for item in items] == [1, 2, 3, 4]
    assert str(error_of(items[1])) == 'conversation 2: neither an object with a list of "messages" nor a list'
    assert error_of(items[2]) is not None
    assert event_of(items[3]).space == "chat/0004"


def test_a_line_that_is_not_json_is_an_error_among_lines_that_are() -> None:
    items = list(chat.read(b"\n".join([json.dumps(talk()).encode(), b"{", json.dumps(talk()).encode()])))
    assert str(error_of(items[1])).startswith("conversation 2: not JSON: ")
    assert event_of(items[2]).space == "chat/0003"


def test_a_message_over_the_limit_is_refused_as_such() -> None:
    items = items_of([user("x" * limits.EVENT_BYTES_MAX), assistant(None, call("a", "1" * limits.EVENT_BYTES_MAX))])
    assert [type(error_of(item)) for item in items] == [EventTooLarge, EventTooLarge]


def test_a_reward_that_is_no_finite_number_is_an_error() -> None:
    assert "conversation 1: reward: " in str(error_of(items_of(talk(reward=float("nan")))[-1]))


# Real runs of an agent.


@pytest.fixture(scope="module")
def runs() -> list[Event]:
    return [event_of(item) for item in chat.read(airline(), messages_key="traj")]


def airline() -> bytes:
    return real_data.path("taubench-airline.json").read_bytes()


def test_all_recorded_runs_are_read_without_an_error(runs: list[Event]) -> None:
    assert Counter(event.kind for event in runs) == {
        "agent.configured": 200,
        "user.injected": 1_490,
        "agent.spoke": 1_380,
        "tool.used": 1_164,
        "session.ended": 200,
    }


def test_each_recorded_run_is_a_space_called_by_task_and_trial(runs: list[Event]) -> None:
    found = {event.space for event in runs}
    assert found == {f"chat/{task}-{trial}" for task in range(50) for trial in range(4)}


def test_all_recorded_tool_calls_have_their_results(runs: list[Event]) -> None:
    calls = {
        (
            f"chat/{run['task_id']}-{run['trial']}",
            made["function"]["name"],
            made["function"]["arguments"],
            answer["content"],
        )
        for run in json.loads(airline())
        for message, answer in zip(run["traj"], run["traj"][1:], strict=False)
        for made in message.get("tool_calls") or ()
    }
    used = [event for event in runs if event.kind == "tool.used"]
    assert all(event.payload.keys() == {"tool", "arguments", "result", "ok"} for event in used)
    assert {(space, tool, json.dumps(json.loads(arguments)), text) for space, tool, arguments, text in calls} == {
        (event.space, event.payload["tool"], json.dumps(event.payload["arguments"]), event.payload["result"])
        for event in used
    }
    assert sum(not event.payload["ok"] for event in used) == 73


def test_ids_are_unique_and_times_increase_in_a_recorded_run(runs: list[Event]) -> None:
    assert len({(event.space, event.id) for event in runs}) == len(runs)
    for before, after in pairwise(runs):
        assert before.space != after.space or before.at < after.at


def test_recorded_runs_read_twice_are_the_same_and_survive_the_codec(runs: list[Event]) -> None:
    assert [item.event for item in chat.read(airline(), messages_key="traj")] == runs
    assert [codec.decode(codec.encode(event)) for event in runs] == runs
