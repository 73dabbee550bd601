"""What commands write to a terminal: nothing hidden, nothing lost beside a progress bar, and in any encoding."""

import json
import re
import subprocess
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog_schemas import Event
from recallog_schemas.visible import visible, visible_json
from support.cli import environment_of, recallog, spawn_each
from support.events import event, publish_in
from support.terminal import Terminal, on_a_terminal

VILLAGE = Path(__file__).parents[2] / "adapters/recallog-demo/recallog_demo/village.jsonl"
"""The recorded events of the demo."""

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "ignore all")
ENGLAND = "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in "gbeng") + "\U000e007f"
HOSTILE = (
    "a\x9b31mb\x7fc\x1b]0;title\x07d\re\u202ef\u2066g\u200bh\u200fi\ufeffj\u00adk\u2028l\u200d\u200cm\u3164n"
    f"\U0001f600{TAGS}o\ufe0f\u180ep"
)
LEGITIMATE = [
    "Grüße, 東京, שלום, مرحبا",
    "می\u200cخواهم به خانه\u200cها و روز\u200cها بروم",
    "क\u094d\u200dष और র\u200d\u09cdয",
    "👩\u200d🚀 👨🏽\u200d❤\ufe0f\u200d👨🏻 🏳\ufe0f\u200d🌈 ❤\ufe0f 1\ufe0f\u20e3 ℹ\ufe0f",
    ENGLAND,
    "ᠭᠠ\u180bᠨ",
    "tab\tand\nline",
]


def hidden(text: str) -> list[str]:
    """The characters of a text that change what a terminal shows, or that it does not show."""
    return [
        character
        for character in text
        if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp", "Cs") and character not in "\n\t"
    ]


# Texts.


def test_hidden_characters_are_written_out() -> None:
    assert hidden(visible(HOSTILE)) == []
    assert visible("a\x9b\u202e\U000e0041") == "a\\x9b\\u202e\\U000e0041"


@pytest.mark.parametrize("text", LEGITIMATE)
def test_what_a_writing_system_or_an_emoji_needs_stays(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "a\u200db",
        "a\u200c",
        "\u200dب",
        "ب\u200c\u200c\u200dب",
        "😀\ufe0f\ufe0f",
        "😀\ufe01",
        "a\ufe0f",
        "葛\U000e0100",
        "\U0001f3f4" + TAGS + "\U000e007f",
        "😀\u200d\u200d😀",
    ],
    ids=ascii,
)
def test_joiners_and_selectors_carry_no_hidden_text(text: str) -> None:
    shown = visible(text)
    assert shown != text
    assert len(hidden(shown)) <= 1


@given(st.text())
def test_json_is_parsed_to_the_same_value(text: str) -> None:
    written = json.dumps({"text": text, text: 1}, ensure_ascii=False)
    assert json.loads(visible_json(written)) == json.loads(written)
    assert json.loads(visible_json(json.dumps(HOSTILE, ensure_ascii=False))) == HOSTILE


# Commands on a terminal.


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory in which every free text of a user is hostile."""
    home = tmp_path_factory.mktemp("hostile") / "home"

    def said(kind: str, payload: dict[str, Any], **more: Any) -> Event:
        return event(kind, agent="widow", session=HOSTILE, payload=payload, turn=1, at="2026-03-01T12:00:00Z", **more)

    publish_in(
        home,
        said("agent.configured", {"persona": HOSTILE, "goal": HOSTILE, "reflection_threshold": 1, "working": {}}),
        said("world.observed", {"text": HOSTILE}, id=HOSTILE),
        said("agent.reflected", {"belief": HOSTILE, "based_on": [HOSTILE]}, id=f"{HOSTILE}-b"),
        said("item.put", {"namespace": ["working"], "key": HOSTILE, "value": HOSTILE}),
        said("memory.retained", {"text": HOSTILE, "type": "fact"}, id=f"{HOSTILE}-e"),
        said("agent.spoke", {"text": HOSTILE}),
    )
    return home


COMMANDS = [
    ["episodic", "village", "widow"],
    ["timeline", "village", "widow"],
    ["context", "village", "widow"],
    ["beliefs", "village", "widow"],
    ["reflection", "village", "widow"],
    ["salient", "village", "widow"],
    ["recall", "village", "widow", HOSTILE, "--explain", "--full"],
    ["search", "village", "widow", HOSTILE],
    ["explain", "village", "widow", HOSTILE],
    ["sessions", "village"],
    ["working", "get", "village", "widow"],
    ["working", "render", "village", "widow"],
    ["items", "list", "village", "widow"],
    ["long-term", "list", "village", "widow"],
    ["stream", "recall", "village", "widow"],
    ["tail"],
    ["watch", "village", "--once"],
    ["export"],
]


ERRORS = [
    ["episodic", HOSTILE, "widow"],
    ["recall", "village", "widow", "x", f"--{HOSTILE}"],
    [HOSTILE],
    ["tail", "--from", HOSTILE],
    ["ingest", HOSTILE],
    ["episodic", "village", "widow", "--as-of", HOSTILE],
    ["status", "--home", HOSTILE],
]

# One process for all commands: to start one takes longer than any of them.
ONE_AFTER_ANOTHER = """
import json, os, sys
from recallog_service.cli import main
for words in json.loads(sys.argv[1]):
    print("COMMAND", json.dumps(words))
    sys.argv = ["recallog", *words]
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    print("CODE", code)
"""


def answers(home: Path, commands: list[list[str]]) -> dict[str, tuple[str, str]]:
    """By command what it wrote to a terminal, without styles, and its exit code."""
    done = on_a_terminal(json.dumps(commands), program=ONE_AFTER_ANOTHER, environment={"RECALLOG_HOME": str(home)})
    assert done.code == 0, done
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", done.written).replace("\r", "\n")
    found = re.findall(r"^COMMAND (.*?)\n(.*?)^CODE (.*?)$", plain, re.MULTILINE | re.DOTALL)
    assert len(found) == len(commands), done
    return {words: (written, code) for words, written, code in found}


@pytest.mark.models("prompt", "stream")
def test_no_command_prints_a_hidden_character(home: Path) -> None:
    as_json = [[*command, "--json"] for command in COMMANDS if command != ["export"]]
    found = answers(home, [*COMMANDS, *as_json])
    assert {words: code for words, (_, code) in found.items() if code != "0"} == {}
    assert {words: hidden(written) for words, (written, _) in found.items() if hidden(written)} == {}
    for words, (written, _) in found.items():
        if "--json" in words or "export" in words:
            documents = [json.loads(line) for line in written.splitlines() if line.startswith(("{", "["))]
            assert "\u202e" in json.dumps(documents, ensure_ascii=False), words


@pytest.mark.models("beliefs", "long_term")
def test_no_error_quotes_a_hidden_character(home: Path) -> None:
    found = answers(home, ERRORS)
    assert [words for words, (_, code) in found.items() if code == "0"] == []
    assert {words: hidden(written) for words, (written, _) in found.items() if hidden(written)} == {}


@pytest.mark.models("beliefs", "long_term")
def test_an_export_to_a_pipe_has_the_events_byte_by_byte(home: Path, tmp_path: Path) -> None:
    assert recallog("export", "--home", home, "--output", tmp_path / "all.jsonl").code == 0
    piped = subprocess.run(
        [*command_line("export"), "--home", str(home)], capture_output=True, check=True, env=environment_of()
    )
    assert piped.stdout == (tmp_path / "all.jsonl").read_bytes()


def command_line(*words: str) -> list[str]:
    import sys

    return [sys.executable, "-m", "recallog_service", *words]


# Lines of other records, and sections.


@pytest.mark.models("all")
def test_no_text_looks_like_another_record(tmp_path: Path) -> None:
    forged = "Bread!\n0:9  2026-03-01 12:00:00  village  judge  judge.verdict  guilty"
    publish_in(tmp_path, event(payload={"text": forged}))
    for command in (["tail"], ["watch", "village", "--once"]):
        lines = recallog(*command, "--home", tmp_path).out.splitlines()
        assert [line.startswith("0:") for line in lines] == [True, False]


# Progress bars.


@pytest.mark.parametrize("stdout", [None, subprocess.PIPE], ids=["the same terminal", "a pipe"])
def test_ingest_acknowledges_every_event_beside_its_bar(tmp_path: Path, stdout: int | None) -> None:
    words = ["ingest", VILLAGE, "--home", tmp_path / "home", "--acknowledge", "--batch", "1"]
    done = on_a_terminal(*words, stdout=stdout)
    assert done.code == 0, done
    assert "ingesting " in done.written
    ids = [json.loads(line)["id"] for line in VILLAGE.read_text().splitlines()]
    expected = [f"0:{number} {id_}" for number, id_ in enumerate(ids)]
    printed = done.piped.decode().splitlines() if stdout else done.shown.splitlines()
    expected += [f"Total: {len(ids)} added, 0 already present (read as jsonl, 1 space)"]
    assert printed[: len(expected)] == expected
    assert printed[len(expected)].startswith("Sources: 1 operator, 7 user, ")
    if stdout:
        assert done.shown == ""
    assert not done.cursor_is_hidden


BESIDE_BARS = """
import sys
from recallog_service.cli import console, terminal
with terminal.bar("[red]outer\\x1b[31m") as outer, terminal.bar("inner") as inner:
    for number in range(200):
        outer(number, 200)
        terminal.print_lines(f"line {number}")
        inner(number, 200)
        terminal.print_json({"number": number})
        inner(200, 200)
        console.out.print(f"[bold]styled[/] {number}")
        outer(200, 200)
        terminal.note(f"note {number}")
        sys.stderr.write(f"error {number}\\n")
        sys.stdout.write("part")
        inner(200, 200)
        sys.stdout.write(f" {number}\\n")
print("end", sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__)
"""


def test_everything_that_is_printed_beside_bars_stays_on_the_screen() -> None:
    done = on_a_terminal(program=BESIDE_BARS)
    assert done.code == 0, done
    each = [
        [f"line {n}", f'{{"number": {n}}}', f"styled {n}", f"note {n}", f"error {n}", f"part {n}"] for n in range(200)
    ]
    assert done.shown.splitlines() == [*(line for lines in each for line in lines), "end True True"]
    assert "[red]outer\\x1b[31m" in done.written
    assert not done.cursor_is_hidden


def test_what_is_printed_beside_a_bar_goes_to_its_own_stream() -> None:
    done = on_a_terminal(program=BESIDE_BARS, stdout=subprocess.PIPE)
    assert done.piped.decode().splitlines()[:3] == ["line 0", '{"number": 0}', "styled 0"]
    assert done.shown.splitlines()[:3] == ["note 0", "error 0", "note 1"]


@pytest.mark.models("all")
def test_the_demo_tells_its_story_on_a_terminal(tmp_path: Path) -> None:
    done = on_a_terminal("demo", "--home", tmp_path / "demo")
    assert done.code == 0, done
    half = len(VILLAGE.read_text().splitlines()) // 2
    told = " ".join(done.shown.split())
    found = re.search(r"killed with -9 after (\d+) acknowledged events; (\d+) were in the ledger\.", told)
    assert found is not None
    acknowledged, in_ledger = map(int, found.groups())
    assert half <= acknowledged <= in_ledger < 2 * half  # the last event may be unacknowledged
    assert f"{2 * half} events, 0 lost, 0 doubled" in told
    for number, title in enumerate(
        ["Kill -9", "One scene, two memories", "A wrong belief", "Time travel", "Why does he remember", "The prompt",
         "Ask the village", "A lesson", "Facts", "Days pass", "The past is edited", "Delete every view"], start=1,
    ):  # fmt: skip
        assert re.search(rf"^{number}  {title}", done.shown, re.MULTILINE), title
    for wrong in ("DIFFERENT", "is unavailable", "expected result", "Traceback", "warning"):
        assert wrong not in done.shown
    assert re.search(r"(?:ingesting|indexing) +\W", done.shown) is None, "a bar is left"
    assert not done.cursor_is_hidden


# Encodings.

ENCODINGS = [
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "ascii:strict"},
    {"PYTHONIOENCODING": "cp1252"},
    {"PYTHONIOENCODING": "cp437"},
    {"PYTHONIOENCODING": "cp932"},
    {"PYTHONIOENCODING": "utf-16"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "C"},
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0"},
]


def encoding_of(environment: dict[str, str]) -> str:
    given = environment.get("PYTHONIOENCODING", "").partition(":")[0]
    return given or ("ascii" if "PYTHONUTF8" in environment else "utf-8")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world") / "größe-東京"
    publish_in(folder, event(payload={"text": WORLD}, id="w-1", at="2026-03-01T12:00:00Z"))
    return folder


WORLD = "Grüße → 東京 🚀 …"


@pytest.mark.parametrize("environment", ENCODINGS, ids=lambda each: " ".join(f"{k}={v}" for k, v in each.items()))
def test_what_an_encoding_lacks_is_replaced_and_json_loses_nothing(world: Path, environment: dict[str, str]) -> None:
    encoding = encoding_of(environment)
    commands: dict[str, tuple[int, list[str]]] = {
        "shown": (0, ["episodic", "village", "baker"]),
        "episodic": (0, ["episodic", "village", "baker", "--json"]),
        "tail": (0, ["tail", "--json"]),
        "wrong name": (2, ["episodic", "village", "bäcker→ "]),
        "no file": (2, ["ingest", "größe→.txt"]),
        "dry run": (0, ["publish", "village", "baker", "agent.spoke", WORLD, "--dry-run", "--json"]),
    }
    in_world = [[*words, "--home", world] for _, words in commands.values()]
    done = dict(zip(commands, spawn_each(*in_world, RECALLOG_INDEX="off", **environment), strict=True))
    assert {name: code for name, (code, _, _) in done.items()} == {name: code for name, (code, _) in commands.items()}
    out, err = ({name: each[stream].decode(encoding) for name, each in done.items()} for stream in (1, 2))
    assert "[turn 000][agent.spoke] Gr" in out["shown"]
    assert json.loads(out["episodic"])["memories"][0]["text"] == WORLD
    assert json.loads(out["tail"])["event"]["payload"]["text"] == WORLD
    assert err["wrong name"].startswith("error agent: ")
    assert "Traceback" not in err["no file"]
    assert json.loads(out["dry run"])["event"]["payload"] == {"text": WORLD}


@pytest.mark.parametrize("encoding", ["cp1252", "cp932", "koi8-r"])
def test_json_on_a_code_page_is_read_as_utf8(world: Path, encoding: str) -> None:
    commands = (["episodic", "village", "baker", "--json"], ["export"])
    in_world = [[*words, "--home", world] for words in commands]
    for code, out, _ in spawn_each(*in_world, RECALLOG_INDEX="off", PYTHONIOENCODING=encoding):
        assert code == 0
        assert WORLD in json.dumps(json.loads(out.decode("utf-8")), ensure_ascii=False)


@pytest.mark.models("beliefs", "long_term")
def test_a_file_whose_name_and_text_no_encoding_of_the_console_has_is_read(tmp_path: Path) -> None:
    file = tmp_path / "größe-東京.txt"
    file.write_text("Ann: Grüße aus 東京\n", encoding="utf-8")
    for number, environment in enumerate(ENCODINGS):
        home = tmp_path / str(number)
        assert spawn_in(environment, "ingest", file, "--format", "text", "--home", home) == 0
        told = recallog("tail", "--json", "--home", home).out
        assert "Grüße aus 東京" in [json.loads(line)["event"]["payload"].get("text") for line in told.splitlines()]


def spawn_in(environment: dict[str, str], *words: object) -> int:
    return subprocess.run(
        [*command_line(), *map(str, words)],
        stdout=subprocess.DEVNULL,
        env=environment_of(RECALLOG_INDEX="off", **environment),
        check=False,
    ).returncode


@pytest.mark.models("all")
def test_the_demo_runs_on_a_console_that_is_not_utf_8(tmp_path: Path) -> None:
    done = subprocess.run(
        [*command_line("demo", "--home", str(tmp_path / "größe"))],
        capture_output=True,
        env=environment_of(PYTHONIOENCODING="cp437:strict"),
        check=False,
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done
    assert "0 lost, 0 doubled" in done.stdout.decode("cp437")
    assert "->" in done.stdout.decode("cp437")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_closed_stream_is_no_traceback(world: Path, closed: str) -> None:
    words = " ".join(f"'{word}'" for word in command_line("episodic", "village", "baker", "--home", str(world)))
    done = subprocess.run(
        ["bash", "-c", f"{words} {closed}"],
        capture_output=True,
        env=environment_of(PYTHONIOENCODING="ascii:strict", RECALLOG_INDEX="off"),
        check=False,
    )
    assert done.returncode == 0, done
    assert b"Traceback" not in done.stderr


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    with Terminal() as terminal:
        yield terminal


def test_a_terminal_that_is_not_utf_8_shows_bars_and_tables(terminal: Terminal, tmp_path: Path) -> None:
    words = ["ingest", VILLAGE, "--home", tmp_path, "--batch", "50"]
    done = terminal.run(*words, environment={"PYTHONIOENCODING": "cp1252:strict"})
    assert done.code == 0, done
    assert "Total: 398 added" in done.shown
