"""The chat format: messages, tool calls with their results, and space and time of each conversation."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from recallog import Memory
from recallog_schemas import Event, codec, limits
from recallog_schemas.errors import InvalidArgument, InvalidEvent
from recallog_schemas.kinds.trust import CLASSES
from recallog_service.formats import DEFAULT_START, Format, Item, chat, chatgpt, registry
from recallog_service.formats.conversation_file import ConversationFile
from recallog_service.ingest import ingest
from support import formats, real_data

START = datetime(2026, 3, 1, 12, tzinfo=UTC)

GENERATED = "0190b1c9-a2f0-7000-8000-000000000001"
"""An id of a conversation that no other one has."""

Message = dict[str, Any]


def user(text: object, **fields: Any) -> Message:
    return {"role": "user", "content": text, **fields}


def assistant(text: object = None, *calls: Message, **fields: Any) -> Message:
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {}), **fields}


def call(name: str, arguments: object = "{}", **fields: Any) -> Message:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **fields}


def result(text: object, **fields: Any) -> Message:
    return {"role": "tool", "content": text, **fields}


def read(document: object, format: Format = chat.FORMAT, **options: Any) -> ConversationFile:  # noqa: A002
    found = formats.read(format, json.dumps(document).encode(), **options)
    assert isinstance(found, ConversationFile)
    return found


def read_text(text: bytes, **options: Any) -> list[Item]:
    return formats.items(chat.FORMAT, text, **options)


def items_of(document: object, **options: Any) -> list[Item]:
    return list(read(document, **options))


def left_out(*messages: Message) -> dict[str, int]:
    return Counter(item.left_out for item in items_of(list(messages)) if item.left_out is not None)


def events_of(document: object, **options: Any) -> list[Event]:
    return [event_of(item) for item in items_of(document, **options) if item.left_out is None]


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


def test_parts_are_joined_and_media_are_noted_by_their_type() -> None:
    parts = [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {}},
        {"type": "input_audio", "input_audio": {}},
        {"type": "output_text", "text": "and"},
        {"type": "file"},
        "done",
    ]
    assert contents(user(parts)) == [("user", "user.injected", {"text": "Look:\n(image)\n(audio)\nand\n(file)\ndone"})]


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
        {"tool": "a", "arguments": 1, "ok": False, "error": "no result"},
        {"tool": "a", "arguments": 2, "result": "late", "ok": True},
    ]


def test_without_ids_an_open_call_of_an_earlier_turn_gets_no_result() -> None:
    used = tools(user("one"), assistant(None, call("a", "1")), user("two"), result("stray", name="a"))
    assert used == [
        {"tool": "a", "arguments": 1, "ok": False, "error": "no result"},
        {"tool": "a", "result": "stray", "ok": True},
    ]


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
        {"tool": "weather", "arguments": {}, "ok": False, "error": "no result"}
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
    assert tools(assistant(None, call("a", arguments))) == [
        {"tool": "a", "arguments": arguments, "ok": False, "error": "no result"}
    ]


def test_arguments_and_results_that_are_objects_are_stored_unchanged() -> None:
    assert tools(assistant(None, call("a", {"x": 1}, id="i")), result({"y": 2}, tool_call_id="i")) == [
        {"tool": "a", "arguments": {"x": 1}, "result": {"y": 2}, "ok": True}
    ]


# Blocks of Anthropic and OpenAI.


def test_a_conversation_of_anthropic_keeps_its_thoughts_tools_and_pictures() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 8000}}
    conversation = {
        "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            user([{"type": "text", "text": "What is this?"}, picture]),
            assistant(
                [
                    {"type": "thinking", "thinking": "A look first.", "signature": "s"},
                    {"type": "text", "text": "Let me look."},
                    {"type": "tool_use", "id": "t1", "name": "look", "input": {"zoom": 2}},
                    {"type": "tool_use", "id": "t2", "name": "measure", "input": {}},
                ]
            ),
            user(
                [
                    {"type": "tool_result", "tool_use_id": "t2", "content": "no ruler", "is_error": True},
                    {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a loaf"}]},
                    {"type": "text", "text": "And?"},
                ]
            ),
            assistant("A loaf."),
        ],
    }
    assert [(event.turn, event.agent, event.kind, event.payload) for event in events_of(conversation)] == [
        (0, "assistant", "agent.configured", {"persona": "Be kind."}),
        (1, "user", "user.injected", {"text": "What is this?\n(image: image/png, 6 kB)"}),
        (1, "assistant", "agent.thought", {"text": "A look first."}),
        (1, "assistant", "agent.spoke", {"text": "Let me look."}),
        (1, "assistant", "tool.used", {"tool": "measure", "arguments": {}, "result": "no ruler", "ok": False}),
        (1, "assistant", "tool.used", {"tool": "look", "arguments": {"zoom": 2}, "result": "a loaf", "ok": True}),
        (2, "user", "user.injected", {"text": "And?"}),
        (2, "assistant", "agent.spoke", {"text": "A loaf."}),
    ]


def test_a_message_of_tool_results_alone_begins_no_turn() -> None:
    tool_result = {"type": "tool_result", "tool_use_id": "t1", "content": "done"}
    messages = [user("Do it."), assistant([{"type": "tool_use", "id": "t1", "name": "do"}]), user([tool_result])]
    assert [event.turn for event in events_of([*messages, user("Thanks.")])] == [1, 1, 2]


@pytest.mark.parametrize(
    ("part", "note"),
    [
        (
            {"type": "image_url", "image_url": {"url": "https://a.example/cat.png"}},
            "(image: https://a.example/cat.png)",
        ),
        (
            {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64," + "A" * 4000}},
            "(image: image/jpeg, 3 kB)",
        ),
        ({"type": "input_image", "file_id": "file-1"}, "(image: file-1)"),
        ({"type": "input_audio", "input_audio": {"data": "A" * 4000, "format": "wav"}}, "(audio: wav, 3 kB)"),
        ({"type": "file", "file": {"filename": "bill.pdf", "file_id": "file-2"}}, "(file: bill.pdf, file-2)"),
        (
            {
                "type": "document",
                "title": "Notes",
                "source": {"type": "text", "media_type": "text/plain", "data": "Buy"},
            },
            "(document: Notes, text/plain)\nBuy",
        ),
    ],
)
def test_a_picture_or_file_is_noted_with_what_is_known_of_it(part: Message, note: str) -> None:
    assert contents(user([part])) == [("user", "user.injected", {"text": note})]


@pytest.mark.parametrize(
    "refused", [{"content": None, "refusal": "I cannot."}, {"content": [{"type": "refusal", "refusal": "I cannot."}]}]
)
def test_a_refusal_is_said_and_marked(refused: Message) -> None:
    assert contents({"role": "assistant", **refused}) == [
        ("assistant", "agent.spoke", {"text": "I cannot.", "refusal": True})
    ]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
def test_the_reasoning_of_a_message_is_a_thought_before_it(field: str) -> None:
    assert contents(assistant("Yes.", **{field: "Hm."})) == [
        ("assistant", "agent.thought", {"text": "Hm."}),
        ("assistant", "agent.spoke", {"text": "Yes."}),
    ]


def test_messages_of_langchain_are_read_like_those_of_openai() -> None:
    messages = [
        {"type": "human", "content": "Weather?"},
        {"type": "ai", "content": "", "tool_calls": [{"name": "weather", "args": {"city": "Ulm"}, "id": "x"}]},
        {"type": "tool", "content": "sunny", "tool_call_id": "x"},
        {"role": "ai", "text": "Sunny."},
    ]
    assert [(event.turn, event.kind, event.payload) for event in events_of({"messages": messages})] == [
        (1, "user.injected", {"text": "Weather?"}),
        (1, "tool.used", {"tool": "weather", "arguments": {"city": "Ulm"}, "result": "sunny", "ok": True}),
        (1, "agent.spoke", {"text": "Sunny."}),
    ]


def test_items_of_responses_are_read_like_messages() -> None:
    items = [
        user([{"type": "input_text", "text": "Weather?"}]),
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Ask the tool."}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": '{"city": "Ulm"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Sunny."}]},
    ]
    assert contents(*items)[1:] == [
        ("assistant", "agent.thought", {"text": "Ask the tool.", "message_id": "rs_1"}),
        ("assistant", "tool.used", {"tool": "weather", "arguments": {"city": "Ulm"}, "result": "sunny", "ok": True}),
        ("assistant", "agent.spoke", {"text": "Sunny."}),
    ]


@pytest.mark.parametrize(
    ("name", "author"),
    [
        *((name, name) for name in ("Alice", "Dr. Who & Co", "李")),
        ("assistant", "assistant (user)"),
        ("a\nb", "a_b 7e18f737"),
        ("*", "_ 684888c0"),
        ("", "user"),
    ],
)
def test_a_named_user_is_the_author(name: str, author: str) -> None:
    named = {"name": name} if name else {}
    assert contents(user("hi", name=name)) == [(author, "user.injected", {"text": "hi", **named})]


def test_the_name_of_an_assistants_message_is_stored() -> None:
    assert contents(assistant("hi", name="planner")) == [
        ("assistant", "agent.spoke", {"text": "hi", "name": "planner"})
    ]


def test_blocks_that_no_event_holds_are_counted_by_type() -> None:
    blocks = [
        {"type": "redacted_thinking", "data": "x"},
        {"type": "hologram"},
        {"type": "hologram"},
        {"type": "text", "text": "a"},
    ]
    assert left_out(assistant(blocks), {"type": "reasoning", "summary": [], "encrypted_content": "x"}) == {
        "redacted_thinking": 1, "hologram": 2, "reasoning": 1,
    }  # fmt: skip
    assert contents(assistant(blocks)) == [("assistant", "agent.spoke", {"text": "a"})]


def test_an_unknown_block_with_a_text_is_said() -> None:
    assert contents(assistant([{"type": "citation", "text": "Page 3"}])) == [
        ("assistant", "agent.spoke", {"text": "Page 3"})
    ]


def test_a_result_of_blocks_without_text_is_stored_as_it_is() -> None:
    found = [{"type": "web_search_result", "url": "https://a.example", "title": "A"}]
    blocks = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "a"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": found},
    ]
    assert tools(assistant(blocks)) == [
        {"tool": "web_search", "arguments": {"query": "a"}, "result": found, "ok": True}
    ]


# Exports of ChatGPT and Claude.


def node(key: str, parent: str | None, role: str, content: object, **fields: Any) -> tuple[str, dict[str, Any]]:
    name = fields.pop("name", None)
    message = {
        "id": f"id-{key}",
        "author": {"role": role, "name": name},
        "content": content,
        "recipient": "all",
        **fields,
    }
    return key, {"id": key, "parent": parent, "message": message}


def text(*parts: object) -> dict[str, Any]:
    return {"content_type": "text", "parts": list(parts)}


CHATGPT = {
    "title": "Bread",
    "create_time": 1767261600.5,
    "conversation_id": "68b1c9a2-1b1c-8005-9a4e-0c53a1d0f3aa",
    "current_node": "7",
    "mapping": dict(
        [
            ("0", {"id": "0", "parent": None, "message": None}),
            node("1", "0", "system", text("")),
            node("1b", "1", "user", {"content_type": "user_editable_context", "user_profile": "I bake."}),
            node("2", "1b", "user", text("How much is 9 x 7?"), create_time=1767261601.0),
            node("2x", "1b", "user", text("How much is 9 x 8?"), create_time=1767261500.0),
            node(
                "3",
                "2",
                "assistant",
                {"content_type": "thoughts", "thoughts": [{"summary": "M", "content": "Multiply."}]},
            ),
            node("4", "3", "assistant", {"content_type": "code", "text": "9 * 7"}, recipient="python"),
            node("5", "4", "tool", {"content_type": "execution_output", "text": "63"}, name="python"),
            node("6", "5", "assistant", text("63."), create_time=1767261609.25),
            node(
                "7",
                "6",
                "user",
                {
                    "content_type": "multimodal_text",
                    "parts": [
                        {"content_type": "image_asset_pointer", "asset_pointer": "file-1", "width": 640, "height": 480},
                        {"content_type": "hologram"},
                        "And this?",
                    ],
                },
            ),
        ]
    ),
}


def test_an_export_of_chatgpt_is_read_along_its_current_branch() -> None:
    found = events_of([CHATGPT], format=chatgpt.FORMAT)
    assert [event.payload.pop("message_id", None) for event in found] == ["id-1b", "id-2", "id-3", None, "id-6", "id-7"]
    assert [(event.turn, event.kind, event.payload) for event in found] == [
        (0, "agent.configured", {"persona": "I bake."}),
        (1, "user.injected", {"text": "How much is 9 x 7?"}),
        (1, "agent.thought", {"text": "Multiply."}),
        (1, "tool.used", {"tool": "python", "arguments": "9 * 7", "result": "63", "ok": True}),
        (1, "agent.spoke", {"text": "63."}),
        (2, "user.injected", {"text": "(image: 640 x 480, file-1)\nAnd this?"}),
    ]
    assert {event.space for event in found} == {"chat/68b1c9a2-1b1c-8005-9a4e-0c53a1d0f3aa"}
    assert [event.at.timestamp() for event in found[:2]] == [1767261600.5, 1767261601.0]


def test_messages_of_other_branches_of_an_export_are_counted() -> None:
    counts = Counter(item.left_out for item in items_of([CHATGPT], format=chatgpt.FORMAT) if item.left_out)
    assert counts == {"message_of_another_branch": 1, "hologram": 1, "empty_message": 1}


def test_a_first_message_that_was_edited_does_not_make_another_conversation_of_an_export() -> None:
    edited = {**CHATGPT, "current_node": "2x"}
    before, after = (events_of([each], format=chatgpt.FORMAT) for each in (CHATGPT, edited))
    assert not {event.id for event in after[1:]} & {event.id for event in before}
    assert not any(item.opens for item in items_of([edited], format=chatgpt.FORMAT))


def test_an_export_of_claude_is_one_persons_space() -> None:
    def message(sender: str, text: str, **fields: Any) -> Message:
        content = [{"type": "text", "text": text}]
        return {"uuid": f"m-{text}", "sender": sender, "text": text, "content": content, **fields}

    attached = {"file_name": "recipe.txt", "file_type": "txt", "extracted_content": "Flour"}
    export = {
        "uuid": "c-1",
        "name": "Bread",
        "account": {"uuid": "a-1"},
        "chat_messages": [
            message("human", "Read it.", created_at="2026-01-01T10:00:00Z", attachments=[attached], files=[]),
            message("assistant", "Flour."),
        ],
    }
    found = events_of([export, {**export, "uuid": "c-2"}], format=registry.find_format("claude"))
    assert {(event.space, event.session) for event in found} == {("account/a-1", "c-1"), ("account/a-1", "c-2")}
    assert [(event.agent, event.payload) for event in found[:2]] == [
        ("user", {"text": "Read it.\n(document: recipe.txt)\nFlour", "message_id": "m-Read it."}),
        ("assistant", {"text": "Flour.", "message_id": "m-Flour."}),
    ]
    assert found[0].at == datetime(2026, 1, 1, 10, tzinfo=UTC)


# Spaces of conversations.


def test_one_conversation_gets_the_given_space() -> None:
    for document in ([user("hello")], talk(id="c-9"), [talk(id="c-9")]):
        assert spaces(document, space="support") == ["support"]


def test_one_conversation_without_a_space_is_called_by_its_id() -> None:
    assert spaces(talk(id="c-9")) == ["chat/c-9"]
    assert spaces([user("hello")]) == ["chat/4c7e319f60fb5f6b"]


@pytest.mark.parametrize("key", ["id", "conversation_id", "thread_id", "sample_id", "instance_id", "uuid"])
def test_conversations_without_a_person_are_spaces_called_by_their_ids(key: str) -> None:
    assert spaces([talk(**{key: "a"}), talk(**{key: 17})]) == ["chat/a", "chat/17"]


def test_an_id_that_is_no_name_is_replaced_by_its_digest() -> None:
    one, two = spaces([talk(id="no name"), talk(id="x" * 200)])
    assert one != two
    assert spaces([talk(id="other"), talk(id="x" * 200), talk(id="no name")]) == ["chat/other", two, one]


def test_runs_of_a_task_are_called_by_task_and_trial() -> None:
    document = [talk(task_id=task, trial=trial) for task in (0, 1) for trial in (0, 1)]
    assert spaces(document) == ["chat/0-0", "chat/0-1", "chat/1-0", "chat/1-1"]


def test_the_given_space_holds_all_conversations_as_sessions() -> None:
    found = events_of([talk(id="a"), talk(id=17), [user("bye")]], space="support")
    assert [(event.space, event.session) for event in found][:2] == [("support", "a"), ("support", "17")]
    assert len({event.id for event in found}) == len({event.session for event in found}) == 3


@pytest.mark.parametrize(
    "person",
    [
        {"user_id": "alice"},
        {"user": "alice"},
        {"user": {"id": "alice", "name": "A."}},
        {"metadata": {"user_id": "alice"}},
    ],
)
def test_a_file_that_names_one_person_makes_one_space_with_a_session_per_conversation(person: dict[str, Any]) -> None:
    file = read([talk(id="a", **person), talk(id="b", **person)])
    assert file.layout.space == "user/alice"
    assert "names one person" in file.layout.reason
    assert [(event.space, event.session) for event in map(event_of, file)] == [("user/alice", "a"), ("user/alice", "b")]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"user_id": "alice"}, {"user_id": "bob"}),
        ({"user_id": "alice"}, {}),
        ({"user_id": "1", "user_name": "Alex"}, {"user_id": "2", "user_name": "Alex"}),
        ({"user": "operator", "customer_id": 1}, {"user": "operator", "customer_id": 2}),
        ({"user": "anonymous"}, {"user": "anonymous"}),
        ({"user": "User"}, {"user": "User"}),
        ({"user_id": 0}, {"user_id": 0}),
        ({"user_id": "00000000-0000-0000-0000-000000000000"},) * 2,
        ({"user_id": 17}, {"customer_id": 17}),
    ],
)
def test_conversations_that_may_be_of_different_people_share_no_space(one: dict[str, Any], two: dict[str, Any]) -> None:
    assert spaces([talk(id="a", **one), talk(id="b", **two)]) == ["chat/a", "chat/b"]


def test_the_customer_17_is_not_the_user_17() -> None:
    assert spaces(talk(user_id=17)) == ["user/17"]
    assert spaces(talk(customer_id=17)) == ["customer/17"]


def test_the_names_of_messages_do_not_make_their_conversations_one_persons() -> None:
    document = [{"id": id_, "messages": [user("hello", name="John")]} for id_ in ("a", "b")]
    assert spaces(document) == ["chat/a", "chat/b"]


def test_a_given_space_for_several_people_is_chosen_with_a_warning() -> None:
    file = read([talk(id="a", user_id="alice"), talk(id="b", user_id="bob")], space="team")
    assert file.layout.space == "team"
    assert "names 2 people" in file.layout.reason


@pytest.mark.parametrize(
    ("people", "reason"),
    [
        (({}, {}), "the file names no person"),
        (({"user": "alice"}, {"user": "bob"}), "the file names several people"),
        (({"user": "alice"}, {}), "not all conversations name the same person"),
    ],
)
def test_the_reason_for_spaces_of_their_own_is_said(people: tuple[dict[str, Any], ...], reason: str) -> None:
    file = read([talk(id=n, **person) for n, person in enumerate(people)])
    assert file.layout.reason == (
        f"a space for each of 2 conversations, chat/...: {reason}; --space makes them sessions of one space"
    )


def test_a_grown_conversation_whose_system_text_changed_adds_it_with_the_new_messages() -> None:
    def at(day: str, *messages: Message) -> list[Event]:
        return events_of([{"role": "system", "content": f"Today is {day}."}, user("a"), assistant("b"), *messages])

    before = {event.id for event in at("Monday")}
    new = [event for event in at("Tuesday", user("c")) if event.id not in before]
    assert [event.payload for event in new] == [{"persona": "Today is Tuesday."}, {"text": "c"}]


def test_conversations_of_one_space_come_in_the_order_of_their_times() -> None:
    document = [{"id": day, "messages": [user(day, at=f"2026-03-{day}T12:00:00Z")]} for day in ("09", "01", "05")]
    assert [event.text for event in events_of(document, space="s")] == ["01", "05", "09"]
    assert [event.text for event in events_of(document)] == ["09", "01", "05"]


# What identifies a conversation.


def test_without_an_id_a_conversation_is_identified_by_its_first_user_message_and_its_time() -> None:
    one, two = [user("hello", at=100)], [user("hello", at=200)]
    assert spaces([one, two]) == spaces([two, one])[::-1]
    assert len(set(spaces([one, two]))) == 2
    assert spaces([{"role": "system", "content": "Today is Monday."}, *one]) == spaces(one)


def test_a_time_in_another_zone_identifies_the_same_conversation() -> None:
    assert spaces([user("hello", at="2026-03-01T12:00:00Z")]) == spaces([user("hello", at="2026-03-01T13:00:00+01:00")])


def test_a_conversation_inserted_at_the_beginning_changes_no_other() -> None:
    conversations = [[user(f"question {n}"), assistant("yes")] for n in range(3)]
    assert events_of([[user("new")], *conversations])[1:] == events_of(conversations)


def test_the_time_at_which_a_conversation_began_tells_it_from_others_and_dates_it() -> None:
    days = [talk(created_at=f"2026-03-0{day}T12:00:00Z") for day in (1, 2)]
    assert len(set(spaces(days))) == 2
    assert [event.at.day for event in events_of(days)] == [1, 2]


def test_two_that_begin_alike_without_ids_are_refused_and_the_others_are_read() -> None:
    items = items_of([talk(), [user("other")], talk(more=1)])
    assert [item.number for item in items if item.error] == [1, 3]
    assert str(error_of(items[0])) == (
        'conversation 1: begins like conversation 3 and has no id; give each an "id" of its own'
    )


def test_two_with_one_id_are_refused_unless_one_is_the_other_grown() -> None:
    grown = {"id": "a", "messages": [user("hello"), assistant("hi")]}
    assert [event.text for event in events_of([talk(id="a"), grown])] == ["hello", "hello", "hi"]
    assert len({event.id for event in events_of([talk(id="a"), grown])}) == 2
    refused = items_of([talk(id="a"), grown, {"id": "a", "messages": [user("hello"), assistant("no")]}])
    assert {str(error_of(item)).partition(": ")[2] for item in refused} == {
        "has the id 'a' of conversation 2 but other messages; give each an id of its own",
        "has the id 'a' of conversation 1 but other messages; give each an id of its own",
    }


def test_an_invalid_space_is_refused_once() -> None:
    with pytest.raises(InvalidArgument, match="space: ' my chats' is not a name"):
        items_of([talk(), talk()], space=" my chats")


# Times.


def test_missing_times_count_up_from_the_start_in_each_conversation() -> None:
    both = events_of([talk(id="a", reward=1), talk(id="b")], start=START)
    assert [event.at for event in both] == [START, START + timedelta(seconds=1), START]
    assert events_of(talk())[0].at == DEFAULT_START


@pytest.mark.parametrize(
    "own",
    [
        "2024-05-15T15:00:00-05:00",
        "2024-05-15T20:00:00Z",
        "2024-05-15T20:00:00",
        "1715803200.000100",
        1715803200,
        1715803200.0,
        1715803200000,
        "1715803200000000000",
    ],
)
@pytest.mark.parametrize("key", ["timestamp", "created_at", "at"])
def test_a_messages_own_time_is_used(key: str, own: object) -> None:
    assert events_of([user("hello", **{key: own})])[0].at.replace(microsecond=0) == datetime(
        2024, 5, 15, 20, tzinfo=UTC
    )


@pytest.mark.parametrize("own", ["2024", "yesterday", None, True, 1e300, -(10**400), "0001-01-01T00:00:00+14:00"])
def test_a_time_without_a_meaning_counts_as_missing(own: object) -> None:
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


@pytest.mark.parametrize("own", [{}, {"id": "m"}])
def test_equal_messages_of_a_conversation_have_different_ids(own: Message) -> None:
    found = events_of([user("ok", **own), assistant("ok", **own), user("ok", **own), user("ok", **own)])
    assert len({event.id for event in found}) == 4


def test_messages_with_ids_of_their_own_keep_them_wherever_they_are() -> None:
    first, other = user("first", id="m1"), assistant("ok", id="m2")
    without, between = events_of([first, other]), events_of([first, assistant("hm", id="m3"), other])
    assert [event.id for event in without] == [between[0].id, between[2].id]
    assert without[1].payload == {"text": "ok", "message_id": "m2"}


def test_a_message_that_was_generated_anew_is_an_event_of_its_own() -> None:
    before = events_of({"id": GENERATED, "messages": [user("a"), assistant("b"), user("c")]})
    after = events_of({"id": GENERATED, "messages": [user("a"), assistant("b, again"), user("c")]})
    assert [one.id == two.id for one, two in zip(before, after, strict=True)] == [True, False, True]


def test_a_result_that_came_later_is_an_event_beside_the_open_call() -> None:
    asked = [user("a"), assistant(None, call("f", id="x"))]
    open_call, answered = events_of(asked)[1], events_of([*asked, result("r", tool_call_id="x")])[1]
    assert open_call.id != answered.id


def test_another_conversation_under_a_name_has_the_same_ids_so_that_it_is_a_conflict() -> None:
    system = {"role": "system", "content": "s"}
    for id_ in ({"id": "1"}, {}):
        one = items_of({**id_, "messages": [system, user("a"), assistant("b"), user("c", name="C")]})
        two = items_of({**id_, "messages": [system, user("a"), assistant("other"), user("d", name="D")]})
        assert [event_of(item).id for item in one] == [event_of(item).id for item in two]
        assert [item.opens for item in one] == [True, True, True, False]
        assert all(item.in_sequence for item in one)


def test_a_generated_id_needs_no_fixed_beginning() -> None:
    items = items_of(talk(id=GENERATED))
    assert not any(item.opens or item.in_sequence for item in items)


def test_all_events_of_a_conversation_are_one_session() -> None:
    assert {event.session for event in events_of([user("a"), assistant("b")])} == {"1"}


# Shapes of files


def test_a_list_one_object_and_jsonl_give_the_same_events() -> None:
    one, two = talk(id="a"), talk(id="b")
    lines = "\n".join(map(json.dumps, (one, two)))
    assert [event_of(item) for item in read_text(lines.encode())] == events_of([one, two])
    assert [event_of(item) for item in read_text(b"\xef\xbb\xbf" + lines.encode() + b"\n\n")] == events_of([one, two])
    assert events_of(one) == events_of([one])


def test_conversations_may_be_bare_lists_and_messages_may_be_lines() -> None:
    messages = [user("a"), assistant("b")]
    assert len(set(spaces([messages, [user("c"), *messages]]))) == 2
    lines = "\n".join(map(json.dumps, messages))
    assert [event_of(item) for item in read_text(lines.encode())] == events_of(messages)


def test_messages_may_be_under_another_key() -> None:
    assert len(events_of({"traj": [user("a")]}, messages_key="traj")) == 1


def test_an_empty_list_has_no_events() -> None:
    assert items_of([]) == []
    assert items_of({"messages": []}) == []


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (b"", "not JSON: "),
        (b"hello\nworld\n", "recallog ingest recognises the format"),
        (b'[\n{"messages": []},\n{"messages": []},\n]', "not JSON: "),
        (b"17", "expected conversations"),
        (b'[{"sample_id": "a", "conversation": {}}]', "try --format locomo"),
        (b'{"space": "s", "agent": "a", "kind": "x.y"}', "try --format jsonl"),
        (b"[" * 100_000, "not JSON: "),
    ],
)
def test_a_file_of_another_format_is_refused_with_the_format_to_try(text: bytes, advice: str) -> None:
    with pytest.raises(InvalidEvent) as refused:
        (read_text(text))
    assert "expected conversations" in str(refused.value)
    assert advice in str(refused.value)


# Errors


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"role": "alien", "content": "x"}, "role: 'alien' is not one of system, developer, user"),
        ({"content": "x"}, "role: None is not one of"),
        (user(17), "content: neither a string, null nor a list of parts"),
        (user([{"words": "x"}]), "content.0: not a part with a type"),
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
    items = items_of([talk(), {"messages": "none"}, 17, talk(id="d")])
    assert [item.number for item in items] == [1, 2, 3, 4]
    assert str(error_of(items[1])) == 'conversation 2: neither an object with a list of "messages" nor a list'
    assert error_of(items[2]) is not None
    assert event_of(items[3]).space == "chat/d"


def test_a_line_that_is_not_json_is_an_error_among_lines_that_are() -> None:
    items = read_text(b"\n".join([json.dumps(talk()).encode(), b"{", json.dumps(talk(id="c")).encode()]))
    assert str(error_of(items[1])).startswith("conversation 2: not JSON: ")
    assert event_of(items[2]).space == "chat/c"


def test_a_first_message_that_is_not_json_is_an_error_among_messages_that_are() -> None:
    # It once ended the ingest with a TypeError: the name of the conversation followed from that line.
    messages = [user("Two loaves."), assistant("Here.")]
    for first in (b"{", b'{"role": "assistant", "content": "cut off'):
        items = read_text(b"\n".join([first, *(json.dumps(each).encode() for each in messages)]))
        assert str(error_of(items[0])).startswith("conversation 1: message 1: not JSON")
        assert [event_of(item).text for item in items[1:]] == ["Two loaves.", "Here."]
    only_broken = read_text(b'{"role": "assistant", "content": "Here."}\n{')
    assert [item.left_out for item in only_broken] == [None, "unfinished_line"]


# Texts over the limit of an event.


@pytest.mark.parametrize("text", ["x", "ü", "🍞", '"', "a\u0301"])
def test_a_message_over_the_limit_is_cut_between_characters_with_a_note(text: str) -> None:
    whole = text * limits.EVENT_BYTES_MAX
    item, after = items_of([user(whole), assistant("next")])
    shown, _, note = event_of(item).text.rpartition("\n(cut: ")
    assert whole.startswith(shown)
    missing = len(whole) - len(shown)
    assert note == f"{missing:,} of {len(whole):,} characters are missing)"
    assert item.cut == f"conversation 1: message 1: cut, text: {missing:,} of {len(whole):,} characters are missing"
    assert limits.EVENT_BYTES_MAX - 40 < len(codec.encode(event_of(item))) <= limits.EVENT_BYTES_MAX
    assert event_of(after).text == "next"


async def test_a_message_over_the_limit_fits_whatever_its_source_class_and_is_known_again() -> None:
    # It once ended the ingest, because the class was stated after the text had been cut.
    async with Memory.in_memory() as memory:
        for trust, known in ((None, 0), *((each, 2) for each in CLASSES)):
            items = items_of([user("x" * limits.EVENT_BYTES_MAX), assistant("next")])
            done = await ingest(memory, items, unit="conversation", batch=10, trust=trust)
            assert (done.added, done.known, len(done.cut), done.problems) == (2 - known, known, 1, ())


@pytest.mark.parametrize("over", [0, 16])
async def test_a_message_that_its_source_class_makes_too_large_is_cut(over: int) -> None:
    (short,) = events_of([user("x")])
    text = "x" * (limits.EVENT_BYTES_MAX - len(codec.encode(short)) + 1 - over)
    async with Memory.in_memory() as memory:
        items = items_of([user(text), assistant("next")])
        done = await ingest(memory, items, unit="conversation", batch=10, trust="import", keep_going=True)
        assert (done.added, done.problems) == (2, ())
        (cut,) = done.cut
        assert cut.message.startswith("conversation 1: cut, text: ")
        assert cut.message.endswith(f" of {len(text):,} characters are missing")


def test_a_message_at_the_limit_is_not_cut() -> None:
    (short,) = events_of([user("x")])
    fits = "x" * (limits.EVENT_BYTES_MAX - len(codec.encode(short)) + 1)
    assert [(item.cut, event_of(item).text) for item in items_of([user(fits)])] == [(None, fits)]


def test_a_tool_call_over_the_limit_is_cut_in_its_longest_texts() -> None:
    messages = [
        assistant(None, call("read", {"paths": ["p" * 300_000]}, id="x")),
        result("r" * 900_000, tool_call_id="x"),
        assistant(None, call("write", json.dumps({"text": "t" * 300_000}), id="y")),
    ]
    items = items_of(messages)
    both, arguments = (event_of(item).payload for item in items)
    assert both["tool"] == "read"
    assert both["arguments"].startswith('{"paths": ["ppp')
    assert both["result"].endswith(" of 900,000 characters are missing)")
    assert arguments["arguments"].startswith('{"text": "ttt')
    assert [item.cut is not None for item in items] == [True, True]


def test_a_cut_message_keeps_its_id_when_it_is_read_again() -> None:
    long = [user("x" * 300_000), assistant("y")]
    assert events_of(long) == events_of([*long, user("z")])[:2]


# Errors of a reward.


def test_a_reward_that_is_no_finite_number_is_an_error() -> None:
    assert "conversation 1: reward: " in str(error_of(items_of(talk(reward=float("nan")))[-1]))


# Real runs of an agent.


@pytest.fixture(scope="module")
def runs() -> list[Event]:
    return [event_of(item) for item in read_text(airline(), messages_key="traj")]


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
    assert [item.event for item in read_text(airline(), messages_key="traj")] == runs
    assert [codec.decode(codec.encode(event)) for event in runs] == runs
