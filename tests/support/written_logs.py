# ruff: noqa: E501, RUF001
"""Files as programs write them, small, each with what was said in it: by whom, what, and when.

The structures are those of the programs; the words are ours. A file with `refused` is of no known format.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Said = tuple[str, str, str | None]
"""The agent, the text of the event, and its time, as "2026-03-01T12:00:01"; None: the file has no time for it."""


@dataclass(frozen=True)
class Written:
    name: str
    format: str
    data: bytes
    said: Sequence[Said] = ()
    left_out: dict[str, int] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    """Other formats that have such a structure, and are tried later."""


@dataclass(frozen=True)
class Refused:
    name: str
    data: bytes
    reason: str = "is not recognised"


def lines(*records: object) -> bytes:
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records).encode()


def whole(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False, indent=1).encode()


def at(n: int) -> str:
    return f"2026-03-01T12:00:{n:02}.000Z"


def when(n: int) -> str:
    return f"2026-03-01T12:00:{n:02}"


BEGIN = 1772366400
"""2026-03-01T12:00:00Z."""
SESSION = "019b64e5-57fa-7463-b644-fba7e456f905"


# Coding agents.


def claude_code(kind: str, n: int, content: object, **fields: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content} | ({"id": "msg_1", "type": "message"} if kind == "assistant" else {})
    return {
        "type": kind, "uuid": f"uuid-{n}", "parentUuid": None, "sessionId": SESSION, "timestamp": at(n),
        "cwd": "/home/alice/bakery", "version": "2.1.12", "isSidechain": False, "message": message, **fields,
    }  # fmt: skip


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def codex(n: int, kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": at(n), "type": kind, "payload": payload}


CODEX_META = codex(0, "session_meta", id=SESSION, session_id=SESSION, timestamp=at(0), cwd="/home/alice/bakery",
                   originator="codex_cli_rs", cli_version="0.147.0", source="cli")  # fmt: skip
CALLED: Said = ("codex", "shell(oven, --status): cold", when(4))


def item(n: int, kind: str, **fields: Any) -> dict[str, Any]:
    return codex(n, "event_msg", type="item_completed", thread_id=SESSION, item={"type": kind, "id": f"i{n}", **fields})


GEMINI = [
    {"id": "m1", "timestamp": at(1), "type": "user", "content": [{"text": "Почему печь холодная?"}]},
    {"id": "m2", "timestamp": at(2), "type": "info", "content": "Update available."},
    {
        "id": "m3", "timestamp": at(3), "type": "gemini", "content": "HEAT is 0.", "model": "gemini-3-pro",
        "thoughts": [{"subject": "Oven", "description": "Look at it.", "timestamp": at(3)}],
        "toolCalls": [{
            "id": "read_file-1", "name": "read_file", "args": {"path": "oven.py"}, "status": "success", "timestamp": at(3),
            "result": [{"functionResponse": {"id": "read_file-1", "name": "read_file", "response": {"output": "HEAT = 0"}}}],
        }],
        "tokens": {"input": 1, "output": 2, "total": 3},
    },
]  # fmt: skip
GEMINI_HEAD = {"sessionId": SESSION, "projectHash": "ab" * 32, "startTime": at(0), "lastUpdated": at(3), "kind": "main"}
GEMINI_SAID: list[Said] = [
    ("user", "Почему печь холодная?", when(1)), ("gemini-cli", "Oven\nLook at it.", when(3)),
    ("gemini-cli", "HEAT is 0.", when(3)), ("gemini-cli", 'read_file(path=oven.py): HEAT = 0', when(3)),
]  # fmt: skip


def qwen(kind: str, n: int, **fields: Any) -> dict[str, Any]:
    return {"uuid": f"u{n}", "parentUuid": None, "sessionId": SESSION, "timestamp": at(n), "type": kind,
            "cwd": "/home/alice/bakery", "version": "0.9", **fields}  # fmt: skip


CODING = [
    Written(
        "claude-code", "claude-code",
        lines(
            {"type": "summary", "summary": "Bread", "leafUuid": "uuid-5"},
            claude_code("user", 1, "为什么烤箱是冷的？"),
            claude_code("assistant", 2, [text("I lo")]),
            claude_code("assistant", 3, [text("I look.")]),
            claude_code("assistant", 4, [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "oven"}}]),
            claude_code("user", 5, [{"type": "tool_result", "tool_use_id": "t1", "content": "cold"}]),
            claude_code("assistant", 6, [text("HEAT is 0.")]),
            claude_code("assistant", 6, [text("HEAT is 0. Turn it on.")]),
        ),
        [("user", "为什么烤箱是冷的？", when(1)), ("claude-code", "I look.", when(3)),
         ("claude-code", "Bash(oven): cold", when(5)), ("claude-code", "HEAT is 0. Turn it on.", when(6))],
        {"summary": 1, "earlier_record_of_a_message": 2},
    ),
    Written(
        "codex-items", "codex",
        lines(
            CODEX_META,
            codex(1, "event_msg", type="user_message", message="Why is it cold?"),
            codex(1, "response_item", type="message", role="user", content=[{"type": "input_text", "text": "Why is it cold?"}]),
            codex(2, "response_item", type="function_call", name="shell", call_id="c1", arguments='{"command": "oven"}'),
            codex(3, "response_item", type="function_call_output", call_id="c1",
                  output=json.dumps({"output": "cold", "metadata": {"exit_code": 0}})),
            codex(4, "response_item", type="message", role="assistant", content=[{"type": "output_text", "text": "HEAT is 0."}]),
        ),
        [("user", "Why is it cold?", when(1)), ("codex", "shell(oven): cold", when(3)), ("codex", "HEAT is 0.", when(4))],
        {"session_meta": 1, "event_msg/user_message": 1},
    ),
    Written(
        "codex-events-alone", "codex",
        lines(
            CODEX_META,
            codex(1, "turn_context", cwd="/home/alice/bakery", model="gpt"),
            codex(2, "event_msg", type="user_message", message="Why is it cold?", images=[]),
            codex(3, "event_msg", type="agent_reasoning", text="Look at it."),
            codex(4, "event_msg", type="exec_command_end", call_id="c1", command=["oven", "--status"],
                  aggregated_output="cold", exit_code=0),
            codex(5, "event_msg", type="agent_message", message="HEAT is 0."),
            codex(5, "event_msg", type="token_count", info=None),
        ),
        [("user", "Why is it cold?", when(2)), ("codex", "Look at it.", when(3)), CALLED, ("codex", "HEAT is 0.", when(5))],
        {"session_meta": 1, "turn_context": 1, "event_msg/token_count": 1},
    ),
    Written(
        "codex-completed-items", "codex",
        lines(
            CODEX_META,
            codex(1, "response_item", type="message", role="user", content=[{"type": "input_text", "text": "# AGENTS.md instructions for x"}]),
            item(2, "UserMessage", content=[text("Why is it cold?")]),
            codex(2, "event_msg", type="user_message", message="Why is it cold?"),
            item(3, "Reasoning", summary_text=["Look at it."], raw_content=[]),
            item(4, "CommandExecution", command=["oven", "--status"], aggregated_output="cold", exit_code=0, status="completed"),
            item(5, "AgentMessage", content=[{"type": "Text", "text": "HEAT is 0."}]),
        ),
        [("user", "Why is it cold?", when(2)), ("codex", "Look at it.", when(3)), CALLED, ("codex", "HEAT is 0.", when(5))],
        {"session_meta": 1, "instructions": 1, "event_msg/user_message": 1},
    ),
    Written("gemini-cli-json", "gemini-cli", whole({**GEMINI_HEAD, "messages": GEMINI}), GEMINI_SAID, {"info": 1}),
    Written(
        "gemini-cli-jsonl", "gemini-cli",
        lines(GEMINI_HEAD, *GEMINI[:2], {**GEMINI[2], "content": "HEAT", "toolCalls": []}, {"$set": {"lastUpdated": at(3)}}, GEMINI[2]),
        GEMINI_SAID,
        {"info": 1, "other_record": 2, "earlier_record_of_a_message": 1},
    ),
    Written(
        "cursor", "cursor",
        lines(
            {"role": "user", "message": {"content": [text("<attached_files>oven.py</attached_files>\n<user_query>\n왜 오븐이 차가워?\n</user_query>")]}},
            {"role": "assistant", "message": {"content": [text("I look."), {"type": "tool_use", "name": "Read", "input": {"path": "oven.py"}}]}},
        ),
        [("user", "왜 오븐이 차가워?", None), ("cursor", "I look.", None), ("cursor", "Read(path=oven.py): failed: no result", None)],
    ),
    Written(
        "cursor-stream", "cursor",
        lines(
            {"type": "system", "subtype": "init", "session_id": SESSION, "cwd": "/home/alice/bakery", "model": "m"},
            {"type": "user", "message": {"role": "user", "content": [text("Why is it cold?")]}, "session_id": SESSION},
            {"type": "tool_call", "subtype": "started", "call_id": "c1", "session_id": SESSION,
             "tool_call": {"readToolCall": {"args": {"path": "oven.py"}}}},
            {"type": "tool_call", "subtype": "completed", "call_id": "c1", "session_id": SESSION,
             "tool_call": {"readToolCall": {"args": {"path": "oven.py"}, "result": {"success": {"content": "HEAT = 0"}}}}},
            {"type": "assistant", "message": {"role": "assistant", "content": [text("HEAT is 0.")]}, "session_id": SESSION},
            {"type": "result", "subtype": "success", "session_id": SESSION, "result": "HEAT is 0."},
        ),
        [("user", "Why is it cold?", None), ("cursor", 'readToolCall(path=oven.py): {"content": "HEAT = 0"}', None),
         ("cursor", "HEAT is 0.", None)],
        {"system": 1, "result": 1},
    ),
    Written(
        "qwen-code", "qwen-code",
        lines(
            qwen("user", 1, message={"role": "user", "parts": [{"text": "烤箱？"}]}),
            qwen("assistant", 2, message={"role": "model", "parts": [
                {"text": "Look at it.", "thought": True}, {"text": "I look."},
                {"functionCall": {"id": "q1", "name": "read_file", "args": {"path": "oven.py"}}}]}),
            qwen("tool_result", 3, message={"role": "user", "parts": [
                {"functionResponse": {"id": "q1", "name": "read_file", "response": {"output": "HEAT = 0"}}}]}),
            qwen("system", 4, subtype="ui_telemetry", systemPayload={"uiEvent": {}}),
        ),
        [("user", "烤箱？", when(1)), ("qwen-code", "Look at it.", when(2)), ("qwen-code", "I look.", when(2)),
         ("qwen-code", 'read_file(path=oven.py): HEAT = 0', when(3))],
        {"ui_telemetry": 1},
    ),
    Written(
        "droid", "droid",
        lines(
            {"type": "session_start", "id": SESSION, "title": "Bread", "owner": "alice", "version": 2, "cwd": "/home/alice/bakery"},
            {"type": "message", "id": "d1", "timestamp": at(1), "message": {"role": "user", "content": [text("Why is it cold?")]}},
            {"type": "message", "id": "d2", "timestamp": at(2), "parentId": "d1", "message": {"role": "assistant", "content": [
                text("I look."), {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "oven.py"}}]}},
            {"type": "message", "id": "d3", "timestamp": at(3), "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "HEAT = 0"}]}},
            {"type": "todo_state", "id": "d4", "timestamp": at(3), "todos": {}},
        ),
        [("user", "Why is it cold?", when(1)), ("droid", "I look.", when(2)), ("droid", "Read(path=oven.py): HEAT = 0", when(3))],
        {"session_start": 1, "todo_state": 1},
    ),
    Written(
        "grok", "grok",
        lines(
            {"type": "system", "content": "You are Grok."},
            {"type": "user", "content": [text("<project_instructions>")], "synthetic_reason": "project_instructions"},
            {"type": "user", "content": [text("Why is it cold?")], "prompt_index": 0},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Look at it."}]},
            {"type": "assistant", "content": "I look.", "tool_calls": [{"id": "g1", "name": "read_file", "arguments": '{"path": "oven.py"}'}]},
            {"type": "tool_result", "tool_call_id": "g1", "content": "HEAT = 0"},
        ),
        [("grok", "You are Grok.", None), ("user", "Why is it cold?", None), ("grok", "Look at it.", None),
         ("grok", "I look.", None), ("grok", "read_file(path=oven.py): HEAT = 0", None)],
        {"user": 1},
        also=("responses",),
    ),
    Written(
        "kimi", "kimi",
        lines(
            {"role": "_system_prompt", "content": "You are Kimi."},
            {"role": "_checkpoint", "id": 0},
            {"role": "user", "content": "烤箱？"},
            {"role": "assistant", "content": [{"type": "think", "think": "Look at it."}, text("I look.")],
             "tool_calls": [{"type": "function", "id": "k1", "function": {"name": "ReadFile", "arguments": '{"path": "oven.py"}'}}]},
            {"role": "tool", "content": [text("HEAT = 0")], "tool_call_id": "k1"},
            {"role": "_usage", "token_count": 150},
        ),
        [("kimi", "You are Kimi.", None), ("user", "烤箱？", None), ("kimi", "Look at it.", None), ("kimi", "I look.", None),
         ("kimi", "ReadFile(path=oven.py): HEAT = 0", None)],
        {"_checkpoint": 1, "_usage": 1},
        also=("chat",),
    ),
    Written(
        "opencode", "opencode",
        whole({
            "info": {"id": "ses_1", "directory": "/home/alice/bakery", "title": "Bread", "version": "1.0", "time": {"created": BEGIN * 1000}},
            "messages": [
                {"info": {"id": "msg_1", "sessionID": "ses_1", "role": "user", "time": {"created": (BEGIN + 1) * 1000}},
                 "parts": [{"id": "prt_1", "type": "text", "text": "Why is it cold?"}]},
                {"info": {"id": "msg_2", "sessionID": "ses_1", "role": "assistant", "time": {"created": (BEGIN + 2) * 1000}},
                 "parts": [
                     {"id": "prt_2", "type": "step-start"}, {"id": "prt_3", "type": "reasoning", "text": "Look at it."},
                     {"id": "prt_4", "type": "tool", "callID": "o1", "tool": "read",
                      "state": {"status": "completed", "input": {"path": "oven.py"}, "output": "HEAT = 0"}},
                     {"id": "prt_5", "type": "text", "text": "HEAT is 0."},
                 ]},
            ],
        }),
        [("user", "Why is it cold?", when(1)), ("opencode", "Look at it.", when(2)),
         ("opencode", "read(path=oven.py): HEAT = 0", when(2)), ("opencode", "HEAT is 0.", when(2))],
        {"step-start": 1},
    ),
    Written(
        "aider", "aider",
        b"# aider chat started at 2026-03-01 12:00:00\n\n> Aider v0.86.0\n> Git repo: .git\n\n#### why is it cold?\n"
        b"#### look at oven.py\n\nHEAT is 0.\n\n> Tokens: 2k sent\n\n# aider chat started at 2026-03-01 13:00:00\n\n> Bye\n",
        [("user", "why is it cold?\nlook at oven.py", when(0)), ("aider", "HEAT is 0.", when(1))],
        {"output": 3},
    ),
]  # fmt: skip


# Agents and their frameworks.

RUN = {"id": "run-1", "trace_id": "0b6e3a52-0000-4000-8000-000000000001", "name": "ChatOpenAI", "session_id": "project"}


def lc(kind: str, words: object, **more: Any) -> dict[str, Any]:
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", kind],
        "kwargs": {"content": words, **more},
    }


def attributes(**values: Any) -> list[dict[str, Any]]:
    return [{"key": key.replace("__", "."), "value": {"stringValue": value}} for key, value in values.items()]


def span(n: int, name: str, *own: dict[str, Any], **more: Any) -> dict[str, Any]:
    nanos = (BEGIN + n) * 10**9
    return {"traceId": "ab" * 16, "spanId": f"{n:016}", "name": name, "startTimeUnixNano": str(nanos),
            "endTimeUnixNano": str(nanos + 10**9), "attributes": list(own), **more}  # fmt: skip


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    return {
        "resourceSpans": [
            {"resource": {"attributes": []}, "scopeSpans": [{"scope": {"name": "x"}, "spans": list(spans)}]}
        ]
    }


def said_in_parts(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


OTEL_USER = said_in_parts("user", {"type": "text", "content": "Why is it cold?"})
OTEL_CALL = said_in_parts(
    "assistant", {"type": "tool_call", "id": "c1", "name": "read", "arguments": {"path": "oven.py"}}
)
OTEL_RESULT = said_in_parts("tool", {"type": "tool_call_response", "id": "c1", "response": "HEAT = 0"})
OTEL_ANSWER = said_in_parts("assistant", {"type": "text", "content": "HEAT is 0."})


def chat_span(n: int, asked: list[object], answer: object) -> dict[str, Any]:
    return span(n, "chat gpt", *attributes(
        gen_ai__operation__name="chat", gen_ai__conversation__id=SESSION,
        gen_ai__input__messages=json.dumps(asked), gen_ai__output__messages=json.dumps([answer])))  # fmt: skip


FRAMEWORKS = [
    Written(
        "responses", "responses",
        whole([
            {"role": "user", "content": "Why is it cold?"},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Look at it."}]},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": '{"path": "oven.py"}'},
            {"type": "function_call_output", "call_id": "c1", "output": "HEAT = 0"},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": "HEAT is 0.", "annotations": []}]},
        ]),
        [("user", "Why is it cold?", None), ("assistant", "Look at it.", None),
         ("assistant", "read(path=oven.py): HEAT = 0", None), ("assistant", "HEAT is 0.", None)],
        also=("chat",),
    ),
    Written(
        "responses-messages-alone", "responses",
        whole([
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Zażółć?"}]},
            {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Tak."}]},
        ]),
        [("user", "Zażółć?", None), ("assistant", "Tak.", None)],
        also=("chat",),
    ),
    Written(
        "agents-session", "responses",
        lines(
            {"id": 1, "session_id": SESSION, "message_data": '{"role": "user", "content": "Why is it cold?"}', "created_at": "2026-03-01 12:00:01"},
            {"id": 2, "session_id": SESSION, "created_at": "2026-03-01 12:00:02",
             "message_data": json.dumps({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "HEAT is 0."}]})},
        ),
        [("user", "Why is it cold?", when(1)), ("assistant", "HEAT is 0.", when(2))],
    ),
    Written(
        "hermes", "hermes",
        lines(
            {"role": "session_meta", "tools": [], "model": "m", "platform": "telegram", "timestamp": "2026-03-01T12:00:00.015498"},
            {"role": "user", "content": "Why is it cold?", "timestamp": "2026-03-01T12:00:01"},
            {"role": "assistant", "content": None, "reasoning": "Look at it.", "timestamp": "2026-03-01T12:00:02",
             "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "oven.py"}'}}]},
            {"role": "tool", "content": "HEAT = 0", "tool_call_id": "c1", "timestamp": "2026-03-01T12:00:03"},
        ),
        [("user", "Why is it cold?", when(1)), ("assistant", "Look at it.", when(2)), ("assistant", "read(path=oven.py): HEAT = 0", when(3))],
        {"session_meta": 1},
        also=("chat",),
    ),
    Written(
        "hermes-json", "hermes",
        whole({"session_id": "20260301_120000_ab", "model": "m", "platform": "cli", "session_start": "2026-03-01T12:00:00",
               "system_prompt": "You are Hermes.", "messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]}),
        [("assistant", "You are Hermes.", when(0)), ("user", "Hi.", when(1)), ("assistant", "Hello.", when(2))],
        also=("chat",),
    ),
    Written(
        "openhands", "openhands",
        whole([
            {"id": 0, "timestamp": "2026-03-01T12:00:00", "source": "agent", "action": "system", "args": {"content": "You are OpenHands."}},
            {"id": 1, "timestamp": "2026-03-01T12:00:01", "source": "user", "action": "message", "args": {"content": "Fix it.", "image_urls": None}},
            {"id": 2, "timestamp": "2026-03-01T12:00:02", "source": "environment", "observation": "agent_state_changed", "content": "", "extras": {}},
            {"id": 3, "timestamp": "2026-03-01T12:00:03", "source": "agent", "action": "run", "args": {"command": "oven", "thought": "I look."}},
            {"id": 4, "timestamp": "2026-03-01T12:00:04", "source": "agent", "observation": "run", "content": "cold", "cause": 3, "extras": {}},
            {"id": 5, "timestamp": "2026-03-01T12:00:05", "source": "agent", "action": "finish", "args": {"final_thought": "Done."}},
        ]),
        [("assistant", "You are OpenHands.", when(0)), ("user", "Fix it.", when(1)), ("assistant", "I look.", when(3)),
         ("assistant", "run(command=oven, thought=I look.): cold", when(4)), ("assistant", "Done.", when(5))],
        {"agent_state_changed": 1},
    ),
    Written(
        "openhands-v1", "openhands",
        lines(
            {"id": "e1", "timestamp": "2026-03-01T12:00:01", "source": "user", "kind": "MessageEvent",
             "llm_message": {"role": "user", "content": [text("Fix it.")]}},
            {"id": "e2", "timestamp": "2026-03-01T12:00:02", "source": "agent", "kind": "ActionEvent", "thought": [text("I look.")],
             "tool_name": "terminal", "tool_call_id": "c1", "action": {"kind": "TerminalAction", "command": "oven"},
             "tool_call": {"id": "c1", "name": "terminal", "arguments": '{"command": "oven"}'}},
            {"id": "e3", "timestamp": "2026-03-01T12:00:03", "source": "environment", "kind": "ObservationEvent", "tool_name": "terminal",
             "tool_call_id": "c1", "action_id": "e2", "observation": {"content": [text("cold")], "is_error": False}},
            {"id": "e4", "timestamp": "2026-03-01T12:00:04", "source": "environment", "kind": "ConversationStateUpdateEvent", "key": "x"},
        ),
        [("user", "Fix it.", when(1)), ("assistant", "I look.", when(2)), ("assistant", "terminal(oven): cold", when(3))],
        {"ConversationStateUpdateEvent": 1},
    ),
    Written(
        "opentelemetry", "opentelemetry",
        lines(
            otlp(
                span(1, "invoke_agent", *attributes(gen_ai__operation__name="invoke_agent", gen_ai__input__messages=json.dumps([OTEL_USER]),
                                                    gen_ai__output__messages=json.dumps([OTEL_ANSWER]))),
                chat_span(2, [OTEL_USER], OTEL_CALL),
            ),
            otlp(chat_span(4, [OTEL_USER, OTEL_CALL, OTEL_RESULT], OTEL_ANSWER), span(6, "GET /", *attributes(http__method="GET"))),
        ),
        [("user", "Why is it cold?", when(2)), ("assistant", "read(path=oven.py): HEAT = 0", when(4)), ("assistant", "HEAT is 0.", when(5))],
        {"invoke_agent": 1, "GET /": 1},
    ),
    Written(
        "opentelemetry-events", "opentelemetry",
        whole(otlp(span(1, "chat gpt", *attributes(gen_ai__system="openai"), events=[
            {"name": "gen_ai.system.message", "attributes": attributes(content="Be brief.")},
            {"name": "gen_ai.user.message", "attributes": attributes(content="Почему?")},
            {"name": "gen_ai.choice", "attributes": attributes(message='{"role": "assistant", "content": "HEAT is 0."}')},
        ]))),
        [("assistant", "Be brief.", when(1)), ("user", "Почему?", when(1)), ("assistant", "HEAT is 0.", when(2))],
    ),
    Written(
        "opentelemetry-numbered", "opentelemetry",
        whole(otlp(span(1, "openai.chat", *attributes(
            gen_ai__prompt__0__role="user", gen_ai__prompt__0__content="Why?", gen_ai__completion__0__role="assistant",
            gen_ai__completion__0__content="HEAT is 0.")))),
        [("user", "Why?", when(1)), ("assistant", "HEAT is 0.", when(2))],
    ),
    Written(
        "langsmith", "langsmith",
        lines(
            {**RUN, "run_type": "chain", "inputs": {"input": "Why?"}, "outputs": {"output": "HEAT is 0."}, "start_time": "2026-03-01T12:00:00"},
            {**RUN, "id": "run-2", "parent_run_id": "run-1", "run_type": "llm", "start_time": "2026-03-01T12:00:01", "end_time": "2026-03-01T12:00:02",
             "inputs": {"messages": [[lc("HumanMessage", "Why is it cold?")]]},
             "outputs": {"generations": [[{"text": "", "message": lc("AIMessage", "", tool_calls=[
                 {"id": "c1", "name": "read", "args": {"path": "oven.py"}, "type": "tool_call"}])}]]}},
            {**RUN, "id": "run-3", "parent_run_id": "run-1", "run_type": "llm", "start_time": "2026-03-01T12:00:04", "end_time": "2026-03-01T12:00:05",
             "inputs": {"messages": [[lc("HumanMessage", "Why is it cold?"), lc("AIMessage", "", tool_calls=[
                 {"id": "c1", "name": "read", "args": {"path": "oven.py"}, "type": "tool_call"}]),
                 lc("ToolMessage", "HEAT = 0", tool_call_id="c1")]]},
             "outputs": {"generations": [[{"text": "HEAT is 0.", "message": lc("AIMessage", "HEAT is 0.")}]]}},
        ),
        [("user", "Why is it cold?", when(1)), ("assistant", "read(path=oven.py): HEAT = 0", when(4)), ("assistant", "HEAT is 0.", when(5))],
        {"chain": 1},
        also=("langchain",),
    ),
    Written(
        "langsmith-openai", "langsmith",
        lines({**RUN, "run_type": "llm", "start_time": "2026-03-01T12:00:01", "end_time": "2026-03-01T12:00:02",
               "inputs": {"messages": [{"role": "user", "content": "Why?"}]},
               "outputs": {"choices": [{"message": {"role": "assistant", "content": "HEAT is 0."}}]}}),
        [("user", "Why?", when(1)), ("assistant", "HEAT is 0.", when(2))],
    ),
    Written(
        "vercel", "vercel",
        whole({"chatId": "c", "messages": [
            {"id": "v1", "role": "user", "parts": [text("Why is it cold?")], "createdAt": at(1)},
            {"id": "v2", "role": "assistant", "createdAt": at(2), "parts": [
                {"type": "step-start"}, {"type": "reasoning", "text": "Look at it."},
                {"type": "tool-read", "toolCallId": "c1", "state": "output-available", "input": {"path": "oven.py"}, "output": "HEAT = 0"},
                text("HEAT is 0."),
            ]},
        ]}),
        [("user", "Why is it cold?", when(1)), ("assistant", "Look at it.", when(2)), ("assistant", "read(path=oven.py): HEAT = 0", when(2)),
         ("assistant", "HEAT is 0.", when(2))],
        {"step-start": 1},
        also=("chat",),
    ),
    Written(
        "vercel-model-messages", "vercel",
        whole([
            {"role": "user", "content": "Why is it cold?"},
            {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "read", "input": {"path": "oven.py"}}]},
            {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "read", "output": "HEAT = 0"}]},
        ]),
        [("user", "Why is it cold?", None), ("assistant", "read(path=oven.py): HEAT = 0", None)],
        also=("chat",),
    ),
    Written(
        "sharegpt", "sharegpt",
        whole([
            {"id": "s1", "conversations": [{"from": "human", "value": "Зачем?"}, {"from": "gpt", "value": "HEAT is 0."}]},
            {"conversations": [{"from": "system", "value": "Be brief."}, {"from": "human", "value": "Hi."}, {"from": "gpt", "value": "Hello."}]},
        ]),
        [("user", "Зачем?", None), ("assistant", "HEAT is 0.", None), ("assistant", "Be brief.", None), ("user", "Hi.", None), ("assistant", "Hello.", None)],
    ),
]  # fmt: skip


# People.

TELEGRAM = {
    "name": "Пекарня", "type": "private_group", "id": 4321,
    "messages": [
        {"id": 1, "type": "service", "date": "2026-03-01T12:00:00", "date_unixtime": str(BEGIN), "actor": "Анна", "action": "create_group", "text": ""},
        {"id": 2, "type": "message", "date": "2026-03-01T13:00:01", "date_unixtime": str(BEGIN + 1), "from": "Анна", "from_id": "user1",
         "text": ["Смотри: ", {"type": "bold", "text": "хлеб"}, "!"], "text_entities": []},
        {"id": 3, "type": "message", "date": "2026-03-01T13:00:02", "date_unixtime": str(BEGIN + 2), "from": "张伟", "from_id": "user2",
         "photo": "photos/bread.jpg", "text": "好", "text_entities": []},
        {"id": 4, "type": "message", "date": "2026-03-01T13:00:03", "date_unixtime": str(BEGIN + 3), "from": "Анна", "from_id": "user3", "text": "Я тоже.", "text_entities": []},
        {"id": 5, "type": "message", "date": "2026-03-01T13:00:04", "date_unixtime": str(BEGIN + 4), "from": None, "from_id": "user4", "text": "Bye.", "text_entities": []},
    ],
}  # fmt: skip
TELEGRAM_SAID: list[Said] = [
    ("Анна", "Смотри: хлеб!", when(1)), ("张伟", "好\n(file: photos/bread.jpg)", when(2)),
    ("Анна (user3)", "Я тоже.", when(3)), ("user4", "Bye.", when(4)),
]  # fmt: skip

PEOPLE = [
    Written("telegram", "telegram", whole(TELEGRAM), TELEGRAM_SAID, {"service": 1}),
    Written("telegram-all-chats", "telegram", whole({"about": "Here is your data.", "chats": {"list": [TELEGRAM]}}), TELEGRAM_SAID, {"service": 1}),
    Written(
        "slack", "slack",
        whole([
            {"type": "message", "subtype": "channel_join", "ts": f"{BEGIN}.000100", "user": "U1", "text": "<@U1> has joined the channel"},
            {"client_msg_id": "s-1", "type": "message", "ts": f"{BEGIN + 1}.000200", "user": "U1", "text": "Bread &amp; butter?",
             "user_profile": {"real_name": "Łucja", "display_name": "lu"}},
            {"type": "message", "ts": f"{BEGIN + 2}.000300", "user": "U2", "text": "Yes.", "files": [{"name": "bread.png", "mimetype": "image/png"}]},
            {"type": "message", "subtype": "bot_message", "ts": f"{BEGIN + 3}.000300", "bot_id": "B1", "username": "oven", "text": "Hot."},
        ]),
        [("Łucja", "Bread & butter?", when(1)), ("U2", "Yes.\n(file: bread.png, image/png)", when(2)), ("oven", "Hot.", when(3))],
        {"channel_join": 1},
    ),
    Written(
        "discord", "discord",
        whole({
            "guild": {"id": "1", "name": "Bakery"}, "channel": {"id": "990000000000000001", "type": "GuildTextChat", "name": "bread"},
            "dateRange": {}, "messageCount": 3,
            "messages": [
                {"id": "11", "type": "GuildMemberJoin", "timestamp": "2026-03-01T13:00:00+01:00", "content": "Joined.", "author": {"id": "7", "name": "ann"}},
                {"id": "12", "type": "Default", "timestamp": "2026-03-01T13:00:01.123+01:00", "content": "Bread?", "author": {"id": "7", "name": "ann", "nickname": "Анна"}, "attachments": []},
                {"id": "13", "type": "Reply", "timestamp": "2026-03-01T13:00:02+01:00", "content": "", "author": {"id": "8", "name": "bob", "isBot": True},
                 "attachments": [{"id": "9", "url": "https://x/bread.png", "fileName": "bread.png"}]},
            ],
        }),
        [("Анна", "Bread?", when(1)), ("bob", "(file: bread.png, https://x/bread.png)", when(2))],
        {"GuildMemberJoin": 1},
    ),
]  # fmt: skip


def whatsapp(name: str, words: str, said: Sequence[Said], **left_out: int) -> Written:
    return Written(f"whatsapp-{name}", "text", words.encode(), said, left_out)


PEOPLE += [
    whatsapp(
        "ios-german",
        "[01.03.26, 12:00:00] Bäckerei: \u200eNachrichten und Anrufe sind Ende-zu-Ende-verschlüsselt.\n"
        "[01.03.26, 12:00:01] Jürgen Groß: Brot?\nZwei.\n\u200e[01.03.26, 12:00:02] ~\u202fClaude: \u200e<Anhang: 0001-brot.jpg>\n",
        [("Jürgen Groß", "Brot?\nZwei.", when(1)), ("Claude", "<Anhang: 0001-brot.jpg>", when(2))],
        notice=1,
    ),
    whatsapp(
        "android-american",
        "3/1/26, 11:59\u202fAM - Messages and calls are end-to-end encrypted.\n3/1/26, 12:00\u202fPM - Alice: Bread?\n"
        "3/1/26, 12:00\u202fPM - +1 (555) 123-4567: Two.\n3/13/26, 1:05\u202fAM - Alice: Thanks.\n",
        [("Alice", "Bread?", when(0)), ("+1 (555) 123-4567", "Two.", when(0)), ("Alice", "Thanks.", "2026-03-13T01:05:00")],
        line_before_the_first_message=1,
    ),
    whatsapp(
        "android-arabic",
        "\u200f١\u200f/٣\u200f/٢٠٢٦، ١٢:٠٠ م - ليلى: خبز؟\n".replace("\u200f", "") + "١/٣/٢٠٢٦، ١:٠٥ م - عمر: نعم.\n",
        [("ليلى", "خبز؟", when(0)), ("عمر", "نعم.", "2026-03-01T13:05:00")],
    ),
    whatsapp(
        "japanese",
        "2026/03/01 12:00 - 花子: パン？\n2026/03/01 12:01 - 太郎: はい。\n",
        [("花子", "パン？", when(0)), ("太郎", "はい。", "2026-03-01T12:01:00")],
    ),
    whatsapp(
        "korean",
        "2026년 3월 1일 오후 12:00, 민수 : 빵?\n2026년 3월 1일 오후 1:05, 영희 : 네.\n",
        [("민수", "빵?", when(0)), ("영희", "네.", "2026-03-01T13:05:00")],
    ),
    whatsapp(
        "chinese",
        "2026/3/1 下午12:00 - 张伟: 面包？\n2026/3/1 下午1:05 - 李娜: 好。\n",
        [("张伟", "面包？", when(0)), ("李娜", "好。", "2026-03-01T13:05:00")],
    ),
    whatsapp(
        "spanish",
        "1/3/26, 12:00 - Ana: ¿Pan?\n2/3/26, 1:05 p. m. - José María: Sí.\n13/3/26, 9:00 - Ana: Gracias.\n",
        [("Ana", "¿Pan?", when(0)), ("José María", "Sí.", "2026-03-02T13:05:00"), ("Ana", "Gracias.", "2026-03-13T09:00:00")],
    ),
    Written("text", "text", b"Alice: Hello.\nAssistant: Hi.\nand welcome.\nAlice: Bye.\nAssistant: Bye.\n",
            [("Alice", "Hello.", None), ("assistant", "Hi.\nand welcome.", None), ("Alice", "Bye.", None), ("assistant", "Bye.", None)]),
]  # fmt: skip


REFUSED = [
    Refused("a-picture", b"\x89PNG\r\n\x1a\n\0\0"),
    Refused("a-table", b'{"name": "bread", "price": 2}\n{"name": "roll", "price": 1}\n'),
    Refused(
        "part-of-opencode",
        whole({"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1", "type": "text", "text": "Hi."}),
    ),
    Refused(
        "events-of-kimi",
        lines(
            {"type": "metadata", "protocol_version": "1.1"},
            {"timestamp": 1.0, "message": {"type": "TurnBegin", "payload": {}}},
        ),
    ),
    Refused(
        "updates-of-grok",
        lines({"timestamp": 1, "method": "session/update", "params": {"sessionId": "s", "update": {}}}),
    ),
    Refused("a-message-without-words", whole([{"role": "user", "name": "x"}]), "resembles chat, but"),
]

FILES = [*CODING, *FRAMEWORKS, *PEOPLE]
