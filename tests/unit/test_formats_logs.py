"""Logs of the APIs of OpenAI and Anthropic: requests, responses, batches, and which of them are one conversation."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog_formats import anthropic, openai
from recallog_schemas import Event
from recallog_service.formats import Format, Item
from support import formats

Record = dict[str, Any]

CREATED = 1772366400
"""2026-03-01T12:00:00Z."""


def user(words: object) -> Record:
    return {"role": "user", "content": words}


def assistant(words: object, **fields: Any) -> Record:
    return {"role": "assistant", "content": words, **fields}


def completion(n: int, message: Record, *others: Record, **fields: Any) -> Record:
    choices = [
        {"index": i, "message": each, "finish_reason": "stop", "logprobs": None}
        for i, each in enumerate((message, *others))
    ]
    known = {"id": f"chatcmpl-{n:024}", "object": "chat.completion", "created": CREATED + n, "model": "m"}
    return known | {"choices": choices, "usage": {"total_tokens": 7}} | fields


def response(n: int, *output: Record, **fields: Any) -> Record:
    known = {
        "id": f"resp_{n:032}",
        "object": "response",
        "created_at": CREATED + n,
        "status": "completed",
        "model": "m",
    }
    return known | {"output": list(output), "previous_response_id": None} | fields


def said(words: str) -> Record:
    content = [{"type": "output_text", "text": words, "annotations": []}]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}


def message(n: int, *blocks: Record) -> Record:
    known = {"id": f"msg_{n:024}", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    return known | {"content": list(blocks), "usage": {"output_tokens": 3}}


def text(words: str) -> Record:
    return {"type": "text", "text": words}


def pair(request: Record, answer: Record | None, **fields: Any) -> Record:
    return {"request": request, "response": answer, **fields}


def items(format: Format, *records: object) -> list[Item]:  # noqa: A002
    return formats.items(format, "".join(json.dumps(each) + "\n" for each in records).encode())


def events(format: Format, *records: object) -> list[Event]:  # noqa: A002
    return formats.events(items(format, *records))


def talk(*records: object, format: Format = openai.FORMAT) -> list[tuple[str, str, str]]:  # noqa: A002
    return [(event.space, event.kind, event.text) for event in events(format, *records)]


def left_out(*records: object, format: Format = openai.FORMAT) -> dict[str, int]:  # noqa: A002
    return Counter(item.left_out for item in items(format, *records) if item.left_out is not None)


ASKED = [{"role": "system", "content": "Be kind."}, user("Who owes the miller?")]
ONE = f"chat/chatcmpl-{1:024}"


# Chat completions.


def test_a_request_and_its_response_are_a_conversation_with_the_time_of_the_response() -> None:
    found = events(openai.FORMAT, pair({"model": "m", "messages": ASKED}, completion(1, assistant("The baker."))))
    assert [(event.space, event.session, event.agent, event.kind, event.text) for event in found] == [
        (ONE, "1", "assistant", "agent.configured", found[0].text),
        (ONE, "1", "user", "user.injected", "Who owes the miller?"),
        (ONE, "1", "assistant", "agent.spoke", "The baker."),
    ]
    assert {event.at.timestamp() for event in found} == {CREATED + 1}


def test_requests_that_repeat_what_was_said_continue_its_conversation() -> None:
    first = pair({"messages": ASKED}, completion(1, assistant("The baker.", refusal=None, annotations=[])))
    second_asked = [*ASKED, assistant("The baker."), user("How much?")]
    second = pair({"messages": second_asked}, completion(2, assistant("Nine sacks.")))
    other = pair({"messages": [user("Hello.")]}, completion(3, assistant("Hi.")))
    found = talk(first, other, second)
    assert [(space, words) for space, kind, words in found if kind != "agent.configured"] == [
        (ONE, "Who owes the miller?"), (ONE, "The baker."), (ONE, "How much?"), (ONE, "Nine sacks."),
        (f"chat/chatcmpl-{3:024}", "Hello."), (f"chat/chatcmpl-{3:024}", "Hi."),
    ]  # fmt: skip
    assert sum(kind == "agent.configured" for _, kind, _ in found) == 1
    before = events(openai.FORMAT, first)
    assert [event.id for event in events(openai.FORMAT, first, second)][: len(before)] == [each.id for each in before]


def test_calls_and_results_of_a_log_are_paired_across_its_requests() -> None:
    calls = [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": "ledger"}'}}]
    first = pair({"messages": ASKED}, completion(1, assistant(None, tool_calls=calls)))
    result = {"role": "tool", "tool_call_id": "call_1", "content": "the baker"}
    asked = [*ASKED, assistant(None, tool_calls=calls), result]
    second = pair({"messages": asked}, completion(2, assistant("The baker.")))
    assert [words for _, kind, words in talk(first, second) if kind != "agent.configured"] == [
        "Who owes the miller?", "look(at=ledger): the baker", "The baker.",
    ]  # fmt: skip


def test_the_same_question_asked_twice_is_two_conversations() -> None:
    records = [pair({"messages": ASKED}, completion(n, assistant(f"Answer {n}."))) for n in (1, 2)]
    assert {space for space, _, _ in talk(*records)} == {ONE, f"chat/chatcmpl-{2:024}"}


def test_other_choices_errors_and_chunks_are_counted() -> None:
    failed = pair({"messages": ASKED}, {"error": {"message": "overloaded"}})
    chunk = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {"content": "T"}}],
    }
    many = pair({"messages": [user("Hi.")]}, completion(2, assistant("Hello."), assistant("Hey.")))
    assert left_out(failed, chunk, many) == {"error_response": 1, "chat.completion.chunk": 1, "other_choice": 1}
    assert [words for _, kind, words in talk(failed, chunk, many) if kind == "agent.spoke"] == ["Hello."]


@pytest.mark.parametrize(
    "record",
    [
        {"messages": [user("Hi.")], "model": "m", "response": completion(1, assistant("Hello."))},
        {
            "request": json.dumps({"messages": [user("Hi.")]}),
            "response": json.dumps(completion(1, assistant("Hello."))),
        },
        {"request": {"body": {"messages": [user("Hi.")]}}, "response": {"body": completion(1, assistant("Hello."))}},
        completion(1, assistant("Hello.")) | {"messages": [user("Hi.")]},
    ],
)
def test_requests_and_responses_may_be_wrapped(record: Record) -> None:
    assert talk(record) == [(ONE, "user.injected", "Hi."), (ONE, "agent.spoke", "Hello.")]


def test_stored_completions_are_the_data_of_a_list() -> None:
    stored = {"object": "list", "data": [completion(1, assistant("Hello."))], "has_more": False}
    assert talk(stored) == [(ONE, "agent.spoke", "Hello.")]


def test_requests_and_answers_of_a_batch_are_conversations_of_one_name() -> None:
    body = {"model": "m", "messages": [user("Hi.")]}
    asked = {"custom_id": "request-1", "method": "POST", "url": "/v1/chat/completions", "body": body}
    body = completion(1, assistant("Hello."))
    answered = {"id": "batch_req_1", "custom_id": "request-1", "error": None,
                "response": {"status_code": 200, "request_id": "r", "body": body}}  # fmt: skip
    failed = {"id": "batch_req_2", "custom_id": "request-2", "response": None, "error": {"code": "x"}}
    assert talk(asked) == [("chat/request-1", "user.injected", "Hi.")]
    assert talk(answered) == [("chat/request-1", "agent.spoke", "Hello.")]
    assert len({event.id for event in (*events(openai.FORMAT, asked), *events(openai.FORMAT, answered))}) == 2
    assert left_out(answered, failed) == {"error_response": 1}


def test_of_a_preference_the_preferred_answer_is_read() -> None:
    record = {
        "input": {"messages": [user("Hi.")], "tools": []},
        "preferred_output": [assistant("Hello.")],
        "non_preferred_output": [assistant("What?")],
    }
    assert [words for _, _, words in talk(record)] == ["Hi.", "Hello."]
    assert left_out(record) == {"non_preferred_output": 1}


def test_records_that_name_their_conversation_or_user_belong_together() -> None:
    def record(n: int, words: str) -> Record:
        request = {"messages": [user(words)], "user": "alice"}
        return pair(request, completion(n, assistant(f"Answer {n}.")), session_id="s-1")

    found = events(openai.FORMAT, record(1, "One?"), record(2, "Two?"))
    assert [(event.space, event.session, event.turn) for event in found] == [
        ("user/alice", "s-1", n) for n in (1, 1, 2, 2)
    ]


# Responses.


def test_responses_are_read_with_reasoning_calls_and_tools_of_the_server() -> None:
    output = [
        {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Look at it."}]},
        {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "oven"}},
        {"id": "mcp_1", "type": "mcp_call", "name": "heat", "arguments": '{"to": 200}', "output": "hot", "error": None},
        {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
        {"id": "mcpl_1", "type": "mcp_list_tools", "tools": []},
    ]
    follow_up = {"type": "function_call_output", "call_id": "call_1", "output": "cold"}
    first = pair({"input": "Is it hot?", "instructions": "Be kind."}, response(1, *output))
    second = pair({"input": [follow_up], "previous_response_id": f"resp_{1:032}"}, response(2, said("No.")))
    found = talk(first, second)
    assert {space for space, _, _ in found} == {f"chat/resp_{1:032}"}
    assert [(kind, words) for _, kind, words in found[1:]] == [
        ("user.injected", "Is it hot?"),
        ("agent.thought", "Look at it."),
        ("tool.used", "web_search(type=search, query=oven): completed"),
        ("tool.used", "heat(to=200): hot"),
        ("tool.used", "look(): cold"),
        ("agent.spoke", "No."),
    ]
    assert left_out(first, second) == {"mcp_list_tools": 1}


def test_a_response_whose_request_repeats_the_items_before_it_continues_them() -> None:
    first = pair({"input": "Is it hot?"}, response(1, said("No.")))
    again = [user("Is it hot?"), said("No."), user("Now?")]
    second = pair({"input": again}, response(2, said("Yes.")))
    assert [words for _, _, words in talk(first, second)] == ["Is it hot?", "No.", "Now?", "Yes."]


# Anthropic.


def test_a_system_text_that_changes_is_read_once_more() -> None:
    def record(n: int, system: str, *messages: Record) -> Record:
        request = {"system": system, "messages": list(messages)}
        return pair(request, message(n, text(f"Answer {n}.")))

    first = record(1, "Be kind.", user("Hot?"))
    second = record(2, "Be brief.", user("Hot?"), assistant([text("Answer 1.")]), user("Now?"))
    third = record(
        3, "Be brief.", user("Hot?"), assistant("Answer 1."), user("Now?"), assistant("Answer 2."), user("Now?")
    )
    found = events(anthropic.FORMAT, first, second, third)
    assert [event.payload.get("persona") or event.text for event in found] == [
        "Be kind.", "Hot?", "Answer 1.", "Be brief.", "Now?", "Answer 2.", "Now?", "Answer 3.",
    ]  # fmt: skip
    assert len({event.space for event in found}) == 1


@given(st.lists(st.sampled_from(["Hot?", "Now?", "Yes."]), min_size=1, max_size=6), st.integers(1, 6), st.booleans())
def test_a_grown_log_adds_its_tail(questions: list[str], length: int, is_named: bool) -> None:
    said: list[Record] = []
    records = []
    for n, question in enumerate(questions):
        said.append(user(question))
        answer = assistant(f"Answer to {question}")
        records.append(
            pair({"messages": list(said)}, completion(n, answer), **({"session_id": "s"} if is_named else {}))
        )
        said.append(answer)
    found = events(openai.FORMAT, *records)
    assert [event.text for event in found] == [each["content"] for each in said]
    if is_named:  # a later part of the log repeats what was said, under the same name
        later = events(openai.FORMAT, *records[length % len(records) :])
        assert [event.id for event in later] == [event.id for event in found]
    before = events(openai.FORMAT, *records[:length])
    assert [(event.id, event.payload, event.turn) for event in before] == [
        (event.id, event.payload, event.turn) for event in found[: len(before)]
    ]


def test_messages_of_anthropic_continue_each_other() -> None:
    request = {"model": "m", "max_tokens": 9, "system": "Be kind.", "messages": [user("Is it hot?")]}
    use = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "oven"}}
    thought = {"type": "thinking", "thinking": "Look at it.", "signature": "x"}
    first = pair(request, message(1, thought, use), timestamp="2026-03-01T12:00:00Z")
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "cold"}
    more = [user("Is it hot?"), assistant([thought, use]), user([result])]
    second = pair({**request, "messages": more}, message(2, text("No.")))
    found = talk(first, second, format=anthropic.FORMAT)
    assert {space for space, _, _ in found} == {f"chat/msg_{1:024}"}
    assert [(kind, words) for _, kind, words in found[1:]] == [
        ("user.injected", "Is it hot?"),
        ("agent.thought", "Look at it."),
        ("tool.used", "look(at=oven): cold"),
        ("agent.spoke", "No."),
    ]


def test_a_batch_of_anthropic_is_read() -> None:
    asked = {"custom_id": "r-1", "params": {"model": "m", "max_tokens": 9, "messages": [user("Hi.")]}}
    answered = {"custom_id": "r-1", "result": {"type": "succeeded", "message": message(1, text("Hello."))}}
    expired = {"custom_id": "r-2", "result": {"type": "expired"}}
    assert talk(asked, format=anthropic.FORMAT) == [("chat/r-1", "user.injected", "Hi.")]
    assert talk(answered, format=anthropic.FORMAT) == [("chat/r-1", "agent.spoke", "Hello.")]
    assert left_out(answered, expired, format=anthropic.FORMAT) == {"expired_request": 1}
