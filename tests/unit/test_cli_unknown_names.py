"""Misspelt names: a space or an agent that was never seen is distinguished from an empty memory, and nothing is
created."""

import asyncio
import json
from pathlib import Path

import pytest

from recallog import Memory, RecallogError, ViewsBehind
from recallog.extending import Components, MemoryStore, assemble
from recallog_service.cli import unknown_names
from recallog_streams import generations
from support.cli import Result, recallog
from support.events import event, run
from support.workers import LedgerOfWorkers

NEVER = "no event was ever published in the space"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two spaces: in the village a baker has spoken to the smith, and a narrator has told all what it saw."""
    folder = tmp_path_factory.mktemp("home")

    async def work() -> None:
        async with Memory.open(folder) as memory:
            await memory.publish_many([
                event(id="e-1", audience=["smith"]),
                event("world.observed", agent="narrator", id="e-2"),
                event("agent.thought", space="harbour", agent="sailor", session="morning"),
            ])  # fmt: skip

    run(work())
    return folder


def unknown(result: Result, message: str) -> None:
    """The exit code is 1, and the last line on stderr is the message."""
    assert result.code == 1
    assert result.err.splitlines()[-1].removeprefix("error ") == message


OF_SPACE = [
    ["agents", "vilage"], ["sessions", "vilage"], ["scene", "vilage"], ["status", "--space", "vilage"],
    ["schema", "kinds", "--space", "vilage"], ["pending", "vilage"], ["react", "vilage"],
    ["tail", "--space", "vilage"], ["export", "--space", "vilage"], ["watch", "vilage", "--once"],
]  # fmt: skip
OF_AGENT = [
    ["episodic"], ["timeline"], ["timeline", "--around", "e-1"], ["salient"], ["recall", "Bread!"],
    ["search", "Bread!"], ["entries", "e-1"], ["reflection"], ["beliefs"], ["context"], ["agent-settings"],
]  # fmt: skip


def about(question: list[str], space: str, agent: str) -> list[str]:
    command, *rest = question
    return [command, space, agent, *rest]


@pytest.mark.models("all")
@pytest.mark.parametrize("command", OF_SPACE, ids=lambda command: command[0])
def test_a_space_that_was_never_seen_is_told_with_the_nearest_name(home: Path, command: list[str]) -> None:
    unknown(recallog(*command, "--home", home), f"{NEVER} 'vilage'; did you mean 'village'?")


@pytest.mark.models("all")
@pytest.mark.parametrize("question", OF_AGENT, ids=lambda question: "-".join(question))
def test_so_it_is_for_questions_about_an_agent(home: Path, question: list[str]) -> None:
    unknown(recallog(*about(question, "vilage", "baker"), "--home", home), f"{NEVER} 'vilage'; did you mean 'village'?")


@pytest.mark.models("all")
@pytest.mark.parametrize("question", OF_AGENT, ids=lambda question: "-".join(question))
def test_an_agent_that_was_never_seen_is_told_with_the_nearest_name_where_the_answer_is_empty(
    home: Path, question: list[str]
) -> None:
    # In the harbour nothing is shared: nobody but the sailor has a memory.
    unknown(
        recallog(*about(question, "harbour", "sailer"), "--home", home),
        "no event of harbour is by 'sailer' or addressed to it; did you mean 'sailor'?",
    )


@pytest.mark.models("all")
@pytest.mark.parametrize("command", ["episodic", "timeline", "salient", "reflection", "context"])
def test_an_agent_that_never_acted_reads_what_is_shared(home: Path, command: str) -> None:
    assert recallog(command, "village", "visitor", "--home", home).code == 0


@pytest.mark.models("beliefs")
@pytest.mark.parametrize("agent", ["smith", "narrator", "baker"])
def test_an_empty_answer_about_an_agent_that_was_seen_is_no_error(home: Path, agent: str) -> None:
    result = recallog("beliefs", "village", agent, "--home", home)
    assert (result.code, result.err) == (0, "")


@pytest.mark.models("all")
@pytest.mark.parametrize(
    "command",
    [
        ["conversation", "messages", "harbour", "sailor", "mornin"],
        ["conversation", "compact", "harbour", "sailor", "mornin"],
        ["working", "scratchpad", "harbour", "sailor", "mornin"],
        ["timeline", "harbour", "sailor", "--session", "mornin"],
        ["recall", "harbour", "sailor", "Bread!", "--session", "mornin", "--index", "off"],
    ],
    ids=lambda command: "-".join(command[:2]),
)
def test_a_session_that_was_never_seen_is_told_with_the_nearest_name(home: Path, command: list[str]) -> None:
    unknown(recallog(*command, "--home", home), "no event of harbour is in a session 'mornin'; did you mean 'morning'?")


@pytest.mark.models("conversations")
def test_an_empty_answer_about_a_session_that_was_seen_is_no_error(home: Path) -> None:
    assert recallog("conversation", "messages", "harbour", "sailor", "morning", "--home", home).code == 0


def test_a_space_without_sessions_has_none_to_name(home: Path) -> None:
    unknown(
        recallog("timeline", "village", "baker", "--session", "noon", "--home", home),
        "no event of village is in a session 'noon'; there are none yet",
    )


def test_the_present_decides_whether_a_name_is_known(home: Path) -> None:
    assert recallog("episodic", "harbour", "sailor", "--as-of", "0:0", "--home", home).code == 0
    unknown(
        recallog("episodic", "harbor", "sailor", "--as-of", "0:0", "--home", home),
        f"{NEVER} 'harbor'; did you mean 'harbour'?",
    )


def test_the_document_is_printed_also_if_a_name_is_unknown(home: Path) -> None:
    result = recallog("episodic", "vilage", "baker", "--json", "--home", home)
    assert result.json["known"] is False
    unknown(result, f"{NEVER} 'vilage'; did you mean 'village'?")


def test_case_alone_is_enough_to_be_another_name(home: Path) -> None:
    unknown(recallog("scene", "Village", "--home", home), f"{NEVER} 'Village'; did you mean 'village'?")


@pytest.mark.models("beliefs")
def test_without_a_similar_name_the_known_ones_are_listed(home: Path) -> None:
    unknown(recallog("scene", "moon", "--home", home), f"{NEVER} 'moon'; known are harbour, village (recallog spaces)")
    unknown(
        recallog("beliefs", "village", "xyz", "--home", home),
        "no event of village is by 'xyz' or addressed to it; known are baker, narrator (recallog agents village)",
    )


@pytest.mark.models("all")
@pytest.mark.parametrize(
    "command",
    [
        ["episodic", "village", "baker"], ["spaces"], ["status"], ["verify"], ["rebuild"], ["tail"], ["export"],
        ["react"], ["watch", "village", "--once"], ["recall", "village", "baker", "bread?"], ["dead-letters", "list"],
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_a_command_that_reads_does_not_create_the_folder(tmp_path: Path, command: list[str]) -> None:
    home = tmp_path / "nowhere" / "home"
    result = recallog(*command, "--home", home)
    assert result.code == 2
    assert result.err.splitlines() == [
        f"error there is no memory in {home}; write events with recallog publish or recallog ingest, or name the "
        "folder of another memory with --home or RECALLOG_HOME"
    ]
    assert not home.parent.exists()


def test_the_missing_folder_is_an_error_in_json_too(tmp_path: Path) -> None:
    result = recallog("spaces", "--json", "--home", tmp_path / "nowhere")
    assert json.loads(result.err)["path"] == "--home"
    assert not (tmp_path / "nowhere").exists()


def test_the_catalogue_of_kinds_needs_no_folder(tmp_path: Path) -> None:
    result = recallog("schema", "kinds", "--home", tmp_path / "nowhere")
    assert result.code == 0
    assert "agent.spoke" in result.out
    assert not (tmp_path / "nowhere").exists()


def test_publish_and_ingest_create_the_folder(tmp_path: Path) -> None:
    recallog("publish", "village", "baker", "agent.spoke", "Bread!", "--home", tmp_path / "one")
    exported = recallog("export", "--home", tmp_path / "one")
    assert recallog("ingest", "-", "--home", tmp_path / "two", stdin=exported.out).code == 0
    assert recallog("export", "--home", tmp_path / "two") == exported


async def behind_by_one_event(after_wait_seconds: float) -> tuple[Memory, Components]:
    """A memory whose views have not processed its newest event, which is the first one of the village."""
    store = MemoryStore()
    components = assemble(LedgerOfWorkers(), lambda namespace: store, after_wait_seconds=after_wait_seconds)
    memory = Memory(components)
    await memory.publish(event(space="city"))
    await fold(components)
    await memory.publish(event())
    return memory, components


async def fold(components: Components) -> None:
    await generations.current(components.views.builder, 0)


def test_on_a_cluster_no_name_is_called_unknown_before_the_views_have_caught_up() -> None:
    async def work() -> None:
        memory, components = await behind_by_one_event(after_wait_seconds=60)
        assert not (await memory.agents("village")).known
        _, nothing = await asyncio.gather(
            fold(components), unknown_names.refuse_unknown(memory, {"space": "village", "agent": "baker"})
        )
        assert nothing is None
        with pytest.raises(RecallogError, match="did you mean 'village'"):
            await unknown_names.refuse_unknown(memory, {"space": "vilage"})

    run(work())


def test_on_a_cluster_without_workers_the_error_is_that_the_views_are_behind() -> None:
    async def work() -> None:
        memory, _ = await behind_by_one_event(after_wait_seconds=0.01)
        with pytest.raises(ViewsBehind):
            await unknown_names.refuse_unknown(memory, {"space": "village"})

    run(work())
