"""One declared method is an operation everywhere: in Python, as a command, as a schema and in the reference."""

import inspect
import json
import pydoc
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Unpack

import pytest
import typer
from typer.testing import CliRunner, Result

from recallog import InvalidArgument, Memory, StorageError
from recallog.access import FacadePart
from recallog.operations import parameters
from recallog.operations.facade import operation
from recallog.operations.operation import Scope
from recallog.operations.parameters import At
from recallog.operations.schemas import documents
from recallog.queries.spaces import agents
from recallog_schemas.views import View
from recallog_service.cli import derived
from recallog_tools.reference import pages
from support.events import event, one_loop, run


class LoudestView(View):
    """The loudest events of an agent."""

    agent: str
    """Who is asked."""
    texts: tuple[str, ...]
    """What was said, loudest first."""

    def format(self) -> str:
        """One line for each text."""
        return "\n".join(f"{self.agent} hears: {text}" for text in self.texts)


class WithToy(Memory):
    """A memory with one more operation."""

    @operation(example="recallog loudest village baker --top-k 2")
    async def loudest(
        self, space: parameters.Space, agent: parameters.Agent, *, top_k: parameters.RecallTopK = 3, **at: Unpack[At]
    ) -> LoudestView:
        """The loudest events that an agent has heard, by their number of exclamation marks.

        A `top_k` of 1 answers the loudest one. See also `episodic`.
        """
        heard = await self.episodic(space, agent, window=100, **at)
        by_loudness = sorted((memory.text for memory in heard.memories), key=lambda text: -text.count("!"))
        return LoudestView(agent=agent, texts=tuple(by_loudness[:top_k]))


class NightWatch(FacadePart):
    """What a watchman hears: `memory.night_watch`.

    In a second paragraph.
    """

    @operation(example="recallog night-watch hear village baker", command="night-watch hear")
    async def hear(self, space: parameters.Space, agent: parameters.Agent, **at: Unpack[At]) -> LoudestView:
        """The name of an agent that was heard, as `listen` and `episodic` see it. See also `admin.status`."""
        detail = await self._access.of_space(space, at, agents, None, 10)
        return LoudestView(agent=agent, texts=tuple(each.name for each in detail if each.name == agent))

    @operation(example="recallog night-watch listen", command="night-watch listen", scope=Scope.PUBLISH)
    async def listen(self, space: parameters.Space) -> LoudestView:
        """Publish that nothing was heard."""
        (position,) = await self._access.append([event("agent.thought", space=space, payload={"text": "Silence"})])
        return LoudestView(agent="baker", texts=(str(position),))


class WithWatch(Memory):
    """A memory with one more facade."""

    facades: ClassVar = {**Memory.facades, "night_watch": NightWatch}

    @property
    def night_watch(self) -> NightWatch:
        return NightWatch(self._access)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a baker has become louder, then quieter."""
    folder = tmp_path_factory.mktemp("village")

    async def work() -> None:
        async with Memory.open(folder) as memory:
            texts = ("Bread", "Bread!", "Bread!!!", "Bread!!", "Good night")
            await memory.publish_many([event(payload={"text": text}, turn=turn) for turn, text in enumerate(texts)])

    with one_loop():
        run(work())
    return folder


def command(home: Path, *arguments: str) -> Result:
    """Run the derived command in a program of its own."""
    program = typer.Typer()
    program.callback()(lambda: None)  # without it, Typer makes the only command the whole program
    derived.register(program, "loudest", WithToy)
    return CliRunner().invoke(program, ["loudest", *arguments], env={"RECALLOG_HOME": str(home), "COLUMNS": "200"})


def watch(home: Path, *arguments: str) -> Result:
    """Run a command of the group."""
    program = typer.Typer()
    program.callback()(lambda: None)
    derived.register(program, "night-watch", WithWatch)
    return CliRunner().invoke(program, ["night-watch", *arguments], env={"RECALLOG_HOME": str(home), "COLUMNS": "200"})


# In Python.


def test_it_is_a_method_that_checks_its_arguments(home: Path) -> None:
    async def work() -> None:
        async with WithToy.open(home) as memory:
            view = await memory.loudest("village", "baker")
            assert view == LoudestView(agent="baker", texts=("Bread!!!", "Bread!!", "Bread!"))
            assert (await memory.loudest("village", "baker", top_k=1, as_of="0:1")).texts == ("Bread!",)
            assert (await memory.loudest("village", "baker", top_k=1, as_of="2000-01-01T00:00:00Z")).texts == ()
            with pytest.raises(InvalidArgument, match=r"top_k: should be a valid integer, not '5'"):
                await memory.loudest("village", "baker", top_k="5")  # type: ignore[arg-type]
            with pytest.raises(InvalidArgument, match=r"did you mean as_of\?"):
                await memory.loudest("village", "baker", as_off="0:1")  # type: ignore[call-arg]

    run(work())


def test_python_shows_its_signature_and_its_documentation() -> None:
    assert list(inspect.signature(WithToy.loudest).parameters) == ["self", "space", "agent", "top_k", "after", "as_of"]
    shown = pydoc.render_doc(WithToy.loudest, renderer=pydoc.plaintext)
    assert "top_k: int = 3" in shown
    assert "The loudest events that an agent has heard" in shown


def test_the_memory_itself_does_not_get_it() -> None:
    assert "loudest" in WithToy.operations
    assert "loudest" not in Memory.operations
    assert not hasattr(Memory, "loudest")


# As a command.


def test_it_is_a_command_that_prints_its_view(home: Path) -> None:
    ended = command(home, "village", "baker", "--top-k", "2")
    assert (ended.exit_code, ended.stdout) == (0, "baker hears: Bread!!!\nbaker hears: Bread!!\n")


def test_the_command_takes_shared_options_and_prints_json(home: Path) -> None:
    ended = command(home, "village", "baker", "--as-of", "0:1", "--json")
    assert ended.exit_code == 0
    assert json.loads(ended.stdout) == {"agent": "baker", "texts": ["Bread!", "Bread"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["village"], "agent"),
        ([" village", "baker"], "space"),
        (["village", "baker", "--top-k", "0"], "--top-k"),
        (["village", "baker", "--top-k", "many"], "--top-k"),
        (["village", "baker", "--as-of", "noon"], "--as-of"),
        (["village", "baker", "--loud"], "--loud"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_command_refuses_what_is_wrong_with_exit_code_two(home: Path, arguments: list[str], message: str) -> None:
    ended = command(home, *arguments)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert message in ended.stderr


def test_the_help_of_the_command_says_all_that_was_declared(home: Path) -> None:
    shown = command(home, "--help").stdout
    assert "The loudest events that an agent has heard" in shown
    assert "Example: recallog loudest village baker --top-k 2" in shown
    for name in ("space", "agent", "--top-k", "--after", "--as-of", "--home", "--json"):
        assert name in shown
    assert "Number of memories." in shown
    assert "[default: 3]" in shown
    assert "A --top-k of 1" in shown
    assert "See also `recallog episodic`." in " ".join(shown.split())


# As schemas, and in the reference.


def test_its_arguments_and_its_answer_have_schemas() -> None:
    exported = documents(WithToy)
    assert exported.keys() - documents(Memory).keys() == {"operations/loudest.json", "views/LoudestView.json"}
    arguments, answer = exported["operations/loudest.json"], exported["views/LoudestView.json"]
    assert list(arguments["properties"]) == ["space", "agent", "top_k", "after", "as_of"]
    assert arguments["required"] == ["space", "agent"]
    assert arguments["properties"]["top_k"].items() >= {"type": "integer", "minimum": 1, "default": 3}.items()
    assert arguments["additionalProperties"] is False
    assert arguments["x-recallog"]["example"] == "recallog loudest village baker --top-k 2"
    assert arguments["x-recallog"]["answer"] == {"$ref": "../views/LoudestView.json"}
    assert list(answer["properties"]) == ["agent", "texts"]


def test_the_reference_has_an_entry_for_it_and_for_its_view() -> None:
    changed = _changed(pages(Memory), pages(WithToy))
    assert "### loudest" in changed["memory.md"]
    assert "recallog loudest village baker --top-k 2" in changed["memory.md"]
    assert "(views.md#loudestview)" in changed["memory.md"]
    assert "## LoudestView" in changed["views.md"]
    assert "What was said, loudest first." in changed["views.md"]
    assert "loudest" in changed["README.md"]


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> Mapping[str, str]:
    """The pages that differ."""
    return {name: text for name, text in after.items() if before.get(name) != text}


# A further facade.


def test_a_further_facade_reads_and_writes_the_memory_and_ends_with_it(home: Path) -> None:
    async def work() -> None:
        memory = WithWatch.in_memory()
        async with memory:
            assert (await memory.night_watch.listen("village")).texts == ("0:0",)
            assert (await memory.night_watch.hear("village", "baker")).texts == ("baker",)
            assert (await memory.night_watch.hear("village", "miller", after="0:0")).texts == ()
            with pytest.raises(InvalidArgument, match="space: "):
                await memory.night_watch.listen(" village")
        with pytest.raises(StorageError, match="the memory is closed"):
            await memory.night_watch.hear("village", "baker")

    run(work())


def test_a_further_facade_is_a_group_of_commands(home: Path) -> None:
    assert watch(home, "hear", "village", "baker").stdout == "baker hears: baker\n"
    assert json.loads(watch(home, "hear", "village", "baker", "--as-of", "0:1", "--json").stdout)["texts"] == ["baker"]
    shown = " ".join(watch(home, "--help").stdout.split())
    assert "What a watchman hears: `memory.night_watch`." in shown
    assert "In a second paragraph" not in shown
    help_of_one = " ".join(watch(home, "hear", "--help").stdout.split())
    assert "and `recallog episodic` see it. See also `recallog status`." in help_of_one
    assert "Example: recallog night-watch hear village baker" in help_of_one
    assert "night-watch" in derived.names(WithWatch)


def test_a_further_facade_has_schemas_and_a_page_of_its_own() -> None:
    new = documents(WithWatch).keys() - documents(Memory).keys()
    assert new == {"operations/night_watch.hear.json", "operations/night_watch.listen.json", "views/LoudestView.json"}
    page = pages(WithWatch)["night_watch.md"]
    assert "# memory.night_watch" in page
    assert "[`listen`](night_watch.md#listen) and [`episodic`](memory.md#episodic)" in page
    assert "[`admin.status`](admin.md#status)" in page
