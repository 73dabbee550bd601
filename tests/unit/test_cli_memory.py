"""The commands about memory, prompts and reflections of agents: their output and exit codes."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from filelock import FileLock

from recallog import Memory
from recallog_schemas.token_estimate import estimate_tokens
from recallog_service.cli.rendering import age_of
from support.chat_server import ChatServer, belief, status
from support.cli import Result, recallog, without_events
from support.events import event, publish_in, run
from support.terminal import on_a_terminal

if TYPE_CHECKING:
    from recallog.views import ContextView

RUDE = "[bold]Üb\x1b[31mel\x07 :apple: \\[/]"
"""Markup, a control sequence, and what others would draw as an apple."""
SHOWN = "[bold]Üb\\x1b[31mel\\x07 :apple: \\[/]"


def event_of(kind: str, text: str, *, agent: str = "widow", **fields: Any) -> Any:
    field = "belief" if kind == "agent.reflected" else "text"
    based_on = {"based_on": fields.pop("based_on")} if "based_on" in fields else {}
    return event(kind, agent=agent, at="2026-03-01T12:00:00Z", payload={field: text, **based_on}, **fields)


def configured(agent: str, **settings: Any) -> Any:
    return event("agent.configured", agent=agent, payload=settings)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A village: the widow reflects after three events, her second reflection is due, the smith does not reflect."""
    publish_in(
        tmp_path / "home",
        event_of("world.observed", "The chest is gone.", agent="narrator", id="w-1", turn=1),
        configured("widow", reflection_threshold=3),
        event_of("agent.thought", "Only two keys are known.", id="t-1", turn=2),
        event_of("agent.spoke", "Where were you on Sunday?", id="s-1", turn=3, audience=["smith"]),
        event_of("agent.reflected", "The smith took it.", id="b-1", turn=4, based_on=["w-1", "t-1"]),
        event_of("agent.thought", "I copied a key once.", id="t-2", agent="smith", turn=5),
        event_of("agent.spoke", "He never answers.", id="s-2", turn=6),
        event_of("world.observed", "The chest stands in the quarry.", agent="narrator", id="w-2", turn=7),
        event_of("agent.thought", "So it was not the smith.", id="t-3", turn=8),
    )
    return tmp_path / "home"


@pytest.fixture
def rude(tmp_path: Path) -> Path:
    """A folder with an event whose text contains control characters of terminals."""
    publish_in(
        tmp_path / "rude",
        configured("widow", reflection_threshold=1),
        event_of("world.observed", RUDE, agent="narrator", id="w-1"),
        event_of("agent.reflected", RUDE, id="b-1", based_on=["\x1b[1m"]),
        event_of("agent.spoke", RUDE, id="s-1"),
        event_of("world.observed", RUDE, agent="narrator", id="w-2"),
    )
    return tmp_path / "rude"


def clean(result: Result) -> Result:
    assert result.code == 0, result
    assert "Traceback" not in result.err
    return result


def failed(result: Result, code: int, says: str) -> None:
    """One clear line on stderr, the right exit code, nothing on stdout."""
    assert result.code == code, result
    assert re.search(says, result.err), result.err
    assert len(result.err.splitlines()) == 1, result.err
    assert result.out == ""


# All commands.

QUESTIONS: list[list[str]] = [
    ["salient", "village", "widow"],
    ["explain", "village", "widow", "w-1"],
    ["beliefs", "village", "widow"],
    ["scene", "village"],
    ["context", "village", "widow"],
    ["reflection", "village", "widow"],
]


@pytest.mark.models("prompt")
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question[0])
def test_each_command_answers_as_of_a_time(home: Path, question: list[str]) -> None:
    then = clean(recallog(*question, "--as-of", "0:0", "--json", "--home", home)).json
    assert then.get("checkpoint") == {"partition": 0, "offset": 0}
    assert then != clean(recallog(*question, "--json", "--home", home)).json


@pytest.mark.models("prompt")
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question[0])
def test_an_invalid_time_or_name_is_one_clear_error_line(home: Path, question: list[str]) -> None:
    failed(recallog(*question, "--as-of", "0:99", "--home", home), 2, "0:99")
    failed(recallog(*question, "--as-of", "noon", "--home", home), 2, "--as-of: should be a time.*noon")
    failed(recallog(question[0], "the village ", *question[2:], "--home", home), 2, "space: 'the village '")


@pytest.mark.models("prompt")
@pytest.mark.parametrize(
    ("question", "shows"),
    [
        (["salient", "village", "widow"], "(no salient memories)\n"),
        (["beliefs", "village", "widow"], "(no beliefs)\n"),
        (["scene", "village"], "(no scene)\n"),
        (["context", "village", "widow"], "IDENTITY\nYou are widow.\n"),
        (["reflection", "village", "widow"], "never due"),
        (["pending", "village"], "no trigger is due\n"),
    ],
)
def test_each_command_answers_before_any_event(tmp_path: Path, question: list[str], shows: str) -> None:
    without_events(tmp_path)
    result = recallog(*question, "--home", tmp_path)
    assert (result.code, result.out[: len(shows)]) == (1, shows)
    assert "the memory has no events yet; write some with recallog publish or recallog ingest\n" in result.err


def test_react_answers_nothing_before_any_event(tmp_path: Path) -> None:
    without_events(tmp_path)
    assert clean(recallog("react", "--home", tmp_path)).out == "no trigger is due\n"
    failed(recallog("react", "village", "--home", tmp_path), 1, "the memory has no events yet")


@pytest.mark.models("prompt")
@pytest.mark.parametrize(
    "arguments",
    [["salient", "village", "widow", "--top-k", "0"], ["salient", "village", "widow", "--turn", "-1"],
     ["context", "village", "widow", "--budget-tokens", "0"], ["explain", "village", "w-1"], ["scene"],
     ["salient", "village", "widow", "-x"]],
)  # fmt: skip
def test_a_usage_error_exits_with_2(home: Path, arguments: list[str]) -> None:
    assert recallog(*arguments, "--home", home).code == 2


@pytest.mark.models("prompt")
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question[0])
def test_control_characters_in_texts_do_not_reach_the_terminal(rude: Path, question: list[str]) -> None:
    done = on_a_terminal(*question, "--home", rude)
    assert done.code == 0, done
    assert SHOWN in done.shown
    assert "\x07" not in done.written
    assert "\x1b[31mel" not in done.written


def test_an_error_quotes_the_wrong_value_as_it_was_written(home: Path) -> None:
    failed(recallog("episodic", "a[bold]:apple:[/] ", "widow", "--home", home), 2, re.escape("'a[bold]:apple:[/] '"))


# salient


@pytest.mark.models("prompt")
def test_salient_shows_the_most_salient_events_oldest_first(home: Path) -> None:
    result = clean(recallog("salient", "village", "widow", "smith", "--top-k", "2", "--home", home))
    assert result.out == (
        "[turn 004][agent.reflected][sal=0.60] The smith took it.\n"
        "[turn 007][world.observed][narrator][sal=0.57] The chest stands in the quarry.\n"
    )
    assert result.err == (
        "7 events considered, in turn 8, by 0.30 relevance + 0.40 recency + 0.30 importance\n"
    )  # fmt: skip


def test_salient_measures_recency_from_the_given_turn(home: Path) -> None:
    question = ["salient", "village", "widow", "--json", "--home", home]
    now, later = clean(recallog(*question)).json, clean(recallog(*question, "--turn", "100")).json
    assert (now["turn"], later["turn"]) == (8, 100)
    assert later["memories"][0]["recency"] < now["memories"][0]["recency"]


def test_a_query_that_begins_with_a_dash_follows_two_dashes(home: Path) -> None:
    question = ["salient", "village", "widow", "--json", "--home", home]
    assert clean(recallog(*question, "--", "-- Übel?")).json["query"] == "-- Übel?"


# explain


@pytest.mark.models("prompt")
def test_explain_shows_why_an_agent_remembers_an_event(home: Path) -> None:
    lines = clean(recallog("explain", "village", "widow", "w-2", "--query", "chest", "--home", home)).out.splitlines()
    assert lines == [
        "remembered",
        "  it is among the newest 8 events that widow may see (1 newer)",
        "  in the prompt under CURRENT SCENE, OUTPUT FORMAT",
        "  [turn 007][world.observed][narrator][sal=0.63] The chest stands in the quarry.",
        "  0.30 x relevance 0.200 + 0.40 x recency 0.905 + 0.30 x importance 0.700 = 0.632",
        "  rank 1 of 7 by salience in turn 8",
    ]


@pytest.mark.models("prompt")
def test_explain_shows_nothing_of_an_invisible_event(home: Path) -> None:
    result = clean(recallog("explain", "village", "widow", "t-2", "--home", home))
    assert result.out.startswith("not visible\n  it is neither by widow nor addressed to widow")
    assert "key" not in result.out
    assert clean(recallog("explain", "village", "widow", "t-2", "--json", "--home", home)).json["memory"] is None


@pytest.mark.models("prompt")
def test_explain_exits_with_1_for_an_unknown_event(home: Path) -> None:
    result = recallog("explain", "village", "widow", "nosuch", "--home", home)
    assert (result.code, result.out.splitlines()[0]) == (1, "unknown")
    assert result.err == "list the ids: recallog tail --space village --json\n"
    as_json = recallog("explain", "village", "widow", "nosuch", "--json", "--home", home)
    assert (as_json.code, as_json.json["verdict"], as_json.err) == (1, "unknown", "")
    assert recallog("explain", "village", "widow", "w-2", "--as-of", "0:2", "--home", home).code == 1


# beliefs and scene


@pytest.mark.models("beliefs")
def test_beliefs_are_shown_with_their_evidence(home: Path) -> None:
    shown = clean(recallog("beliefs", "village", "widow", "--home", home))
    assert shown == Result(0, "[turn 004][agent.reflected] The smith took it.\n  based on w-1, t-1\n", "")
    (found,) = clean(recallog("beliefs", "village", "widow", "--json", "--home", home)).json["beliefs"]
    assert (found["text"], found["based_on"]) == ("The smith took it.", ["w-1", "t-1"])


@pytest.mark.models("beliefs")
def test_beliefs_that_another_may_see(home: Path) -> None:
    publish_in(home, event_of("agent.reflected", "I never liked him.", audience=["priest"], turn=9))
    assert "liked" in clean(recallog("beliefs", "village", "widow", "--reader", "priest", "--home", home)).out
    others = clean(recallog("beliefs", "village", "widow", "--reader", "smith", "--home", home)).out
    assert others == "[turn 004][agent.reflected][widow] The smith took it.\n  based on w-1, t-1\n"


def test_the_scene_shows_shared_events(home: Path) -> None:
    assert clean(recallog("scene", "village", "--home", home)) == Result(0, "The chest stands in the quarry.\n", "")
    assert clean(recallog("scene", "village", "--as-of", "0:4", "--home", home)).out == "The chest is gone.\n"


# context


def prompt(home: Path, **arguments: Any) -> "ContextView":
    async def work() -> "ContextView":
        async with Memory.open(home) as memory:
            return await memory.context("village", "widow", **arguments)

    return run(work())


@pytest.mark.models("prompt")
def test_context_prints_the_prompt_and_nothing_else(home: Path) -> None:
    result = clean(recallog("context", "village", "smith", "--home", home))
    assert result.out.startswith("IDENTITY\nYou are smith.\n")
    assert re.fullmatch(r"about \d+ tokens; 0 lines left out, 0 cut\n", result.err)


@pytest.mark.models("prompt")
def test_context_takes_every_option_of_a_prompt(home: Path) -> None:
    arguments = {"scene": "-- night --", "query": "-who?", "extra": "--extra", "output_format": "- one line", "turn": 9}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in arguments.items()]
    expected = prompt(home, **arguments)
    assert clean(recallog("context", "village", "widow", *options, "--home", home)).out == f"{expected}\n"


@pytest.mark.models("prompt")
def test_a_prompt_in_a_pipe_has_the_texts_unchanged(rude: Path) -> None:
    shown = clean(recallog("context", "village", "widow", "--extra", "a\ttab", "--home", rude)).out
    assert RUDE in shown
    assert "a\ttab" in shown


@pytest.mark.models("prompt")
def test_context_reports_dropped_sections_and_a_due_reflection(home: Path) -> None:
    result = clean(recallog("context", "village", "widow", "--budget-tokens", "150", "--home", home))
    assert re.fullmatch(
        r"about \d+ tokens; [1-9]\d* lines left out, \d+ cut\n"
        r"a reflection is due, and the prompt asks for it: recallog reflection village widow\n",
        result.err,
    )
    assert '"kind": "agent.reflected"' in result.out


@pytest.mark.models("prompt")
def test_a_budget_that_is_too_small_is_a_wrong_use_that_says_the_least_one(home: Path) -> None:
    result = recallog("context", "village", "widow", "--budget-tokens", "20", "--home", home)
    assert (result.code, result.out) == (2, "")
    (least,) = re.findall(r"at least (\d+), not 20", result.err)
    assert prompt(home, budget_tokens=int(least)).tokens == int(least)


@pytest.mark.models("prompt")
def test_context_as_json(home: Path) -> None:
    found = clean(recallog("context", "village", "widow", "--budget-tokens", "200", "--json", "--home", home)).json
    expected = prompt(home, budget_tokens=200)
    assert found == json.loads(expected.model_dump_json())
    assert (found["tokens"], found["budget_tokens"], found["known"]) == (estimate_tokens(found["text"]), 200, True)
    assert found["checkpoint"] == {"partition": 0, "offset": 8}
    assert found["reflection"]["due"]


# reflection


@pytest.mark.models("beliefs")
def test_a_due_reflection_is_shown_with_its_first_event_and_evidence(home: Path) -> None:
    result = clean(recallog("reflection", "village", "widow", "--home", home))
    assert result.out == (
        "due since 0:8: 3 of 3 events since the last one at 0:4\n"
        "[turn 006][agent.spoke] He never answers.\n"
        "[turn 007][world.observed][narrator] The chest stands in the quarry.\n"
        "[turn 008][agent.thought] So it was not the smith.\n"
    )
    assert result.err == "answer it: recallog react village\n"


@pytest.mark.models("beliefs")
def test_a_reflection_that_is_not_due(home: Path) -> None:
    assert clean(recallog("reflection", "village", "widow", "--as-of", "0:7", "--home", home)) == Result(
        0, "not due: 2 of 3 events since the last one at 0:4\n", ""
    )


@pytest.mark.models("beliefs")
def test_an_agent_without_reflection_is_shown_with_the_setting_that_enables_it(home: Path) -> None:
    result = clean(recallog("reflection", "village", "smith", "--home", home))
    assert result.out == "never due: smith has no threshold; 5 events so far\n"
    (command,) = re.findall(r"set a threshold: recallog (.*)", result.err)
    assert command == """publish village smith agent.configured --payload '{"reflection_threshold": 20}'"""


@pytest.mark.models("beliefs")
def test_only_the_newest_counted_events_are_shown(home: Path) -> None:
    publish_in(home, *(event_of("agent.spoke", f"{n}", turn=9) for n in range(30)))
    result = clean(recallog("reflection", "village", "widow", "--home", home))
    assert len(result.out.splitlines()) == 21
    assert "the newest 20 of these events are shown" in result.err


# react


@pytest.fixture
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore the proxy settings of the developer."""
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.mark.models("beliefs")
def test_react_answers_each_due_reflection_once(home: Path) -> None:
    result = clean(recallog("react", "--home", home))
    assert result.err == ""
    line, evidence = result.out.splitlines()
    assert line.startswith("0:9  village  widow  agent.reflected  What is notable in the last 3 things I know")
    assert evidence == "  based on s-2, w-2, t-3"
    assert clean(recallog("react", "--home", home)).out == "no trigger is due\n"
    assert clean(recallog("react", "--json", "--home", home)).json == {"items": []}


@pytest.mark.models("beliefs")
def test_react_as_json(home: Path) -> None:
    (reaction,) = clean(recallog("react", "--json", "--home", home)).json["items"]
    assert (reaction["agent"], reaction["kind"]) == ("widow", "agent.reflected")
    assert reaction["based_on"] == ["s-2", "w-2", "t-3"]


@pytest.mark.models("beliefs")
def test_react_in_one_space_leaves_the_others_alone(home: Path) -> None:
    recallog("publish", "town", "mayor", "agent.spoke", "Order!", "--home", home)
    assert clean(recallog("react", "town", "--home", home)).out == "no trigger is due\n"
    assert clean(recallog("react", "village", "--home", home)).out != "no trigger is due\n"


@pytest.mark.models("beliefs")
@pytest.mark.usefixtures("_no_proxy")
def test_react_calls_the_model_at_a_url_with_the_key_of_the_environment(home: Path) -> None:
    with ChatServer(belief("It was not the smith.", "t-3")) as server:
        result = clean(
            recallog(
                "react", "--model", f"{server.url}#small", "--home", home,
                RECALLOG_MODEL_API_KEY="sk-secret",
            )
        )  # fmt: skip
    assert result.out.endswith("widow  agent.reflected  It was not the smith.\n  based on t-3\n")
    (request,) = server.requests
    assert request.headers["authorization"] == "Bearer sk-secret"
    assert request.json["model"] == "small"


@pytest.mark.models("beliefs")
@pytest.mark.usefixtures("_no_proxy")
def test_the_model_can_be_set_in_the_environment(home: Path) -> None:
    with ChatServer(belief("It was not the smith.", "t-3")) as server:
        environment = {"RECALLOG_MODEL": f"{server.url}#small"}
        assert "It was not the smith." in clean(recallog("react", "--home", home, **environment)).out


@pytest.mark.models("beliefs")
@pytest.mark.usefixtures("_no_proxy")
def test_a_failed_reflection_exits_with_1_and_is_no_longer_due(home: Path) -> None:
    with ChatServer(status(400, "too rude")) as server:
        result = recallog("react", "--model", f"{server.url}#small", "--home", home)
    assert (result.code, result.err) == (1, "")
    assert re.match("0:9  village  widow  reflection.failed  .*too rude", result.out)
    assert clean(recallog("react", "--home", home)).out == "no trigger is due\n"


@pytest.mark.models("beliefs")
@pytest.mark.usefixtures("_no_proxy")
def test_a_misconfigured_reflector_exits_with_3_and_reflections_stay_due(home: Path) -> None:
    failed(recallog("react", "--model", "http://127.0.0.1:1", "--home", home), 3, "no model is named")
    failed(recallog("react", "--model", "ftp://x#small", "--home", home), 3, "URL of the model must be")
    with ChatServer(status(401)) as server:
        failed(recallog("react", "--model", f"{server.url}#small", "--home", home), 3, "API key")
    assert clean(recallog("reflection", "village", "widow", "--json", "--home", home)).json["due"]


@contextmanager
def held(path: Path) -> Iterator[None]:
    path.touch()
    with FileLock(path):
        yield


def test_react_exits_with_3_while_another_process_reacts(home: Path) -> None:
    with held(home / "reactors.lock"):
        result = recallog("react", "--home", home, RECALLOG_LOCK_WAIT_SECONDS="0.2")
        failed(result, 3, r"another process has held .*reactors\.lock")


def test_help_of_react_warns_that_texts_leave_the_machine_and_has_no_key_option() -> None:
    shown = " ".join(clean(recallog("react", "--help")).out.split())
    assert "With a model, texts leave this machine" in shown
    assert "--key" not in shown
    assert "--api-key" not in shown


# status


@pytest.mark.models("beliefs")
def test_status_shows_due_reflections_and_agents_without_reflection(home: Path) -> None:
    publish_in(home, event_of("agent.spoke", "I am the smith.", agent="smith", turn=31))
    clean(recallog("scene", "village", "--home", home))
    result = clean(recallog("status", "--home", home))
    assert (
        "\n1 trigger is due: recallog react\n"
        "space    agent  kind            about\n"
        "village  widow  reflection.due  3 of 3 events\n"
    ) in trimmed(result.out)
    assert "\n1 agent past turn 30 without reflection" in result.out
    assert "\nvillage  smith  31\n" in trimmed(result.out)
    assert result.err == (
        "set a threshold: recallog publish village smith agent.configured "
        """--payload '{"reflection_threshold": 20}'\n"""
    )


@pytest.mark.models("long_term")
def test_status_says_how_long_the_oldest_trigger_has_waited_and_what_it_is(home: Path) -> None:
    ended = datetime.now(UTC) - timedelta(hours=2, minutes=5)
    note = {"namespace": ["working"], "key": "notes", "value": "LESSON: Bread burns after forty minutes."}
    publish_in(
        home,
        event("item.put", payload=note),
        event("session.ended", session="s-1", payload={}, at=ended.isoformat()),
    )
    clean(recallog("scene", "village", "--home", home))
    shown = clean(recallog("status", "--home", home)).out
    assert ", the oldest since 2 h 5 min (migration.due of baker in village): recallog react" in " ".join(shown.split())
    oldest = json.loads(clean(recallog("status", "--home", home, "--json")).out)["oldest_pending"]
    assert (oldest["kind"], oldest["agent"]) == ("migration.due", "baker")


@pytest.mark.parametrize(
    ("age", "shown"),
    [
        (timedelta(), "0 s"),
        (timedelta(seconds=61), "1 min 1 s"),
        (timedelta(minutes=60), "1 h"),
        (timedelta(days=3, hours=2, minutes=5), "3 d 2 h"),
    ],
)
def test_a_duration_is_shown_in_its_two_largest_units(age: timedelta, shown: str) -> None:
    assert age_of(age) == shown


@pytest.mark.models("beliefs")
def test_status_shows_ten_agents_and_how_many_more(home: Path) -> None:
    publish_in(home, *(event_of("agent.spoke", "Me too.", agent=f"guest-{n:02}", turn=31) for n in range(12)))
    clean(recallog("scene", "village", "--home", home))
    shown = clean(recallog("status", "--home", home)).out
    assert "\n12 agents past turn 30 without reflection" in shown
    assert "guest-09" in shown
    assert "guest-10" not in shown
    assert "and 2 more: recallog status --json" in shown
    assert len(json.loads(recallog("status", "--json", "--home", home).out)["unreflected"]) == 12


def test_status_without_reflecting_agents_does_not_mention_reflection(tmp_path: Path) -> None:
    publish_in(tmp_path, event_of("agent.spoke", "Bread!", turn=3))
    clean(recallog("scene", "village", "--home", tmp_path))
    shown = clean(recallog("status", "--home", tmp_path))
    assert shown.err == ""
    assert "reflection" not in shown.out


def trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
