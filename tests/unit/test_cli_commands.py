"""The commands: their output as text and as JSON, and their exit codes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory
from recallog.operations.facade import all_operations
from recallog.views import Status
from recallog_demo.tampering import tamper
from recallog_service.cli import rendering
from recallog_service.cli.app import SUMMARIES
from recallog_tools import summarize
from support.cli import Result, recallog, spawn, without_events
from support.events import event, run


def paths(command: Any, *path: str) -> Iterator[tuple[str, ...]]:
    """The path of every command that is not a group."""
    if not hasattr(command, "commands"):
        yield (*path, command.name)
        return
    for each in command.commands.values():
        yield from paths(each, *path, command.name)


COMMANDS = sorted(path for _, command in summarize.commands() for path in paths(command))
SILENT = {("console",), ("export",), ("mcp",), ("serve",), ("worker",)}
"""Commands whose output is not an answer."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with thirty events: the baker's and the miller's words and thoughts by turns."""
    events = [
        event(
            ["agent.spoke", "agent.thought"][n % 2],
            id=f"e-{n}",
            agent=["baker", "miller"][n // 2 % 2],
            turn=n,
            session=f"s-{n // 10}",
            at=f"2026-03-01T12:{n:02}:00Z",
            payload={"text": f"the right number [bold]{n}[/]"},
        )
        for n in range(30)
    ]

    async def work() -> None:
        async with Memory.open(tmp_path / "home") as memory:
            await memory.publish_many(events)

    run(work())
    return tmp_path / "home"


def clean(result: Result) -> Result:
    """Check that a command succeeded without a message on stderr."""
    assert (result.code, result.err) == (0, ""), result
    return result


def failed(result: Result, code: int, says: str) -> None:
    """One clear line on stderr, the right exit code, nothing on stdout, no traceback."""
    assert result.code == code, result
    assert re.search(says, result.err), result.err
    assert len(result.err.splitlines()) == 1, result.err
    assert "Traceback" not in result.err
    assert result.out == ""


# Help.


BY_HAND = {
    "console", "copy", "export", "ingest", "keys create", "keys list", "keys revoke",
    "mcp", "publish", "react", "schema export", "serve", "settings", "tail", "watch", "worker",
    "workspace export", "workspace import",
}  # fmt: skip


@pytest.mark.models("all")
def test_the_commands_are_those_of_the_operations_and_some_written_by_hand() -> None:
    of_operations = {each.command.partition(" --")[0] for each in all_operations(Memory).values()} - {""}
    assert {" ".join(path) for path in COMMANDS} == of_operations | BY_HAND
    assert of_operations & BY_HAND == {"copy", "publish", "react"}


@pytest.mark.models("all")
def test_the_summaries_of_the_commands_are_up_to_date() -> None:
    written = SUMMARIES.read_text(encoding="utf-8")
    assert written == summarize.generated(), "run: make generate"


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_s_help_shows_an_example_of_it(path: tuple[str, ...]) -> None:
    shown = clean(recallog(*path, "--help")).out
    assert f"Example: recallog {' '.join(path)}" in " ".join(shown.split())


@pytest.mark.parametrize("path", [path for path in COMMANDS if path not in SILENT], ids=" ".join)
def test_every_command_that_answers_has_a_json_option(path: tuple[str, ...]) -> None:
    assert "--json" in recallog(*path, "--help").out


def test_the_command_line_runs_as_a_module(tmp_path: Path) -> None:
    shown = spawn("--help", cwd=tmp_path)
    assert shown.code == 0
    assert "Event-sourced memory" in shown.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [["nosuch"], ["episodic"], ["episodic", "village"], ["--nosuch"], ["ingest", "x", "--format", "xml"],
     ["timeline", "village", "baker", "--limit", "0"], ["publish", "v", "a", "k.k", "t", "--turn", "three"],
     ["ingest", "nosuchfile.jsonl"]],
)  # fmt: skip
def test_a_usage_error_exits_with_2(tmp_path: Path, arguments: list[str]) -> None:
    result = recallog(*arguments, RECALLOG_HOME=str(tmp_path / "home"))
    assert result.code == 2
    assert "Traceback" not in result.err


# publish


def test_publish_prints_the_position_and_the_id(tmp_path: Path) -> None:
    sent = ["publish", "village", "baker", "agent.spoke", "Bread!", "--turn", "3", "--id", "e-1", "--home", tmp_path]
    assert clean(recallog(*sent, "--at", "2026-03-01T12:00:00Z")).out == "0:0 e-1\n"
    assert clean(recallog("episodic", "village", "baker", "--home", tmp_path)).out == "[turn 003][agent.spoke] Bread!\n"


def test_publishing_the_same_event_again_prints_its_first_position(tmp_path: Path) -> None:
    sent = [
        "publish",
        "v",
        "a",
        "agent.spoke",
        "t",
        "--id",
        "e-1",
        "--at",
        "2026-03-01T12:00Z",
        "--home",
        tmp_path,
        "--json",
    ]
    assert clean(recallog(*sent)).json == clean(recallog(*sent)).json == {"position": "0:0", "id": "e-1"}


def test_publish_takes_every_field(tmp_path: Path) -> None:
    sent = [
        "publish", "village", "baker", "tool.used", "--payload", '{"tool": "oven", "result": 7}', "--session", "s-1",
        "--at", "2026-03-01T13:00:00+01:00", "--audience", "miller", "--audience", "smith", "--id", "e-1",
    ]  # fmt: skip
    clean(recallog(*sent, "--home", tmp_path))
    exported = json.loads(recallog("export", "--home", tmp_path).out)
    assert exported.pop("appended") > 0
    assert exported == {
        "envelope": 1, "id": "e-1", "space": "village", "agent": "baker", "kind": "tool.used", "session": "s-1",
        "at": "2026-03-01T12:00:00Z", "audience": ["miller", "smith"], "payload": {"tool": "oven", "result": 7},
        "turn": 0, "schema_version": 1,
    }  # fmt: skip


def test_publish_reads_one_event_from_a_pipe(tmp_path: Path) -> None:
    sent = '{"space": "village", "agent": "baker", "kind": "agent.spoke", "payload": {"text": "Bread!"}, "id": "e-1"}'
    assert clean(recallog("publish", "-", "--home", tmp_path, stdin=sent)).out == "0:0 e-1\n"


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_dry_run_writes_nothing(tmp_path: Path, as_json: list[str]) -> None:
    home = tmp_path / "home"
    result = clean(recallog("publish", "v", "a", "agent.spoke", "t", "--dry-run", "--home", home, *as_json))
    assert "valid" in result.out
    assert not home.exists()


def test_a_dry_run_refuses_what_publish_would(tmp_path: Path) -> None:
    failed(recallog("publish", "v", "a", "agent.spoke", "--dry-run", "--home", tmp_path), 1, r"payload\.text")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["v", "a", "nodot", "t"], "kind: "),
        (["a ", "a", "agent.spoke", "t"], "space: "),
        (["v", "a", "agent.spoke"], r"payload\.text: "),
        (["v", "a", "agent.spoke", "t", "--turn", "-1"], "turn: "),
        (["v", "a", "agent.spoke", "t", "--at", "noon"], "at: write the time with its zone"),
        (["v", "a", "agent.spoke", "--payload", "{"], "--payload is not JSON"),
        (["v", "a", "agent.spoke", "--payload", "[1]"], "--payload must be a JSON object"),
        (["v", "a", "image.generated", "--payload", '{"score": NaN}'], r"payload\.score"),
        (["v", "a"], "kind: "),
        (["v"], "agent: |kind: "),
    ],
)
def test_a_broken_event_is_one_line_that_names_its_field_and_nothing_is_written(
    tmp_path: Path, arguments: list[str], says: str
) -> None:
    failed(recallog("publish", *arguments, "--home", tmp_path / "home"), 1, says)
    assert not (tmp_path / "home").exists()


def test_an_id_conflict_names_the_existing_event_and_the_field_that_differs(tmp_path: Path) -> None:
    sent = ["publish", "v", "a", "agent.spoke", "--id", "e-1", "--home", tmp_path]
    clean(recallog(*sent, "one"))
    failed(recallog(*sent, "two"), 1, r"e-1.*0:0.*differs in payload\.text")
    error = json.loads(recallog(*sent, "one", "--turn", "2", "--json").err)
    assert (error["error"], error["path"], error["position"]) == ("IdConflict", "turn", "0:0")


def test_publishing_an_event_again_answers_its_first_position(tmp_path: Path) -> None:
    """`at` defaults to now: the same command was an id conflict."""
    sent = ["publish", "v", "a", "agent.spoke", "nine sacks", "--id", "debt-1", "--home", tmp_path]
    assert [clean(recallog(*sent)).out for _ in range(2)] == ["0:0 debt-1\n"] * 2
    assert len(clean(recallog("export", "--home", tmp_path)).out.splitlines()) == 1


def test_errors_are_json_with_the_json_option(tmp_path: Path) -> None:
    result = recallog("publish", "v", "a", "nodot", "t", "--json", "--home", tmp_path)
    assert result.code == 1
    assert json.loads(result.err)["error"] == "InvalidEvent"
    assert result.out == ""


# Queries.


def test_episodic_shows_the_memories_of_an_agent(home: Path) -> None:
    shown = clean(recallog("episodic", "village", "baker", "--window", "2", "--home", home)).out
    assert shown == (
        "[turn 028][agent.spoke] the right number [bold]28[/]\n[turn 029][agent.thought] the right number [bold]29[/]\n"
    )


@pytest.mark.parametrize("moment", ["0:5", "5", "2026-03-01T12:05:00Z", "2026-03-01T13:05+01:00"])
def test_episodic_as_of_a_position_or_a_time(home: Path, moment: str) -> None:
    view = clean(recallog("episodic", "village", "baker", "--as-of", moment, "--json", "--home", home)).json
    assert [memory["event"]["turn"] for memory in view["memories"]] == [0, 1, 4, 5]


@pytest.mark.parametrize("moment", ["0:30", "0:999999999999", "yesterday", "2026-13-01", "2026-03-01T12:05"])
def test_an_invalid_time_is_one_clear_error_line(home: Path, moment: str) -> None:
    failed(recallog("episodic", "village", "baker", "--as-of", moment, "--home", home), 2, moment)


def test_a_position_in_a_partition_that_is_not_there_is_one_clear_error_line(home: Path) -> None:
    failed(recallog("episodic", "village", "baker", "--as-of", "1:0", "--home", home), 2, "there is no partition 1")


def test_an_invalid_option_is_named_as_it_was_written(home: Path) -> None:
    failed(
        recallog("episodic", "village", "baker", "--as-of", "noon", "--home", home),
        2,
        "error --as-of: should be a time",
    )
    failed(
        recallog("timeline", "village", "baker", "--since", "1", "--home", home), 2, "error --since: should be a time"
    )


def test_an_invalid_argument_as_json_has_the_path_of_the_argument(home: Path) -> None:
    result = recallog("episodic", "village", "baker", "--as-of", "noon", "--json", "--home", home)
    error = json.loads(result.err)
    assert (error["error"], error["path"], error["rule"]) == ("InvalidArgument", "as_of", "time")


def test_an_invalid_name_is_an_error(home: Path) -> None:
    failed(recallog("episodic", "the village ", "baker", "--home", home), 2, "space: 'the village '")
    failed(recallog("episodic", "village", " baker", "--home", home), 2, "agent: ' baker'")


def test_timeline_leads_from_page_to_page(home: Path) -> None:
    first = recallog("timeline", "village", "baker", "--limit", "10", "--home", home)
    assert len(first.out.splitlines()) == 10
    (before,) = re.findall(r"--before (\S+)", first.err)
    second = clean(recallog("timeline", "village", "baker", "--limit", "10", "--before", before, "--home", home))
    assert len(second.out.splitlines()) == 6
    assert "(nothing)" in recallog("timeline", "village", "nobody", "--home", home).out


def test_timeline_filters(home: Path) -> None:
    question = ["timeline", "village", "baker", "--json", "--home", home]
    thoughts = clean(recallog(*question, "--kind", "agent.thought", "--session", "s-1", "--since", "2026-03-01T12:13Z"))
    assert [item["event"]["turn"] for item in thoughts.json["items"]] == [13, 17]
    assert clean(recallog(*question, "--until", "2026-03-01T12:01Z")).json["items"][0]["event"]["turn"] == 0


def test_timeline_around_an_event_shows_it_among_its_neighbours(home: Path) -> None:
    shown = clean(
        recallog("timeline", "village", "baker", "--around", "e-8", "--entries-after", "1", "--home", home)
    ).out
    assert shown == (
        "  e-1  [turn 001][agent.thought] the right number [bold]1[/]\n"
        "  e-4  [turn 004][agent.spoke] the right number [bold]4[/]\n"
        "  e-5  [turn 005][agent.thought] the right number [bold]5[/]\n"
        "> e-8  [turn 008][agent.spoke] the right number [bold]8[/]\n"
        "  e-9  [turn 009][agent.thought] the right number [bold]9[/]\n"
    )
    question = ["timeline", "village", "baker", "--around", "e-8", "--session", "s-0", "--json", "--home", home]
    view = clean(recallog(*question)).json
    assert (view["anchor"]["id"], [each["id"] for each in view["after"]]) == ("e-8", ["e-9"])


def test_timeline_around_an_invisible_event_is_a_usage_error(home: Path) -> None:
    failed(recallog("timeline", "village", "baker", "--around", "e-2", "--home", home), 2, "may see no event 'e-2'")
    failed(recallog("timeline", "village", "baker", "--around", "e-99", "--home", home), 2, "may see no event 'e-99'")
    assert recallog("timeline", "village", "baker", "--around", "e-8", "--before", "0:3", "--home", home).code == 2


def test_recall_shows_id_author_date_and_text_of_each_hit_best_first(home: Path) -> None:
    shown = recallog("recall", "village", "baker", "number 12", "--top-k", "2", "--home", home)
    assert shown.code == 0
    best, text, further = shown.out.splitlines()
    assert re.fullmatch(r"\d\.\d{3}  e-12  baker  2026-03-01 12:12:00", best)
    assert text == "       the right number [bold]12[/]"
    assert re.fullmatch(r"       \+ e-\d+  baker: .+", further)
    assert shown.err == "16 memories compared by keyword, structure (weighted)\n"


@pytest.mark.parametrize("question", [["recall", "s", "baker", "bread"], ["search", "s", "baker", "bread"],
                                      ["entries", "s", "baker", "e-1"]])  # fmt: skip
def test_no_time_is_shown_that_ingest_has_invented(tmp_path: Path, question: list[str]) -> None:
    line = {"id": "e-1", "space": "s", "agent": "baker", "kind": "agent.spoke", "payload": {"text": "bread"}}
    home = tmp_path / "home"
    recallog("ingest", "-", "--home", home, stdin=json.dumps(line))
    shown = recallog(*question, "--home", home).out
    assert "e-1" in shown
    assert "2000" not in shown


def test_recall_shows_three_lines_of_a_long_text_and_with_full_all_of_it(tmp_path: Path) -> None:
    long = "The mill.\n\n" + "flour " * 100 + "\n" + "\n".join(f"line {n}" for n in range(20))
    recallog("publish", "village", "baker", "agent.spoke", long, "--home", tmp_path)
    question = ["recall", "village", "baker", "the mill", "--home", tmp_path]
    _, *cut = recallog(*question).out.splitlines()
    assert [line.split()[0] for line in cut] == ["The", "flour", "flour"]
    assert cut[-1].endswith("…")
    assert max(map(len, cut)) <= 100
    _, *whole = recallog(*question, "--full").out.splitlines()
    assert [line[7:] for line in whole] == long.splitlines()


def test_the_lines_of_a_hit_are_measured_in_columns(tmp_path: Path) -> None:
    recallog("publish", "village", "baker", "agent.spoke", "磨坊烧毁了。" * 24, "--home", tmp_path)
    _, *cut = recallog("recall", "village", "baker", "磨坊烧毁", "--home", tmp_path).out.splitlines()
    assert [len(line.strip().removesuffix("…")) for line in cut] == [46, 46, 46]
    assert cut[-1].endswith("…")


def test_recall_marks_weak_hits_and_says_first_if_nothing_is_close(tmp_path: Path) -> None:
    for session, text in (("s-1", "The mill burned."), ("s-2", "Nine sacks are still unpaid.")):
        recallog("publish", "village", "baker", "agent.spoke", text, "--session", session, "--home", tmp_path)
    question = "Which harbour master of Genoa unpaid?"
    first, head, text = recallog("recall", "village", "baker", question, "--home", tmp_path).out.splitlines()
    assert first == "nothing close; the nearest memories:"
    assert head.endswith("  (weak)")
    assert text.strip() == "Nine sacks are still unpaid."
    first, line = recallog("search", "village", "baker", question, "--home", tmp_path).out.splitlines()
    assert first == "nothing close; the nearest memories:"
    assert "  (weak)  " in line
    for command, near in (("recall", "unpaid sacks"), ("search", "unpaid sacks")):
        assert "weak" not in recallog(command, "village", "baker", near, "--home", tmp_path).out
        hits = recallog(command, "village", "baker", question, "--json", "--home", tmp_path).json["hits"]
        assert [hit["weak"] for hit in hits] == [True]


def test_recall_explains_each_hit_as_a_sum(home: Path) -> None:
    question = ["recall", "village", "baker", "number 12", "--home", home]
    shown = recallog(*question, "--top-k", "1", "--explain")
    _, _, parts, place = shown.out.splitlines()
    terms, total = parts.strip().split(" = ")
    assert sum(float(term.split()[1]) for term in terms.split(" + ")) == pytest.approx(float(total), abs=0.003)
    assert re.match(r" +e-12 at 0:12, of the views: generation \w+, checkpoint 0:29$", place)
    by = r"16 memories compared by keyword, structure \(weighted\)"
    assert re.fullmatch(by + r"; the views answered: generation \w+, checkpoint 0:29\n", shown.err)
    hit = recallog(*question, "--json").json["hits"][0]
    assert f"keyword {hit['parts']['keyword']:.3f}" in terms


@pytest.mark.parametrize(
    ("option", "value"),
    [("--channel", "smell"), ("--since", "noon"), ("--author", "the baker "), ("--min-similarity", "nan")],
)
def test_an_error_names_the_option_as_it_was_written(home: Path, option: str, value: str) -> None:
    failed = recallog("recall", "village", "baker", "number 12", option, value, "--home", home)
    assert failed.code == 2
    assert failed.err.startswith(f"error {option}: ")


@pytest.mark.models("prompt")
@pytest.mark.parametrize("as_json", [[], ["--json"]], ids=["text", "json"])
def test_bytes_that_are_no_text_are_wrong_use(home: Path, as_json: list[str]) -> None:
    scene = recallog("context", "village", "baker", "--scene", "\udcff", *as_json, "--home", home)
    assert (scene.code, scene.out) == (2, "")
    assert "--scene: is not valid text" in scene.err
    event_id = recallog("explain", "village", "baker", "\udcff", *as_json, "--home", home)
    assert (event_id.code, event_id.out) == (2, "")
    assert "event_id: is not valid text" in event_id.err


def test_an_error_of_a_filter_names_the_field(home: Path) -> None:
    result = recallog("recall", "village", "baker", "number", "--filter", '{"agnet": "baker"}', "--home", home)
    assert result.code == 2
    assert result.err.startswith("error --filter agnet: is not a field; did you mean agent?")


def test_recall_takes_every_filter(home: Path) -> None:
    filters = [
        "--author", "baker", "--kind", "agent.thought", "--session", "s-1", "--since", "2026-03-01T12:11Z", "--until",
        "2026-03-01T12:18Z", "--min-similarity", "0.1", "--fusion", "rrf", "--channel", "keyword", "--channel",
        "structure", "--after", "0:29", "--as-of", "0:25",
    ]  # fmt: skip
    view = recallog("recall", "village", "baker", "number", *filters, "--json", "--home", home).json
    assert sorted(hit["event"]["turn"] for hit in view["hits"]) == [13, 17]
    assert (view["fusion"], view["channels"]) == ("rrf", ["keyword", "structure"])
    page = recallog("search", "village", "baker", "number", *filters, "--json", "--home", home).json
    assert sorted(hit["turn"] for hit in page["hits"]) == [13, 17]


def test_search_shows_previews_with_their_ids_and_costs(home: Path) -> None:
    shown = recallog("search", "village", "baker", "number 12", "--limit", "1", "--home", home)
    (line,) = shown.out.splitlines()
    parts = r"\d\.\d{4}  e-12  2026-03-01 12:12:00  baker  agent\.spoke  ~7 tokens  the right number \[bold\]12\[/\]"
    assert re.fullmatch(parts, line)
    assert recallog("search", "village", "baker", "zebra", "--home", home).out == "(nothing)\n"
    assert (
        recallog("search", "village", "baker", "number", "--limit", "500", "--json", "--home", home).json["limit"]
        == 100
    )
    failed(recallog("search", "village", "baker", " ", "--home", home), 2, "query")


def test_entries_shows_whole_events_in_the_order_of_their_ids(home: Path) -> None:
    shown = recallog("entries", "village", "baker", "e-9", "e-2", "e-0", "nosuch", "--home", home)
    assert shown.out == (
        "e-9  0:9  2026-03-01 12:09:00  baker  agent.thought\n  the right number [bold]9[/]\n"
        "e-0  0:0  2026-03-01 12:00:00  baker  agent.spoke\n  the right number [bold]0[/]\n"
    )
    assert "unknown, or of events that baker may not see: e-2, nosuch" in shown.err
    view = clean(recallog("entries", "village", "baker", "e-9", "--json", "--home", home)).json
    assert [shown["event"]["id"] for shown in view["entries"]] == ["e-9"]
    none = recallog("entries", "village", "baker", "e-2", "--home", home)
    assert (none.code, none.out) == (1, "(nothing)\n")


def test_spaces_and_agents_are_counted(home: Path) -> None:
    (space,) = clean(recallog("spaces", "--json", "--home", home)).json["items"]
    assert (space["space"], space["events"], space["agents"], space["sessions"]) == ("village", 30, 2, 3)
    agents = clean(recallog("agents", "village", "--json", "--home", home)).json["items"]
    assert [(agent["name"], agent["events"]) for agent in agents] == [("baker", 16), ("miller", 14)]
    assert "village" in clean(recallog("spaces", "--home", home)).out
    assert "miller" in clean(recallog("agents", "village", "--home", home)).out


def test_tail_shows_the_last_twenty_records(home: Path) -> None:
    lines = clean(recallog("tail", "--home", home)).out.splitlines()
    assert len(lines) == 20
    assert lines[0] == "0:10  2026-03-01 12:10:00  village  miller  agent.spoke  the right number [bold]10[/]"


def test_tail_from_a_position(home: Path) -> None:
    lines = clean(recallog("tail", "--from", "0:28", "--json", "--home", home)).out.splitlines()
    assert [json.loads(line)["position"] for line in lines] == ["0:28", "0:29"]
    assert clean(recallog("tail", "--from", "0:30", "--home", home)).out == ""


def test_tail_of_a_space_shows_its_last_twenty_records(home: Path) -> None:
    clean(recallog("publish", "town", "mayor", "agent.spoke", "Order!", "--home", home))
    for n in range(25):
        clean(recallog("publish", "village", "smith", "agent.spoke", f"{n}", "--home", home))
    (line,) = clean(recallog("tail", "--space", "town", "--home", home)).out.splitlines()
    assert line.endswith("town  mayor  agent.spoke  Order!")


def test_status_shows_the_checkpoints_of_the_views(home: Path) -> None:
    status = clean(recallog("status", "--json", "--home", home)).json
    assert (status["records"], status["partitions"][0]["lag"]) == (30, 30)
    clean(recallog("episodic", "village", "baker", "--home", home))
    assert clean(recallog("status", "--json", "--home", home)).json["partitions"][0]["lag"] == 0
    assert "30 records, 1 space, 2 agents, 3 sessions" in recallog("status", "--home", home).out


@pytest.mark.parametrize(
    ("checkpoint", "unread", "building", "shows"),
    [
        (-1, 0, None, "0 % are indexed; of the rest recall compares words\n"),
        (-1, 0, 59, "30 % are indexed; of the rest recall compares words\n"),
        (149, 0, None, "75 % are indexed; of the rest recall compares words\n"),
        (199, 80, None, "60 % are indexed; of the rest recall compares words\n"),
        (199, 0, None, ""),
    ],
)
def test_status_says_how_far_the_index_is(
    home: Path, checkpoint: int, unread: int, building: int | None, shows: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`unread` events are those before the checkpoint that the model has not read: the newest are read first."""

    async def status() -> Status:
        async with Memory.open(home) as memory:
            await memory.catch_up()
            return await memory.admin.status()

    found = run(status())
    row = found.partitions[0].model_copy(
        update={
            "views": "index", "end": 200, "checkpoint": checkpoint, "lag": 199 - checkpoint + unread,
            "building": None if building is None else "g", "building_checkpoint": building,
        }
    )  # fmt: skip
    shown = found.model_copy(update={"partitions": (*found.partitions, row), "unreflected": ()})
    rendering.renderer(Status)(shown)
    assert capsys.readouterr().err == shows


def test_status_of_a_space(home: Path) -> None:
    detail = clean(recallog("status", "--space", "village", "--json", "--home", home)).json
    assert {kind["name"]: kind["events"] for kind in detail["kinds"]} == {"agent.spoke": 15, "agent.thought": 15}
    assert "miller" in clean(recallog("status", "--space", "village", "--home", home)).out
    assert "the space has no events" in recallog("status", "--space", "nowhere", "--home", home).out


@pytest.mark.parametrize(
    ("command", "shows"),
    [
        (["status"], "0 records"), (["spaces"], "space"), (["tail"], ""), (["pending"], "no trigger is due"),
        (["verify"], "clean 0 records"), (["rebuild"], "rebuilt 0 records"), (["dead-letters", "list"], "no dead"),
        (["export"], ""), (["rebuild", "--abort"], "no rebuild"), (["dead-letters", "retry"], "0 of 0 applied"),
    ],
)  # fmt: skip
def test_every_command_answers_before_any_event(tmp_path: Path, command: list[str], shows: str) -> None:
    without_events(tmp_path)
    assert shows in clean(recallog(*command, "--home", tmp_path)).out


# Verify and rebuild.


def test_verify_finds_a_planted_corruption_and_rebuild_repairs_it(home: Path) -> None:
    shown = clean(recallog("verify", "--home", home)).out
    assert shown.startswith("clean 30 records")
    tamper(home / "views.db", "village", "miller")
    found = recallog("verify", "--home", home)
    assert found.code == 1
    assert "differs episodic.own / village / miller" in found.out
    assert "recallog rebuild" in found.out
    as_json = recallog("verify", "--json", "--home", home)
    assert as_json.code == 1
    assert [table["table"] for table in as_json.json["tables"] if table["difference"]] == ["episodic.own"]
    assert "rebuilt 30 records" in clean(recallog("rebuild", "--home", home)).out
    assert clean(recallog("verify", "--home", home)).out == shown


def test_rebuild_reports_as_json(home: Path) -> None:
    (report,) = clean(recallog("rebuild", "--json", "--home", home)).json["items"]
    assert (report["views"], report["records"], report["replaced"]) == ("built-in", 30, None)


def test_dead_letters_of_a_clean_ledger(home: Path) -> None:
    assert clean(recallog("dead-letters", "list", "--json", "--home", home)).json == {"items": [], "next": None}
    assert clean(recallog("dead-letters", "retry", "--home", home)).out == "0 of 0 applied\n"
    failed(recallog("dead-letters", "show", "0:3", "--home", home), 2, "0:3 is not a dead letter")
    failed(recallog("dead-letters", "show", "0:99", "--home", home), 2, "no position 0:99")
    failed(recallog("dead-letters", "show", "x", "--home", home), 2, "position: should be a position.*not .x.")


@pytest.mark.parametrize("command", [["tail"], ["export"], ["status"], ["verify"], ["spaces"]])
def test_the_folder_can_be_set_in_the_environment(home: Path, command: list[str]) -> None:
    assert recallog(*command, RECALLOG_HOME=str(home)) == recallog(*command, "--home", home)


def test_an_invalid_environment_variable_is_a_usage_error(home: Path) -> None:
    failed(
        recallog("status", "--home", home, RECALLOG_LOCK_WAIT_SECONDS="-1"),
        2,
        "RECALLOG_LOCK_WAIT_SECONDS: should be greater",
    )
