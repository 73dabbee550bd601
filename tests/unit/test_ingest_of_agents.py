"""Ingest of what coding agents write while they work: each word once, from its speaker, at its time."""

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory, Settings
from recallog_service.formats import space_of_project
from recallog_service.ingest import ingest_paths
from support.cli import Result, recallog
from support.events import run

Record = dict[str, Any]
MONDAY, TUESDAY = "4b1c0f4e-8f57-4a46-9a52-0d5f3f2f0a11", "9d2e1a7c-1111-4b6d-8c1e-7f3a5b9c2d44"
SPACE = "project/home/alice/bakery"


def claude(n: int, kind: str, content: object, **fields: Any) -> Record:
    """A record of Claude Code."""
    message = {"role": kind, "content": content} | ({"id": f"msg_{n}"} if kind == "assistant" else {})
    known = {
        "type": kind, "uuid": f"{n:08}-0000-4000-8000-000000000000", "sessionId": MONDAY, "cwd": "/home/alice/bakery",
        "timestamp": f"2026-03-01T12:00:{n:02}.000Z", "message": message,
    }  # fmt: skip
    return known | fields


def call(n: int, id_: str, name: str = "Bash", **arguments: Any) -> Record:
    return claude(n, "assistant", [{"type": "tool_use", "id": id_, "name": name, "input": arguments}])


def result(n: int, id_: str, text: str) -> Record:
    return claude(n, "user", [{"type": "tool_result", "tool_use_id": id_, "content": text}])


def codex(n: int, kind: str, **payload: Any) -> Record:
    return {"timestamp": f"2026-03-01T13:00:{n:02}.000Z", "type": kind, "payload": payload}


def codex_said(n: int, role: str, text: str) -> Record:
    kind = "input_text" if role == "user" else "output_text"
    return codex(n, "response_item", type="message", role=role, content=[{"type": kind, "text": text}])


CODEX_META = codex(0, "session_meta", id="019b64e5-57fa-7463-b644-fba7e456f905", cwd="/home/alice/bakery")
CALL_ID = "toolu_01A09q90qw90lq917835lq9"
TALK = [
    claude(1, "user", "Why is the oven cold?"),
    claude(2, "assistant", [{"type": "text", "text": "I look."}]),
    call(3, CALL_ID, command="oven --status"),
    result(4, CALL_ID, "HEAT = 0"),
    claude(5, "assistant", [{"type": "text", "text": "HEAT is 0."}]),
]


def lines(*records: object) -> bytes:
    return "".join(json.dumps(each) + "\n" for each in records).encode()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


@pytest.fixture
def ingest(home: Path, logs: Path) -> Callable[..., Result]:
    def ingested(*options: object, what: Path = logs, **environment: str) -> Result:
        return recallog("ingest", what, "--home", home, "--no-index", *options, **environment)

    return ingested


def exported(home: Path) -> list[Record]:
    return [json.loads(each) for each in recallog("export", "--home", home).out.splitlines()]


def said(home: Path) -> list[str]:
    """The texts of the ledger; of a call its result, else its error."""
    return [
        each["payload"].get("text") or str(each["payload"].get("result", each["payload"].get("error")))
        for each in exported(home)
    ]


WORDS = ["Why is the oven cold?", "I look.", "HEAT = 0", "HEAT is 0."]


# Half written.


@pytest.mark.parametrize("cut", [1, 40, 150])
def test_a_last_line_that_is_not_whole_is_read_by_the_next_run(
    ingest: Callable[..., Result], home: Path, logs: Path, cut: int
) -> None:
    whole = lines(*TALK)
    last = lines(TALK[-1])
    (logs / "a.jsonl").write_bytes(whole[: len(whole) - len(last) + cut])
    first = ingest("--json")
    assert (first.code, first.json["added"]) == (0, 3)
    assert first.json["files"][0]["left_out"] == {"unfinished_line": 1}
    (logs / "a.jsonl").write_bytes(whole)
    assert ingest("--json").json["added"] == 1
    assert said(home) == WORDS


def test_a_last_line_without_its_end_that_is_whole_is_read(
    ingest: Callable[..., Result], home: Path, logs: Path
) -> None:
    (logs / "a.jsonl").write_bytes(lines(*TALK).rstrip(b"\n"))
    assert ingest().code == 0
    assert said(home) == WORDS


@pytest.mark.parametrize("whole", range(1, 6))
def test_a_call_that_is_open_is_one_call_with_its_result(
    ingest: Callable[..., Result], home: Path, logs: Path, whole: int
) -> None:
    (logs / "a.jsonl").write_bytes(lines(*TALK[:whole]))
    ingest()
    (logs / "a.jsonl").write_bytes(lines(*TALK))
    ingest()
    assert said(home) == WORDS
    assert [each["payload"]["ok"] for each in exported(home) if each["kind"] == "tool.used"] == [True]


def test_a_call_that_is_open_while_the_user_goes_on_is_one_call_with_its_result(
    ingest: Callable[..., Result], home: Path, logs: Path
) -> None:
    talk = [TALK[0], TALK[2], claude(4, "user", "Hurry!"), result(5, CALL_ID, "HEAT = 0")]
    (logs / "a.jsonl").write_bytes(lines(*talk[:3]))
    ingest()
    (logs / "a.jsonl").write_bytes(lines(*talk))
    ingest()
    assert said(home) == ["Why is the oven cold?", "Hurry!", "HEAT = 0"]


def test_a_call_that_never_got_a_result_failed_once_its_agent_has_gone_on(
    ingest: Callable[..., Result], home: Path, logs: Path
) -> None:
    after = [claude(4, "user", "Stop."), claude(5, "assistant", [{"type": "text", "text": "I stop."}])]
    (logs / "a.jsonl").write_bytes(lines(*TALK[:3], *after))
    ingest()
    assert said(home) == ["Why is the oven cold?", "I look.", "no result", "Stop.", "I stop."]


# Repeated, forked and growing.


def test_a_record_that_is_repeated_is_one_event(ingest: Callable[..., Result], home: Path, logs: Path) -> None:
    (logs / "a.jsonl").write_bytes(lines(*TALK[:2], *TALK))
    ingest()
    assert said(home) == WORDS


@pytest.mark.parametrize("order", [("a.jsonl", "b.jsonl"), ("b.jsonl", "a.jsonl")])
def test_a_forked_session_adds_only_what_is_new(
    ingest: Callable[..., Result], home: Path, logs: Path, order: tuple[str, str]
) -> None:
    forked = [each | {"sessionId": TUESDAY} for each in [*TALK, claude(6, "user", "Thanks.")]]
    (logs / order[0]).write_bytes(lines(*TALK))
    ingest()
    (logs / order[1]).write_bytes(lines(*forked))
    second = ingest("--json")
    assert (second.code, second.json["added"]) == (0, 1)
    assert said(home) == [*WORDS, "Thanks."]
    assert [each["session"] for each in exported(home)] == [MONDAY] * 4 + [TUESDAY]
    assert ingest("--json").json["added"] == 0


def grown(*texts: str) -> list[Record]:
    blocks = [[{"type": "text", "text": text}] for text in texts]
    return [TALK[0], *(claude(2, "assistant", each) for each in blocks)]


def test_a_message_that_is_written_again_as_it_grows_is_one_message(
    ingest: Callable[..., Result], home: Path, logs: Path
) -> None:
    new_ids = [
        each | {"uuid": f"{n:08}-1111-4000-8000-000000000000"} for n, each in enumerate(grown("I", "I lo", "I look."))
    ]
    for name, records in (("a.jsonl", grown("I", "I lo", "I look.")), ("b.jsonl", new_ids)):
        (logs / name).write_bytes(lines(*(each | {"sessionId": name * 4} for each in records)))
    ingest()
    assert said(home) == ["Why is the oven cold?", "I look."] * 2


@pytest.mark.parametrize("own", [{}, {"uuid": "short"}])
def test_the_rest_of_a_message_that_was_read_half_is_added(
    ingest: Callable[..., Result], home: Path, logs: Path, own: Record
) -> None:
    for text in ("The oven", "The oven is cold, ", "The oven is cold, and HEAT is 0."):
        (logs / "a.jsonl").write_bytes(
            lines(*(each | own if each["type"] == "assistant" else each for each in grown(text)))
        )
        assert ingest().code == 0
    assert said(home)[1:] == ["The oven", " is cold, ", "and HEAT is 0."]
    assert ingest("--json").json["added"] == 0
    assert "".join(said(home)[1:]) == "The oven is cold, and HEAT is 0."


def test_a_renamed_file_adds_nothing(ingest: Callable[..., Result], home: Path, logs: Path) -> None:
    (logs / "a.jsonl").write_bytes(lines(*TALK))
    ingest()
    (logs / "a.jsonl").rename(logs / "rotated.jsonl")
    assert ingest("--json").json["added"] == 0


def test_a_malformed_record_costs_one_record(ingest: Callable[..., Result], home: Path, logs: Path) -> None:
    broken = [TALK[0], claude(2, "assistant", 17), {"type": "user", "sessionId": MONDAY}, *TALK[2:]]
    (logs / "a.jsonl").write_bytes(lines(*broken[:1]) + b"\xff\xfe{\n" + lines(*broken[1:]))
    found = ingest("--json")
    assert (found.code, found.json["refused"]) == (1, 3)
    assert said(home) == [WORDS[0], *WORDS[2:]]


# Of which nothing is kept.


def test_a_file_of_which_nothing_is_kept_is_no_success(ingest: Callable[..., Result], logs: Path) -> None:
    (logs / "a.jsonl").write_bytes(lines({"type": "summary", "summary": "Bread", "leafUuid": "u"}))
    for what in (logs, logs / "a.jsonl"):
        found = ingest(what=what)
        assert found.code == 1
        assert "was kept" in found.err
        assert "Skipped 1 record (summary)" in found.out


def test_an_empty_file_says_so(ingest: Callable[..., Result], logs: Path) -> None:
    (logs / "a.jsonl").write_bytes(b"\n")
    found = ingest(what=logs / "a.jsonl")
    assert (found.code, "the file is empty" in found.err) == (0, True)
    found = ingest()
    assert (found.code, "no file to read" in found.err, "1 is empty" in found.err) == (2, True, True)


# Packed.


def test_packed_files_are_read(ingest: Callable[..., Result], home: Path, logs: Path) -> None:
    (logs / "a.jsonl.gz").write_bytes(gzip.compress(lines(*TALK[:2])))
    with zipfile.ZipFile(logs / "b.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside/b.jsonl", lines(*TALK))
        archive.writestr("inside/picture.png", bytes(range(256)))
    assert ingest().code == 0
    assert said(home) == WORDS
    assert ingest("--json", what=logs / "b.zip").json["known"] == 4


def test_a_bomb_is_refused(ingest: Callable[..., Result], home: Path, logs: Path) -> None:
    (logs / "a.jsonl.gz").write_bytes(gzip.compress(b"[" + b" " * 80_000_000))
    with zipfile.ZipFile(logs / "b.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("b.json", b" " * 80_000_000)
    (logs / "c.jsonl").write_bytes(lines(*TALK))
    found = ingest()
    assert (found.code, said(home)) == (1, WORDS)
    assert found.err.count("the limit") == 2


# Where it goes, and who sees it.


def test_what_one_agent_did_in_a_project_is_seen_by_the_other(
    ingest: Callable[..., Result], home: Path, logs: Path
) -> None:
    (logs / "claude.jsonl").write_bytes(lines(*TALK))
    (logs / "codex.jsonl").write_bytes(
        lines(CODEX_META, codex_said(1, "user", "Heat it."), codex_said(2, "assistant", "HEAT is 9."))
    )
    assert ingest("--shared").code == 0
    assert ingest("--shared", "--json").json["added"] == 0
    for agent in ("claude-code", "codex"):
        shown = recallog("timeline", SPACE, agent, "--json", "--home", home).json["items"]
        assert {each["text"] for each in shown} >= {"Why is the oven cold?", "HEAT is 0.", "Heat it.", "HEAT is 9."}


def test_without_it_what_an_agent_said_is_its_own(ingest: Callable[..., Result], home: Path, logs: Path) -> None:
    (logs / "claude.jsonl").write_bytes(lines(*TALK))
    ingest()
    shown = recallog("timeline", SPACE, "codex", "--json", "--home", home).json["items"]
    assert [each["text"] for each in shown] == ["Why is the oven cold?"]


def test_the_space_and_the_agent_can_be_named(ingest: Callable[..., Result], home: Path, logs: Path) -> None:
    side = {"isSidechain": True, "agentId": "a7"}
    (logs / "claude.jsonl").write_bytes(
        lines(*TALK, claude(6, "user", "Count.", **side), claude(7, "assistant", "9", **side))
    )
    ingest("--space", "alice", "--agent", "coder")
    assert {each["space"] for each in exported(home)} == {"alice"}
    assert {each["agent"] for each in exported(home)} == {"user", "coder", "coder/a7"}


def test_a_hook_writes_the_events_of_an_ingest(ingest: Callable[..., Result], home: Path, logs: Path) -> None:
    path = logs / "claude.jsonl"

    async def hook() -> int:
        async with Memory.open(Settings.valid(home=home, index="off")) as memory:
            return (await ingest_paths(memory, [str(path)], shared=True)).added

    added = []
    for count in (1, 3, 5):
        path.write_bytes(lines(*TALK[:count]))
        added.append(run(hook()))
    assert added == [1, 1, 2]
    assert ingest("--json").json["added"] == 0
    assert {each["space"] for each in exported(home)} == {space_of_project("/home/alice/bakery")}


# Scrubbed.


def test_what_is_ingested_is_scrubbed_and_counted(ingest: Callable[..., Result], home: Path, logs: Path) -> None:
    mail = [
        claude(1, "user", "Write to bob@example.com."),
        call(2, CALL_ID, to="bob@example.com"),
        result(3, CALL_ID, "ok"),
    ]
    (logs / "a.jsonl").write_bytes(lines(*mail))
    found = ingest(RECALLOG_SCRUB="emails")
    assert "Replaced 2 e-mail addresses" in found.out
    assert "bob@" not in recallog("export", "--home", home).out
    again = ingest("--json", RECALLOG_SCRUB="emails").json
    assert (again["added"], again["files"][0]["scrubbed"]) == (0, {})


def test_what_was_ingested_before_scrubbing_is_known(ingest: Callable[..., Result], logs: Path) -> None:
    (logs / "a.jsonl").write_bytes(lines(claude(1, "user", "Write to bob@example.com.")))
    ingest()
    found = ingest("--json", RECALLOG_SCRUB="emails")
    assert (found.code, found.json["added"], found.json["known"]) == (0, 0, 1)


# Four agents of one person.

GEMINI = "7d2e1a7c-1111-4b6d-8c1e-7f3a5b9c2d44"


def gemini(n: int, kind: str, text: str) -> Record:
    return {"id": f"g-{n}", "timestamp": f"2026-03-01T14:00:{n:02}.000Z", "type": kind, "content": text}


def cursor(role: str, text: str) -> Record:
    return {"role": role, "message": {"content": [{"type": "text", "text": text}]}}


def test_a_home_with_four_agents_at_work_is_ingested_word_for_word(
    ingest: Callable[..., Result], home: Path, logs: Path
) -> None:
    begun = lines({"sessionId": GEMINI, "projectHash": "b" * 64, "startTime": "2026-03-01T14:00:00Z"})
    asked = lines(cursor("user", "<user_query>Hello.</user_query>"))
    open_call = codex(
        2, "response_item", type="function_call", name="shell", arguments="{}", call_id="call_" + "a1" * 12
    )
    closed = codex(3, "response_item", type="function_call_output", call_id="call_" + "a1" * 12, output="hot")
    rollout = [CODEX_META, codex_said(1, "user", "Heat it."), open_call]
    first = {
        "a.jsonl": lines(*TALK)[:-30],
        "fork.jsonl": lines(*(each | {"sessionId": TUESDAY} for each in TALK[:4])),
        "rollout.jsonl": lines(*rollout),
        "gemini.jsonl": begun + lines(gemini(1, "user", "Is it hot?"), gemini(2, "gemini", "It")),
        "cursor.jsonl": asked + b'{"role": "assi',
    }
    second = {
        "renamed.jsonl": lines(*TALK),
        "fork.jsonl": lines(*(each | {"sessionId": TUESDAY} for each in [*TALK, claude(6, "user", "Thanks.")])),
        "rollout.jsonl": lines(*rollout, closed, codex_said(4, "assistant", "HEAT is 9.")),
        "gemini.jsonl": begun
        + lines(gemini(1, "user", "Is it hot?"), *(gemini(2, "gemini", each) for each in ("It", "It is."))),
        "cursor.jsonl": asked + lines(cursor("assistant", "Hello!")),
    }
    for files in (first, second, second):
        for path in logs.iterdir():
            path.unlink()
        for name, content in files.items():
            (logs / name).write_bytes(content)
        assert ingest("--space", "alice", "--shared").code == 0
    events = [each for each in exported(home) if each["kind"] != "space.configured"]
    assert sorted(zip((each["agent"] for each in events), said(home)[-len(events) :], strict=True)) == sorted(
        [
            *(("user", text) for text in ("Why is the oven cold?", "Thanks.", "Heat it.", "Is it hot?", "Hello.")),
            *(("claude-code", text) for text in ("I look.", "HEAT = 0", "HEAT is 0.")),
            *(("codex", text) for text in ("hot", "HEAT is 9.")),
            *(("gemini-cli", text) for text in ("It", " is.")),
            ("cursor", "Hello!"),
        ]
    )
    assert {each["at"] for each in events if each["agent"] == "gemini-cli"} == {"2026-03-01T14:00:02Z"}
