"""Operators' commands and the projections of a user's own: named by an option or a setting, and seen by all of them."""

from pathlib import Path

import pytest

from recallog import Memory, Settings
from recallog_schemas.errors import SettingsError
from support.cli import recallog
from support.events import event, run
from support.own_words import WORDS, Words

NAME = "support.own_words:Words"
SET = {"RECALLOG_PROJECTIONS": NAME}
OPTION = ("--projections", NAME)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    async def work() -> None:
        async with Memory.open(tmp_path, projections=[Words()]) as memory:
            await memory.publish_many([event(payload={"text": text}) for text in ("one", "a bad word", "two two")])
            assert await memory.row(WORDS, "village", "baker") is not None

    run(work())
    return tmp_path


@pytest.mark.parametrize(("option", "environment"), [(OPTION, {}), ((), SET)], ids=["option", "setting"])
def test_status_dead_letters_verify_and_rebuild_see_them(
    home: Path, option: tuple[str, ...], environment: dict[str, str]
) -> None:
    def answered(*command: str) -> object:
        done = recallog(*command, *option, "--home", home, "--json", **environment)
        assert done.code == 0, done.err
        return done.json

    def views(command: str, field: str) -> set[str]:
        answer = answered(*command.split())
        assert isinstance(answer, dict)
        return {row["views"] for row in answer[field]}

    assert views("status", "partitions") == {"built-in", "words"}
    assert views("verify", "tables") == {"built-in", "words"}
    assert views("rebuild --dry-run", "items") == {"built-in", "words"}
    assert views("rebuild", "items") == {"built-in", "words"}
    assert views("dead-letters list", "items") == {"words"}


def test_several_are_named_by_repeating_the_option_or_with_commas(home: Path) -> None:
    both = f"{NAME}, support.own_words:Lines"
    by_option = recallog("status", *OPTION, "--projections", "support.own_words:Lines", "--home", home, "--json")
    by_setting = recallog("status", "--home", home, "--json", RECALLOG_PROJECTIONS=both)
    for done in (by_option, by_setting):
        assert {row["views"] for row in done.json["partitions"]} == {"built-in", "words", "lines"}


def test_a_program_sees_those_of_the_setting_unless_it_gives_its_own(home: Path) -> None:
    settings = Settings(home=home, projections=NAME)

    async def work() -> None:
        async with Memory.open(settings) as memory:
            row = await memory.row(WORDS, "village", "baker")
            assert row is not None
            assert row.words == 3
        async with Memory.open(settings, projections=[Words()]) as memory:
            assert {row.views for row in (await memory.admin.status()).partitions} == {"built-in", "words"}

    run(work())


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("words", "should be module:name"),
        ("support.own_words:Missing", "AttributeError"),
        ("no_such_module:Words", "ModuleNotFoundError"),
        ("support.own_words:unusable", "7 is not a projection"),
    ],
)
def test_a_name_that_leads_to_no_projection_is_refused_with_the_reason(home: Path, name: str, reason: str) -> None:
    done = recallog("status", "--projections", name, "--home", home)
    assert done.code == 2
    assert f"RECALLOG_PROJECTIONS {name}: " in done.err
    assert reason in done.err
    with pytest.raises(SettingsError, match="RECALLOG_PROJECTIONS"):
        Memory.open(Settings(home=home, projections=name, index="off"))


def test_commands_of_agents_do_not_take_the_option(home: Path) -> None:
    assert recallog("episodic", "village", "baker", *OPTION, "--home", home).code == 2
