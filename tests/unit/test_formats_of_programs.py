"""Files of many programs: each is kept whole, from its speakers, at its times, or refused with a reason."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recallog_schemas.errors import InvalidEvent
from recallog_service.cli.app import app
from recallog_service.formats import Options, Source, registry
from support.formats import events, items
from support.installed import without_ours
from support.written_logs import FILES, REFUSED, Refused, Written


def source(data: bytes) -> Source:
    return Source(data.splitlines(keepends=True))


INGEST = (Path(__file__).parents[2] / "docs" / "ingest.md").read_text()
every_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)


@every_file
def test_every_word_is_kept_once_from_its_speaker_at_its_time(file: Written) -> None:
    found = items(registry.find_format(file.format), file.data)
    said = events(found)
    shown = [(event.agent, event.text or event.payload["persona"], event.at.isoformat()[:19]) for event in said]
    expected = [(agent, words, time or at) for (agent, words, time), (_, _, at) in zip(file.said, shown, strict=False)]
    assert shown == expected + list(file.said[len(shown) :])
    undated = [event.at.year for event, (_, _, time) in zip(said, file.said, strict=True) if time is None]
    assert set(undated) <= {2000}
    assert Counter(item.left_out for item in found if item.left_out) == file.left_out


@every_file
def test_it_is_recognised_as_what_it_is(file: Written) -> None:
    assert registry.format_of(source(file.data).sample).name == file.format


@every_file
def test_no_other_format_has_its_structure_unless_it_is_tried_later(file: Written) -> None:
    fitting = [name for name, each in registry.by_name().items() if each.structure.fits(source(file.data).sample)]
    assert fitting[0] == file.format
    assert set(fitting[1:]) <= set(file.also)


@every_file
def test_without_the_package_of_its_format_it_is_refused_and_the_package_is_named(file: Written) -> None:
    with without_ours():
        found = registry.recognise(source(file.data).sample)
        if found is None:
            with pytest.raises(InvalidEvent, match=f"recallog-formats reads the format {file.format}"):
                registry.format_of(source(file.data).sample)
    assert found is None or found.name == file.format


@pytest.mark.parametrize("file", REFUSED, ids=lambda file: file.name)
def test_another_file_is_refused_with_a_reason(file: Refused) -> None:
    with pytest.raises(InvalidEvent, match=file.reason):
        registry.format_of(source(file.data).sample)


@every_file
def test_reading_it_again_gives_the_same_events(file: Written) -> None:
    one, two = (
        [item.event for item in registry.find_format(file.format).read(source(file.data), Options())] for _ in "12"
    )
    assert one == two


def test_the_page_about_ingest_lists_all_formats() -> None:
    table = INGEST.partition("| format | files |")[2].partition("\n\n")[0]
    named = {name for row in table.splitlines() for name in re.findall(r"`([\w-]+)`\]", row.split(" | ")[0])}
    assert named == set(registry.by_name())


def test_every_format_says_what_it_keeps() -> None:
    assert [name for name, each in registry.by_name().items() if not each.keeps] == []


def test_the_command_lists_the_formats_and_what_each_keeps_and_leaves_out() -> None:
    listed = json.loads(CliRunner().invoke(app, ["ingest", "--formats", "--json"]).stdout)["formats"]
    assert {each["name"] for each in listed} == set(registry.by_name())
    shown = CliRunner().invoke(app, ["ingest", "--formats"]).stdout
    for each in listed:
        assert f"{each['name']}: {each['about']}\n  keeps {each['keeps']}\n" in shown
        assert each["leaves_out"] in shown


# Parts of records.


def test_two_speakers_of_one_name_and_a_name_of_a_role_stay_apart() -> None:
    data = b"3/1/26, 12:00 - Assistant: Hi.\n3/1/26, 12:01 - User: Hello.\n3/1/26, 12:02 - Claude: Hey.\n"
    said = events(items(registry.format_of(source(data).sample), data))
    assert [(event.kind, event.agent) for event in said] == [
        ("user.injected", name) for name in ("Assistant", "User", "Claude")
    ]


def test_half_of_a_surrogate_pair_costs_one_character_and_is_counted() -> None:
    data = rb'[{"role": "user", "content": "Half \ud83c, whole \ud83c\udf5e, a path C:\\ud83c."}]' + b"\n"
    found = items(registry.find_format("chat"), data)
    assert [item.event.text for item in found if item.event] == ["Half \ufffd, whole \U0001f35e, a path C:\\ud83c."]
    assert [item.left_out for item in found if item.left_out] == ["half_of_a_character"]


def test_half_of_a_surrogate_pair_in_an_event_costs_one_character_too() -> None:
    data = b'{"space": "s", "agent": "a", "kind": "agent.spoke", "payload": {"text": "Half \\ud83c."}}\n'
    found = items(registry.find_format("jsonl"), data)
    assert [item.event.text for item in found if item.event] == ["Half \ufffd."]
    assert [item.left_out for item in found if item.left_out] == ["half_of_a_character"]


@every_file
def test_a_record_that_cannot_be_read_costs_that_record_alone(file: Written) -> None:
    if b"}\n{" not in file.data:
        pytest.skip("one document")
    broken = file.data + b'{"type": "mess\n'
    found = items(registry.format_of(source(broken).sample), broken)
    assert sum(item.error is not None for item in found) == 1
    assert sum(item.event is not None for item in found) == len(file.said)


def test_a_call_of_codex_that_failed_says_so_in_words_alone() -> None:
    file = next(each for each in FILES if each.name == "codex-items")
    failed = file.data.replace(b'\\"exit_code\\": 0', b'\\"exit_code\\": 2')
    assert failed != file.data
    (used,) = [event for event in events(items(registry.find_format("codex"), failed)) if event.kind == "tool.used"]
    assert (used.payload["result"], used.payload["ok"]) == ("cold", False)


def test_a_thought_of_gemini_cli_has_its_subject_and_thoughts_and_calls_have_their_own_times() -> None:
    def at(second: int) -> str:
        return f"2026-03-01T14:00:{second:02}.000Z"

    thought = {"subject": "Looking", "description": "It may be cold.", "timestamp": at(2)}
    call = {"id": "c-1", "name": "read", "args": {}, "result": "HEAT = 0", "status": "success", "timestamp": at(4)}
    message = {"id": "g-1", "timestamp": at(3), "type": "gemini", "content": "I look."}
    session = {"sessionId": "s-1", "projectHash": "f00d", "startTime": at(0)}
    data = json.dumps(session | {"messages": [message | {"thoughts": [thought], "toolCalls": [call]}]}).encode()
    found = events(items(registry.find_format("gemini-cli"), data))
    assert [(event.kind, event.text, event.at.second) for event in found] == [
        ("agent.thought", "Looking\nIt may be cold.", 2), ("agent.spoke", "I look.", 3),
        ("tool.used", "read(): HEAT = 0", 4),
    ]  # fmt: skip


def test_texts_that_cursor_adds_beside_the_query_are_left_out() -> None:
    texts = ["<user_info>\nOS: linux\n</user_info>", "<user_query>\nWhy is it cold?\n</user_query>"]
    content = [{"type": "text", "text": text} for text in texts]
    data = json.dumps({"role": "user", "message": {"content": content}}).encode()
    assert [event.text for event in events(items(registry.find_format("cursor"), data))] == ["Why is it cold?"]
