"""Chats of any content: what grows or moves in a file keeps its events, and no content breaks the reader."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from recallog_schemas import Event
from recallog_service.formats import chat
from support import formats

Message = dict[str, Any]

few_texts = st.sampled_from(["yes", "no", "hello", ""])
call_ids = st.sampled_from([None, "x", "y"])


def message(role: str, content: st.SearchStrategy[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Message]:
    return st.fixed_dictionaries({"role": st.just(role), "content": content}, optional=fields)


def block(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Message]:
    return st.fixed_dictionaries({"type": st.just(kind), **fields})


tools = st.sampled_from(["look", "book"])
said = block("text", text=few_texts)
blocks_of_assistant = st.lists(
    said | block("thinking", thinking=few_texts) | block("tool_use", id=call_ids, name=tools) | block("hologram"),
    max_size=4,
)
blocks_of_user = st.lists(
    said | block("tool_result", tool_use_id=call_ids, content=few_texts) | block("image"), max_size=3
)
openai_calls = st.lists(
    st.fixed_dictionaries({"id": call_ids, "function": st.fixed_dictionaries({"name": tools})}), max_size=2
)
messages = st.lists(
    message("user", few_texts | blocks_of_user, name=few_texts, id=st.sampled_from(["m", 1]))
    | message("assistant", few_texts | blocks_of_assistant, tool_calls=openai_calls, id=st.sampled_from(["m", 1]))
    | message("tool", few_texts, tool_call_id=call_ids, name=tools)
    | message("system", few_texts),
    max_size=10,
)


def events_of(*conversations: object, **options: Any) -> list[Event]:
    """The events, without their times, which depend on the place of a message."""
    items = formats.items(chat.FORMAT, json.dumps(conversations).encode(), **options)
    return [item.event.model_copy(update={"at": None}) for item in items if item.event is not None]


def is_open_call(event: Event) -> bool:
    return event.kind == "tool.used" and "result" not in event.payload


@given(messages, st.integers(0, 10), st.sampled_from(["short", "generated-0190b1c9-a2f0-7000"]))
def test_a_grown_conversation_has_the_events_of_its_beginning(
    all_messages: list[Message], length: int, own_id: str
) -> None:
    before = events_of({"id": own_id, "messages": all_messages[:length]})
    after = {event.id: event for event in events_of({"id": own_id, "messages": all_messages})}
    assert len(after) == len(events_of({"id": own_id, "messages": all_messages}))
    for event in before:
        assert after.get(event.id, event) == event
        assert event.id in after or is_open_call(event)


@given(
    st.lists(messages.filter(bool), min_size=2, max_size=4),
    st.randoms(use_true_random=False),
    st.sampled_from([None, "s"]),
)
def test_the_order_of_conversations_does_not_change_their_events(
    many: list[Any], random: Any, space: str | None
) -> None:
    shuffled = [{"id": f"c{n}", "messages": each} for n, each in enumerate(many)]
    before = events_of(*shuffled, space=space)
    random.shuffle(shuffled)
    assert sorted(events_of(*shuffled, space=space), key=lambda event: event.id) == sorted(
        before, key=lambda event: event.id
    )
    assert len({(event.space, event.id) for event in before}) == len(before)


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.floats() | st.text(max_size=5) | st.just("\ud800"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "text",
                    "id",
                    "name",
                    "content",
                    "input",
                    "source",
                    "data",
                    "url",
                    "image_url",
                    "summary",
                    "function",
                ]
            ),
            inner | st.sampled_from(["text", "image", "tool_use", "tool_result", "thinking", "file"]),
            max_size=4,
        )
    ),
    max_leaves=8,
)
roles = st.sampled_from(["user", "assistant", "tool", "system"])


@settings(max_examples=200)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"role": roles, "content": anything},
            optional=dict.fromkeys(("tool_calls", "refusal", "audio", "id", "timestamp", "reasoning"), anything),
        ),
        min_size=1,
        max_size=3,
    ),
    anything,
)
def test_every_message_is_an_event_a_count_or_an_error(many: list[Message], user: object) -> None:
    items = formats.items(chat.FORMAT, json.dumps({"messages": many, "user": user}).encode())
    for item in items:
        assert [item.event, item.error, item.left_out].count(None) == 2
