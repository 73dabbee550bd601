"""Messages of LangChain in each of their JSON forms, and states of LangGraph."""

import json
from collections import Counter
from typing import Any

import pytest

from recallog_formats import langchain
from recallog_schemas import Event
from recallog_service.formats import Item
from support import formats

Record = dict[str, Any]

THREAD = "7b1d6c1e-2f44-4b55-9d1e-aa6f2b1f0c33"
CALL = {"name": "look", "args": {"at": "ledger"}, "id": "call_1", "type": "tool_call"}
TALK: list[tuple[str, Record]] = [
    ("system", {"content": "Be kind."}),
    ("human", {"content": "Who owes the miller?", "id": "h-1", "name": None, "example": False}),
    ("ai", {"content": [{"type": "text", "text": "I look."},
                        {"type": "tool_use", "id": "call_1", "name": "look", "input": {"at": "ledger"}}],
            "id": "run-1", "tool_calls": [CALL], "invalid_tool_calls": [], "usage_metadata": None}),
    ("tool", {"content": "the baker", "tool_call_id": "call_1", "name": "look", "status": "success", "id": "t-1"}),
    ("ai", {"content": "The baker.", "id": "run-2", "tool_calls": [], "invalid_tool_calls": []}),
]  # fmt: skip
CLASSES = {"system": "SystemMessage", "human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}


def as_dict(kind: str, fields: Record) -> Record:
    return {"type": kind, "data": {"type": kind, "additional_kwargs": {}, "response_metadata": {}, **fields}}


def as_dump(kind: str, fields: Record) -> Record:
    id_ = ["langchain", "schema", "messages", CLASSES[kind]]
    return {"lc": 1, "type": "constructor", "id": id_, "kwargs": {"type": kind, **fields}}


def as_fields(kind: str, fields: Record) -> Record:
    return {"type": kind, "additional_kwargs": {}, "response_metadata": {}, **fields}


FORMS = [as_dict, as_dump, as_fields]


def items(document: object) -> list[Item]:
    return formats.items(langchain.FORMAT, json.dumps(document).encode())


def events(document: object) -> list[Event]:
    return formats.events(items(document))


def left_out(document: object) -> dict[str, int]:
    return Counter(item.left_out for item in items(document) if item.left_out is not None)


def talk(form: Any = as_dict, length: int = len(TALK)) -> list[Record]:
    return [form(kind, fields) for kind, fields in TALK[:length]]


SHOWN = [
    ("assistant", "agent.configured", "Be kind."),
    ("user", "user.injected", "Who owes the miller?"),
    ("assistant", "agent.spoke", "I look."),
    ("assistant", "tool.used", "look(at=ledger): the baker"),
    ("assistant", "agent.spoke", "The baker."),
]


def shown(document: object) -> list[tuple[str, str, str]]:
    return [(event.agent, event.kind, event.payload.get("persona") or event.text) for event in events(document)]


@pytest.mark.parametrize("form", FORMS)
def test_messages_in_each_form_are_one_conversation_in_which_each_call_is_one_event(form: Any) -> None:
    assert shown(talk(form)) == SHOWN
    assert shown({"messages": talk(form)}) == SHOWN
    assert shown([talk(form)]) == SHOWN


@pytest.mark.parametrize(
    "state",
    [
        {"values": {"messages": talk()}, "next": [], "config": {"configurable": {"thread_id": THREAD}}, "metadata": {},
         "created_at": "2026-03-01T12:00:00+00:00", "parent_config": None},
        {"values": {"messages": talk()}, "checkpoint": {"thread_id": THREAD, "checkpoint_id": "c"}, "metadata": {},
         "created_at": "2026-03-01T12:00:00+00:00"},
        {"thread_id": THREAD, "created_at": "2026-03-01T12:00:00Z", "status": "idle", "values": {"messages": talk()}},
        {"config": {"configurable": {"thread_id": THREAD}}, "created_at": "2026-03-01T12:00:00Z",
         "checkpoint": {"v": 4, "ts": "2026", "id": "c", "channel_values": {"messages": talk(as_dump)}}},
    ],
)  # fmt: skip
def test_a_state_of_a_thread_is_called_by_the_thread_and_begins_at_its_time(state: Record) -> None:
    found = events(state)
    assert shown(state) == SHOWN
    assert {event.space for event in found} == {f"chat/{THREAD}"}
    assert found[0].at.isoformat() == "2026-03-01T12:00:00+00:00"


def test_of_the_states_of_a_thread_the_longest_is_read() -> None:
    states = [{"thread_id": THREAD, "values": {"messages": talk(as_dict, length)}} for length in (5, 3, 1)]
    assert shown(states) == SHOWN
    assert left_out(states) == {"earlier_state_of_the_thread": 2}
    assert [event.id for event in events(states)] == [event.id for event in events(states[:1])]


def test_messages_have_the_times_of_the_first_states_that_have_them() -> None:
    states = [
        {
            "thread_id": THREAD,
            "values": {"messages": talk(as_dict, length)},
            "created_at": f"2026-03-0{length}T12:00:00Z",
        }
        for length in (5, 2)
    ]
    assert [event.at.day for event in events(states)] == [2, 2, 5, 5, 5]


def test_a_state_without_messages_is_counted() -> None:
    states = [{"thread_id": THREAD, "values": {"messages": talk()}}, {"thread_id": THREAD, "values": {}}]
    assert shown(states) == SHOWN
    assert left_out(states) == {"state_without_messages": 1}


def test_two_branches_of_a_thread_are_refused() -> None:
    states = [{"thread_id": THREAD, "values": {"messages": talk()[:1] + talk()[n:]}} for n in (1, 2)]
    assert all("has the id" in str(item.error) for item in items(states))


@pytest.mark.parametrize("length", range(1, len(TALK) + 1))
def test_a_grown_state_adds_its_tail(length: int) -> None:
    before, after = (
        {event.id: event for event in events({"thread_id": THREAD, "values": {"messages": talk(as_dict, each)}})}
        for each in (length, len(TALK))
    )
    for id_, event in before.items():
        assert after.get(id_, event).payload == event.payload
        assert id_ in after or event.payload.get("error") == "no result"


def test_calls_of_older_versions_and_invalid_calls_are_read() -> None:
    old = {"tool_calls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}]}
    first = as_dict("ai", {"content": "", "additional_kwargs": old})
    invalid = {"name": "book", "args": "{not JSON", "id": "d", "error": "x", "type": "invalid_tool_call"}
    second = as_dict("ai", {"content": "", "tool_calls": [], "invalid_tool_calls": [invalid]})
    found = events([as_dict("human", {"content": "Hi."}), first, second])
    assert [(event.payload["tool"], event.payload.get("arguments")) for event in found[1:]] == [
        ("look", {}),
        ("book", "{not JSON"),
    ]


def test_a_failed_tool_and_a_removed_message_are_read_as_such() -> None:
    failed = as_dict("tool", {"content": "cold", "tool_call_id": "call_1", "status": "error"})
    removed = {"type": "remove", "data": {"type": "remove", "content": "", "id": "h-1"}}
    document = [*talk()[:3], failed, removed, as_dict("chat", {"role": "user", "content": "Thanks."})]
    assert [event.payload["ok"] for event in events(document) if event.kind == "tool.used"] == [False]
    assert [event.text for event in events(document)][-1] == "Thanks."
    assert left_out(document) == {"remove": 1}
