"""Names that people have: the rule, one form for all spellings, and no two that become one where they are joined."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from recallog import Event, InvalidArgument, InvalidEvent, Memory
from recallog.messages.mapping import Cast, author_of
from recallog_projections.index import documents, points
from recallog_projections.index.engines.conditions import spaces
from recallog_projections.index.engines.engine import Filter, apart_from, in_points, of_points, past_of
from recallog_projections.models.long_term import texts
from recallog_projections.stores.redis_format import pack_key
from recallog_projections.views import due
from recallog_schemas import codec, limits, names, triggers
from recallog_schemas.models.long_term import seeding
from recallog_service.access import Grant, Verb
from recallog_service.formats.conversations import space_of_project
from support.events import event, run
from support.people import COLLIDING, OF_PEOPLE, REFUSED, otherwise, valid

pytestmark = pytest.mark.models("all")

PAIRS = list(itertools.product(COLLIDING, COLLIDING))
TRIGGER = triggers.Trigger("reaction.due", "0" * 32, "1" * 32)


# The rule


@pytest.mark.parametrize("name", [*OF_PEOPLE, *COLLIDING, "张" * 85, "a" * limits.NAME_BYTES_MAX])
def test_a_name_that_people_have_names_a_space_and_an_agent(name: str) -> None:
    published = codec.decode(codec.encode(event(space=name, agent=name, audience=[name])))
    assert (published.space, published.agent, published.audience) == (name, name, (name,))


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_what_is_not_a_name_is_refused_with_the_rule_that_it_breaks(text: str, why: str) -> None:
    with pytest.raises(InvalidArgument, match="is not a name") as raised:
        codec.checked_name(text)
    assert why in str(raised.value)


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_nothing_is_written_for_what_is_not_a_name(text: str, why: str) -> None:
    async def work() -> tuple[str, int]:
        async with Memory.in_memory() as memory:
            with pytest.raises(InvalidEvent) as raised:
                await memory.publish(
                    {"space": "village", "agent": text, "kind": "agent.spoke", "payload": {"text": "x"}}
                )
            return str(raised.value), len((await memory.spaces()).items)

    message, written = run(work())
    assert message.startswith("agent: ")
    assert why in message
    assert written == 0


@given(st.text(max_size=300))
def test_whatever_is_a_name_is_one_in_json_and_in_python(text: str) -> None:
    name, is_name = names.in_nfc(text), not names.fault(names.in_nfc(text))
    try:
        written = codec.encode(Event(space=text, agent="baker", kind="agent.spoke", payload={"text": "x"}))
    except (ValidationError, InvalidEvent):
        assert not is_name
    else:
        assert is_name
        assert codec.decode(written).space == name


# One form


@given(valid)
def test_two_spellings_of_a_name_are_one_name(name: str) -> None:
    one, other = (event(space=each, agent=each, audience=[each]) for each in (names.in_nfc(name), otherwise(name)))
    assert (one.space, one.agent, one.audience) == (other.space, other.agent, other.audience)


def test_a_record_with_another_spelling_is_read_in_the_one_form() -> None:
    data = codec.encode(event(session="SESSION", agent="AGENT", kind="item.put", payload={
        "namespace": ["notes"], "key": "KEY", "value": "VALUE"
    }))  # fmt: skip
    for word in (b"SESSION", b"AGENT", b"KEY", b"VALUE"):
        data = data.replace(word, otherwise("é").encode())
    read = codec.decode(data)
    assert (read.session, read.agent, read.payload["key"]) == ("é", "é", "é")
    assert read.payload["value"] == otherwise("é")  # content is kept as it was written


ASKED: dict[str, Callable[[Memory, str], Any]] = {
    "session": lambda memory, word: memory.timeline("village", "baker", session=word),
    "item": lambda memory, word: memory.items.get("village", "baker", word, word),
    "block": lambda memory, word: memory.working.get("village", "baker", [word]),
    "entry": lambda memory, word: memory.long_term.get("village", "baker", word),
    "event": lambda memory, word: memory.around("village", "baker", word),
    "messages": lambda memory, word: memory.conversation.messages("village", "baker", word),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("spelled", ["é", otherwise("é")])
def test_ids_that_users_choose_have_one_form_too(asked: str, spelled: str) -> None:
    async def work() -> tuple[str, str]:
        async with Memory.in_memory() as memory:
            await memory.long_term.retain("village", "baker", "Rye rests.", entry_id=spelled, session=spelled)
            await memory.items.put("village", "baker", spelled, spelled, 1)
            await memory.working.set("village", "baker", spelled, "notes")
            await memory.conversation.add("village", "baker", spelled, [{"role": "user", "content": "Bread?"}])
            found = [(await ASKED[asked](memory, each)).model_dump_json() for each in ("é", otherwise("é"))]
            return found[0], found[1]

    one, other = run(work())
    assert one == other
    assert ("Bread?" if asked == "messages" else "é") in one


# Names that are joined stay apart


def distinct(made: Callable[[str, str], Any], pairs: Sequence[tuple[str, str]] = PAIRS) -> None:
    found: dict[Any, tuple[str, str]] = {}
    for pair in pairs:
        assert found.setdefault(made(*pair), pair) == pair


def test_due_work_of_two_owners_has_two_keys() -> None:
    distinct(lambda space, agent: due.now_key(7, space, TRIGGER, agent))
    distinct(lambda space, agent: due.at_key(7, space, TRIGGER, agent))


def test_triggers_of_two_owners_have_two_ids() -> None:
    distinct(lambda space, agent: triggers.caused_by("reaction.due", space, agent, "e-1").id)


def test_seeds_of_two_owners_have_two_ids() -> None:
    distinct(lambda space, agent: seeding.event(space, agent, "Rye rests.").id)


def test_rows_of_two_owners_have_two_keys_in_redis() -> None:
    distinct(lambda space, agent: pack_key(space, agent, "key"))


def test_a_cursor_names_one_space_and_agent() -> None:
    distinct(lambda space, agent: names.join_names(":", space, agent, "x"))


@given(valid, valid)
def test_joined_names_are_split_into_the_same_names(one: str, other: str) -> None:
    one, other = names.in_nfc(one), names.in_nfc(other)
    assert names.split(":", names.join_names(":", one, other, "x"), 3) == [one, other, "x"]


def test_an_entry_for_some_readers_is_no_duplicate_of_one_for_others() -> None:
    audiences = {each for count in (0, 1, 2) for each in itertools.combinations(sorted(COLLIDING), count)}
    assert len({texts.digest_key("fact", "key", each) for each in audiences}) == len(audiences)
    assert texts.digest_key("fact", "key", shared=True) not in {texts.digest_key("fact", "key", (",",))}


@given(valid, valid)
def test_spaces_stay_apart_in_the_index(one: str, other: str) -> None:
    made = [form(names.in_nfc(each)) for each in {one, other} for form in (str, apart_from)]
    stored = [each for space in made for each in (in_points(space), past_of(space))]
    assert len(set(stored)) == 2 * len(set(made))
    assert [of_points(each) for each in stored] == [space for space in made for _ in range(2)]


def test_points_of_earlier_names_have_the_spaces_that_they_had() -> None:
    assert in_points("village") == "village"
    assert past_of("village") == "-village"
    assert in_points(apart_from("village")) == "+village"
    assert spaces(Filter("village", ("*",), offset_until=3)) == ["village", "-village"]


@pytest.mark.parametrize("author", [name for name in OF_PEOPLE if ": " not in name])
def test_the_author_of_the_preceding_text_does_not_weaken_the_words_of_a_text(author: str) -> None:
    def weights(before: str) -> dict[str, float]:
        document = documents.Document(
            space="village", agent="baker", kind="agent.spoke", readers=("*",), length=3, at=0, offset=1, text_key=1,
            text=f"{author} has bread", before=before,
        )  # fmt: skip
        return points.weights_of(document)

    assert weights(f"{author}: yes") == weights("baker: yes")


# Folders, messages, grants


@pytest.mark.parametrize(
    ("folder", "space"),
    [("/home/alice/app", "project/home/alice/app"), ("/home/alice/my app", "project/home/alice/my app"),
     ("/家/项目甲", "project/家/项目甲"), ("/srv/a_b-c.d@e", "project/srv/a_b-c.d@e")],
)  # fmt: skip
def test_a_project_has_the_space_of_its_folder(folder: str, space: str) -> None:
    assert space_of_project(folder) == space


def test_projects_in_different_folders_share_no_space() -> None:
    folders = [
        f"/home/{name}" for name in ("my app", "my-app", "my_app", "项目甲", "项目乙", "a*", "a-", "a", "a\n", "a ")
    ]
    folders += ["C:\\a\\b", "C:\\a-b", "C-a-b", "/" + "long/" * 60, "/" + "long/" * 59 + "lang/"]
    # Also a folder whose name is that of the digest of another one.
    folders += [f"/{str(space_of_project(each)).removeprefix('project/')}" for each in list(folders)[-2:]]
    distinct(lambda folder, _: space_of_project(folder), [(each, "") for each in dict.fromkeys(folders)])


@pytest.mark.parametrize("name", ["张伟", "李娜", "Jürgen", "Ann Smith", "auth0|65f2"])
def test_the_author_of_a_message_has_the_name_that_it_says(name: str) -> None:
    assert author_of({"role": "user", "name": otherwise(name)}, Cast()) == name


@pytest.mark.parametrize("name", OF_PEOPLE)
def test_a_grant_names_spaces_and_an_agent_in_any_spelling(name: str) -> None:
    grant = Grant(spaces=(otherwise(name), f"{otherwise(name)}/*"), agent=otherwise(name), verbs=frozenset({Verb.READ}))
    grant.check(Verb.READ, name, name)
    grant.check(Verb.READ, f"{name}/x", name)
    assert not grant.covers(f"{name}x")


@pytest.mark.parametrize("pattern", ["a*", "*/*", "/*", "a/**", "a/*/b", " *", "*a"])
def test_a_grant_has_no_other_patterns(pattern: str) -> None:
    with pytest.raises(ValidationError):
        Grant(spaces=(pattern,), agent="baker", verbs=frozenset({Verb.READ}))
