"""Operations: what their declaration accepts and refuses, what signatures and help say, and that examples work."""

import inspect
import json
import pydoc
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Unpack

import pytest
import typer
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import Field
from typer.core import TyperGroup

from recallog import Memory, Position
from recallog.operations import parameters, pipeline
from recallog.operations.facade import Facade, all_operations, find_operation, operation
from recallog.operations.operation import Operation, Scope
from recallog_schemas import limits
from recallog_schemas.errors import EventTooLarge, InvalidArgument, InvalidEvent, InvalidInput
from recallog_schemas.lazy_exports import defining_module
from recallog_schemas.views import View
from recallog_service.cli import app
from support.cli import recallog
from support.events import MOMENT, event, one_loop, run

OPERATIONS = all_operations(Memory)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FIELDS = {"space": "village", "agent": "baker", "kind": "agent.spoke", "payload": {"text": "Bread!"}}
HUGE = 10**5000
"""More digits than Python writes out."""


class DoneView(View):
    """What the spies answer."""

    done: bool = True


class Clock(Facade):
    """A facade that another one has."""

    def __init__(self, seen: list[dict[str, Any]]) -> None:
        self.seen = seen

    @operation(example="recallog wind", scope=Scope.OPERATE)
    async def wind(self, turns: Annotated[int, Field(ge=1, description="How often.")] = 7) -> DoneView:
        """Wind the clock."""
        self.seen.append({"turns": turns})
        return DoneView()


class Spy(Facade):
    """Operations that record what they receive."""

    facades: ClassVar = {"clock": Clock}

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.clock = Clock(self.seen)

    @operation(example="recallog look village")
    async def look(
        self,
        space: parameters.Space,
        ids: parameters.EventIds = ("e-1",),
        *,
        top_k: parameters.RecallTopK = limits.RECALL_HITS,
        limit: parameters.SearchLimit = limits.SEARCH_HITS,
        fusion: parameters.FusionMethod = "weighted",
        wait_index: parameters.WaitIndex = False,
        progress: parameters.Report = None,
        **options: Unpack[parameters.RecallOptions],
    ) -> DoneView:
        """Look around.

        In a second paragraph.

        Raises nothing.
        """
        given = {"space": space, "ids": ids, "top_k": top_k, "limit": limit, "fusion": fusion, "wait_index": wait_index}
        self.seen.append({**given, "progress": progress, **options})
        return DoneView()

    @operation(example="recallog tell", scope=Scope.PUBLISH)
    async def tell(self, event: parameters.EventFields) -> DoneView:
        """Tell one event."""
        self.seen.append({"event": event})
        return DoneView()

    @operation(example="recallog tell-all", scope=Scope.PUBLISH, idempotent=True, destructive=True)
    async def tell_all(self, events: parameters.ManyEvents) -> DoneView:
        """Tell events."""
        self.seen.append({"events": events})
        return DoneView()


class Heir(Spy):
    """Inherits operations, and has one more."""

    @operation(example="recallog listen", command="")
    async def listen(self, at: parameters.RecordPosition) -> DoneView:
        """Listen."""
        self.seen.append({"at": at})
        return DoneView()


def looked(**arguments: Any) -> dict[str, Any]:
    """What the body of `look` receives from a call in Python."""
    spy = Spy()
    run(spy.look("village", **arguments))
    (seen,) = spy.seen
    return seen


def refused(**arguments: Any) -> tuple[str, str]:
    """The path and the rule of the error of a call in Python; the body does not run."""
    spy = Spy()
    with pytest.raises(InvalidArgument) as caught:
        run(spy.look(**{"space": "village"} | arguments))
    assert spy.seen == []
    assert str(caught.value).startswith(f"{caught.value.path}: ")
    return caught.value.path, caught.value.rule


def through_a_door(name: str, **arguments: Any) -> dict[str, Any]:
    """What the body receives from a call of a door."""
    spy = Spy()
    assert run(pipeline.call(spy, all_operations(Spy)[name], arguments)) == DoneView()
    (seen,) = spy.seen
    return seen


def of_all(function: Any) -> Any:
    return pytest.mark.parametrize("name", OPERATIONS)(function)


def method_of(name: str) -> Any:
    declared = OPERATIONS[name]
    return getattr(Memory.facades[declared.group] if declared.group else Memory, declared.function.__name__)


# What is refused, and how the error names it.


@pytest.mark.parametrize(
    ("arguments", "path", "rule"),
    [
        ({"space": 3}, "space", "string_type"),
        ({"space": ""}, "space", "string_pattern_mismatch"),
        ({"space": "village "}, "space", "string_pattern_mismatch"),
        ({"space": "village\n"}, "space", "string_pattern_mismatch"),
        ({"space": "v" * 257}, "space", "string_pattern_mismatch"),
        ({"top_k": "5"}, "top_k", "int_type"),
        ({"top_k": 5.0}, "top_k", "int_type"),
        ({"top_k": True}, "top_k", "int_type"),
        ({"top_k": None}, "top_k", "int_type"),
        ({"top_k": 0}, "top_k", "greater_than_equal"),
        ({"top_k": limits.RECALL_HITS_MAX + 1}, "top_k", "less_than_equal"),
        ({"top_k": HUGE}, "top_k", "less_than_equal"),
        ({"limit": "5"}, "limit", "int_type"),
        ({"wait_index": 1}, "wait_index", "bool_type"),
        ({"wait_index": "yes"}, "wait_index", "bool_type"),
        ({"fusion": "rff"}, "fusion", "literal_error"),
        ({"min_similarity": "0.3"}, "min_similarity", "float_type"),
        ({"min_similarity": float("nan")}, "min_similarity", "finite_number"),
        ({"min_similarity": HUGE}, "min_similarity", "float_type"),
        ({"ids": "e-1"}, "ids", "sequence_str"),
        ({"ids": {"e-1"}}, "ids", "is_instance_of"),
        ({"ids": ["e-1", 2]}, "ids.1", "string_type"),
        ({"ids": ["e"] * (limits.ENTRIES_IDS_MAX + 1)}, "ids", "too_long"),
        ({"kinds": "agent.spoke"}, "kinds", "sequence_str"),
        ({"channels": ["keyword", "smell"]}, "channels.1", "literal_error"),
        ({"author": "the baker "}, "author", "string_pattern_mismatch"),
        ({"after": 41}, "after", "position"),
        ({"after": "41st"}, "after", "position"),
        ({"after": "9" * 5000}, "after", "position"),
        ({"after": {"partition": 0}}, "after", "position"),
        ({"after": {"partition": 0, "offset": -1}}, "after", "position"),
        ({"after": {"partition": True, "offset": 1}}, "after", "position"),
        ({"after": Position("0", 1)}, "after", "position"),  # type: ignore[arg-type]
        ({"as_of": 41}, "as_of", "position"),
        ({"as_of": "yesterday"}, "as_of", "time"),
        ({"as_of": "2026-03-01T12:00:00"}, "as_of", "time_zone"),
        ({"since": 1772366400}, "since", "time"),
        ({"since": "0:41"}, "since", "time"),
        ({"until": datetime(2026, 3, 1)}, "until", "time_zone"),  # noqa: DTZ001  # a time without zone is the case
        ({"min_similarty": 0.3}, "min_similarty", "extra_forbidden"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else None,
)
def test_an_invalid_argument_is_refused_with_its_path_and_rule(arguments: dict[str, Any], path: str, rule: str) -> None:
    assert refused(**arguments) == (path, rule)


def test_what_starts_the_index_are_arguments_of_operations_that_use_it() -> None:
    for each in OPERATIONS.values():
        assert set(each.starts_index) <= set(each.parameters), each.qualified_name
        assert each.uses_index or not each.starts_index, each.qualified_name


@pytest.mark.parametrize(
    ("name", "arguments", "starts"),
    [
        ("recall", {"query": "who?"}, True),
        ("recall", {"query": " "}, False),
        pytest.param("context", {}, False, marks=pytest.mark.models("prompt")),
        pytest.param("context", {"query": None, "scene": "A mill."}, True, marks=pytest.mark.models("prompt")),
        ("salient", {"query": "who?"}, False),
    ],
)
def test_a_call_starts_the_index_if_it_asks_it(name: str, arguments: dict[str, Any], starts: bool) -> None:
    made = pipeline.Call(OPERATIONS[name], Facade(), arguments, {})
    assert made.starts_index == starts


def test_a_missing_argument_is_refused() -> None:
    spy = Spy()
    with pytest.raises(InvalidArgument, match=r"^space: is required$") as caught:
        run(spy.look())  # type: ignore[call-arg]
    assert (caught.value.path, caught.value.rule, caught.value.exit_code) == ("space", "missing", 2)


def test_a_misspelt_argument_is_refused_with_the_name_that_was_meant() -> None:
    with pytest.raises(InvalidArgument, match=r"min_similarty: .* did you mean min_similarity\?"):
        looked(min_similarty=0.3)


def test_where_an_argument_is_missing_and_one_is_unknown_the_message_names_both() -> None:
    with pytest.raises(InvalidArgument, match=r"^space: is required; look has no argument 'room'$"):
        run(Spy().look(room="village"))  # type: ignore[call-arg]


def test_a_number_that_is_none_is_refused_in_few_words() -> None:
    with pytest.raises(InvalidArgument, match=r"^top_k: should be a valid integer, not 'x'$"):
        through_a_door("look", space="village", top_k="x")


def test_a_name_like_no_argument_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidArgument, match="it takes turns"):
        run(Clock([]).wind(velocity=3))  # type: ignore[call-arg]
    with pytest.raises(InvalidArgument, match="it takes none"):
        run(pipeline.call(Memory, OPERATIONS["admin.status"], {"velocity": 3}))  # type: ignore[arg-type]


def test_the_message_shows_the_value_shortened() -> None:
    with pytest.raises(InvalidArgument, match=r"^top_k: should be a valid integer, not '5'$"):
        looked(top_k="5")
    with pytest.raises(InvalidArgument) as caught:
        looked(author="!" * 1_000_000)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((("village", ["e-1"], 5), {}), "too many positional arguments"),
        ((("village",), {"space": "city"}), "multiple values for argument 'space'"),
    ],
    ids=["too many", "given twice"],
)
def test_arguments_that_no_python_function_would_take_raise_a_type_error(
    arguments: tuple[tuple[Any, ...], dict[str, Any]], message: str
) -> None:
    args, named = arguments
    spy = Spy()
    with pytest.raises(TypeError, match=message):
        run(spy.look(*args, **named))
    assert spy.seen == []


# What the body receives.


def test_the_body_receives_only_parsed_values() -> None:
    seen = looked(since=MOMENT, until="2026-03-02T12:00:00+02:00", after="41", as_of="1:7", ids=["e-2"], kinds=("a.b",))
    assert (seen["since"], seen["until"]) == (NOON, datetime(2026, 3, 2, 10, tzinfo=UTC))
    assert (seen["after"], seen["as_of"]) == (Position(0, 41), Position(1, 7))
    assert (list(seen["ids"]), list(seen["kinds"])) == (["e-2"], ["a.b"])


@pytest.mark.parametrize(
    ("given_moment", "expected"),
    [
        (MOMENT, NOON),
        (NOON, NOON),
        ("41", Position(0, 41)),
        ("2:41", Position(2, 41)),
        (Position(2, 41), Position(2, 41)),
        ({"partition": 2, "offset": 41}, Position(2, 41)),
        (None, None),
    ],
    ids=repr,
)
def test_a_moment_of_the_past_is_a_time_or_a_position_or_their_text(given_moment: Any, expected: object) -> None:
    assert looked(as_of=given_moment)["as_of"] == expected
    assert through_a_door("look", space="village", as_of=given_moment)["as_of"] == expected


def test_only_given_arguments_are_passed_so_that_the_defaults_of_the_method_hold() -> None:
    seen = looked()
    assert seen == {
        "space": "village",
        "ids": ("e-1",),
        "top_k": 5,
        "limit": 20,
        "fusion": "weighted",
        "wait_index": False,
        "progress": None,
    }
    assert looked(since=None).keys() - seen.keys() == {"since"}


@pytest.mark.parametrize(("given_limit", "used"), [(500, 100), (100, 100), (0, 1), (-(10**50), 1), (7, 7)])
def test_a_number_that_is_clamped_is_replaced_by_the_nearest_one(given_limit: int, used: int) -> None:
    assert looked(limit=given_limit)["limit"] == used


def test_a_door_may_give_a_text_for_a_number_or_a_truth_value() -> None:
    seen = through_a_door(
        "look", space="village", top_k="5", limit="500", wait_index="true", min_similarity="0.25", ids=["5"]
    )
    assert (seen["top_k"], seen["limit"], seen["wait_index"], seen["min_similarity"]) == (5, 100, True, 0.25)
    assert list(seen["ids"]) == ["5"]


@pytest.mark.parametrize(
    "arguments",
    [{"top_k": "five"}, {"top_k": "0"}, {"wait_index": "perhaps"}, {"min_similarity": "nan"}, {"space": 5}],
    ids=repr,
)
def test_a_door_is_refused_what_no_text_stands_for(arguments: dict[str, Any]) -> None:
    (name,) = arguments
    with pytest.raises(InvalidArgument) as caught:
        through_a_door("look", **{"space": "village"} | arguments)
    assert caught.value.path == name


@pytest.mark.parametrize(
    ("arguments", "name"),
    [({"session": "half \udcff"}, "session"), ({"ids": ["e-1", "half \ud83d"]}, "ids.1")],
    ids=["a text", "an item of a list"],
)
def test_text_that_no_answer_could_repeat_is_refused(arguments: dict[str, Any], name: str) -> None:
    for call in (partial(through_a_door, "look", space="village"), looked):
        with pytest.raises(InvalidArgument, match=f"^{name}: is not valid text: .*half") as caught:
            call(**arguments)
        assert (caught.value.path, caught.value.rule) == (name, "string_unicode")


# Events.


def test_an_event_may_be_a_dict_of_its_fields() -> None:
    spy = Spy()
    run(spy.tell(FIELDS | {"id": "e-1", "at": MOMENT}))
    assert spy.seen == [{"event": event(id="e-1", at=NOON)}]
    whole = event()
    run(spy.tell(whole))
    assert spy.seen[1]["event"] is whole


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"payload": {"text": 5}}, "payload.text"),
        ({"kind": "spoke"}, "kind"),
        ({"turn": "3"}, "turn"),
        ({"at": "2026-03-01T12:00:00"}, "at"),
        ({"audience": ["smith", "the miller "]}, "audience.1"),
        ({"mood": "merry"}, "mood"),
        ({3: "merry"}, "3"),
    ],
    ids=repr,
)
def test_a_field_of_an_event_that_is_invalid_is_named(fields: dict[Any, Any], path: str) -> None:
    spy = Spy()
    with pytest.raises(InvalidEvent) as caught:
        run(spy.tell(FIELDS | fields))
    assert caught.value.path == path
    with pytest.raises(InvalidEvent) as caught:
        run(spy.tell_all([event(), FIELDS, event(), FIELDS | fields]))
    assert caught.value.path == f"3.{path}"
    assert str(caught.value).startswith(f"3.{path}: ")
    assert spy.seen == []


@pytest.mark.parametrize("nothing_like_it", [None, 3, "an event", [("space", "village")]], ids=repr)
def test_what_is_no_event_is_refused(nothing_like_it: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^event: should be an Event, or a dict of its fields, not") as caught:
        run(Spy().tell(nothing_like_it))
    assert (caught.value.path, caught.value.rule) == ("event", "event")
    with pytest.raises(InvalidEvent, match=r"^1: should be an Event, or a dict of its fields$") as in_a_list:
        run(Spy().tell_all([FIELDS, nothing_like_it]))
    assert (in_a_list.value.path, in_a_list.value.rule) == ("1", "event")


@pytest.mark.parametrize("no_list", [None, FIELDS, "events", {3}], ids=repr)
def test_what_is_no_list_of_events_is_refused(no_list: Any) -> None:
    with pytest.raises(InvalidArgument) as caught:
        run(Spy().tell_all(no_list))
    assert (caught.value.path, caught.value.rule) == ("events", "events")


def test_an_event_that_is_too_large_keeps_its_error() -> None:
    large = FIELDS | {"payload": {"text": "x" * limits.EVENT_BYTES_MAX}}
    with pytest.raises(EventTooLarge):
        run(Spy().tell(large))
    with pytest.raises(EventTooLarge, match=r"^1: the event is") as caught:
        run(Spy().tell_all([FIELDS, large]))
    assert caught.value.path == "1"


# Callbacks.


def test_a_callback_reaches_the_method_and_is_in_no_schema() -> None:
    def progress(done: int, total: int) -> None: ...

    assert looked(progress=progress)["progress"] is progress
    spy, look = Spy(), all_operations(Spy)["look"]
    run(pipeline.call(spy, look, {"space": "village"}, {"progress": progress}))
    assert spy.seen[0]["progress"] is progress
    assert look.callbacks == {"progress"}
    assert "progress" not in look.parameters
    assert "progress" not in json.dumps(look.arguments.model_json_schema())
    with pytest.raises(InvalidArgument, match="progress: look has no such argument"):
        look.validate({"space": "village", "progress": None}, strict=False)


def test_the_progress_of_a_real_operation_is_called(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish(FIELDS)
            assert (await memory.admin.verify(progress=lambda done, total: calls.append((done, total)))).clean

    run(work())
    assert calls[-1] == (1, 1)


# How operations are collected, and what doors know of them.


def test_a_subclass_inherits_operations_and_adds_its_own() -> None:
    assert list(Heir.operations) == ["look", "tell", "tell_all", "listen"]
    assert list(Spy.operations) == ["look", "tell", "tell_all"]
    assert list(all_operations(Heir)) == ["look", "tell", "tell_all", "listen", "clock.wind"]
    heir = Heir()
    run(heir.listen("0:41"))
    run(heir.look("village"))
    assert [heir.seen[0]["at"], heir.seen[1]["space"]] == [Position(0, 41), "village"]


def test_a_class_of_two_facades_has_the_operations_of_both() -> None:
    class Both(Heir, Clock):
        """A facade of two."""

    assert list(Both.operations) == ["wind", "look", "tell", "tell_all", "listen"]


def test_an_operation_without_names_for_its_arguments_is_refused_where_it_is_declared() -> None:
    with pytest.raises(TypeError, match=r"takes no \*args"):

        @operation(example="recallog many")
        async def many(self: Spy, *ids: str) -> DoneView:
            return DoneView()


def test_an_operation_of_a_further_facade_is_called_on_it() -> None:
    wind = all_operations(Spy)["clock.wind"]
    assert (wind.group, wind.name, wind.qualified_name) == ("clock", "wind", "clock.wind")
    assert through_a_door("clock.wind", turns="3") == {"turns": 3}
    assert through_a_door("clock.wind") == {"turns": 7}


def test_descriptions_are_read_in_a_terminal_too_and_have_no_links() -> None:
    assert [each.qualified_name for each in all_operations(Memory).values() if "](" in "".join(each.description)] == []


def test_documentation_names_operations_of_its_own_facade_then_of_the_main_one() -> None:
    class Sundial(Facade):
        """Another facade with an operation of the same name."""

        @operation(example="recallog sundial wind", command="sundial wind")
        async def wind(self) -> DoneView:
            """Wind the sundial."""
            return DoneView()

        @operation(example="recallog sundial look", command="sundial look")
        async def look(self) -> DoneView:
            """Look at the sundial."""
            return DoneView()

    class Both(Spy):
        """Operations, and two facades."""

        facades: ClassVar = {"clock": Clock, "sundial": Sundial}

    def found(name: str, group: str = "") -> str | None:
        named = find_operation(name, Both, group)
        return None if named is None else named.qualified_name

    assert (found("look"), found("look", "clock"), found("look", "sundial")) == ("look", "look", "sundial.look")
    assert (found("wind", "clock"), found("wind", "sundial")) == ("clock.wind", "sundial.wind")
    assert (found("clock.wind"), found("clock.wind", "sundial")) == ("clock.wind", "clock.wind")
    assert found("wind") is None
    assert find_operation("wind", Spy, "") is all_operations(Spy)["clock.wind"]


def test_what_the_decorator_says_has_defaults() -> None:
    look, tell, tell_all = Spy.operations.values()
    assert [each.scope for each in (look, tell, tell_all)] == [Scope.READ, Scope.PUBLISH, Scope.PUBLISH]
    assert [each.idempotent for each in (look, tell, tell_all)] == [True, False, True]
    assert [each.destructive for each in (look, tell, tell_all)] == [False, False, True]
    assert [each.command for each in (look, tell, tell_all)] == ["look", "tell", "tell-all"]
    assert Heir.operations["listen"].command == ""
    assert (look.summary, list(look.description)) == ("Look around.", ["Look around.", "In a second paragraph."])
    assert look.answer is DoneView
    assert look.to_json(DoneView()) == b'{"done":true}'


def test_a_subclass_replaces_an_operation_by_an_operation_only() -> None:
    async def look(self: Spy, space: parameters.Space) -> DoneView:
        """Look elsewhere."""
        self.seen.append({"elsewhere": space})
        return DoneView()

    with pytest.raises(TypeError, match="look replaces an operation: declare it with @operation"):
        type("Plain", (Spy,), {"look": look})
    declared = operation(example="recallog look village")(look)
    other = type("Other", (Spy,), {"look": declared})()
    run(pipeline.call(other, all_operations(type(other))["look"], {"space": "village"}))
    run(other.look("city"))
    assert other.seen == [{"elsewhere": "village"}, {"elsewhere": "city"}]


def test_an_operation_with_postponed_annotations_is_refused_where_it_is_declared() -> None:
    async def late(self: Spy, space: "parameters.Space") -> DoneView:
        raise NotImplementedError

    with pytest.raises(TypeError, match="remove `from __future__ import annotations`"):
        operation(example="recallog late")(late)


# What Python shows of every operation.


@of_all
def test_the_signature_names_every_argument_with_its_default(name: str) -> None:
    declared, method = OPERATIONS[name], method_of(name)
    shown = list(inspect.signature(method).parameters.values())
    assert shown[0].name == "self"
    assert [each.name for each in shown[1:]] == list(declared.signature.parameters)
    assert {each.name for each in shown[1:]} == declared.parameters.keys() | declared.callbacks
    assert not any(each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL) for each in shown)
    written = inspect.signature(declared.function).parameters
    for each in shown[1:]:
        assert each.default == (written[each.name].default if each.name in written else None)
        assert "Annotated" not in str(each)
    assert inspect.signature(method).return_annotation == inspect.signature(declared.function).return_annotation


@of_all
def test_help_shows_every_argument_and_the_documentation(name: str) -> None:
    shown = pydoc.render_doc(method_of(name), renderer=pydoc.plaintext)
    for each in OPERATIONS[name].signature.parameters:
        assert f"{each}:" in shown
    assert OPERATIONS[name].summary.split(". ")[0][:60] in " ".join(shown.split())


@of_all
def test_the_method_is_the_coroutine_function_that_was_written(name: str) -> None:
    declared, method = OPERATIONS[name], method_of(name)
    assert inspect.iscoroutinefunction(method)
    assert (method.__name__, method.__doc__) == (declared.function.__name__, declared.function.__doc__)
    assert (method.__module__, method.__qualname__) == (declared.function.__module__, declared.function.__qualname__)
    facades = (Memory, *Memory.facades.values())
    assert method.__module__ in {defining_module(base) for facade in facades for base in facade.__mro__}


@of_all
def test_an_operation_and_its_parameters_are_documented(name: str) -> None:
    declared = OPERATIONS[name]
    text = inspect.getdoc(declared.function)
    assert text is not None
    for paragraph in (text, *declared.description):
        assert paragraph[0].isupper() or paragraph[0] == "`" or paragraph.startswith("salience = ")
        assert paragraph.endswith(".")
    assert text[0].isupper()
    shown = " ".join(declared.description)
    assert "Raises" not in shown
    assert not any(f"`{callback}`" in shown for callback in declared.callbacks)
    for parameter, field in declared.arguments.model_fields.items():
        assert field.description, parameter
        assert field.description.endswith("."), parameter


# Any JSON at all.

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_NEAR = st.sampled_from(
    [
        *("village", "e-1", "0:41", "7:", ":", MOMENT, "2026-03-01", "0001-01-01T00:00:00+14:00", "weighted", "views"),
        *("", " ", "\n", "\x00", "5", "1e999", "٣", 0, -1, 2**63, 10**400, 1e308),
        *([], ["keyword"], [None], [[]], FIELDS, [FIELDS], FIELDS | {"payload": {"text": None}}),
        *({"partition": 0, "offset": 1}, {"partition": [], "offset": {}}),
    ]
)
"""What is almost right for some parameter."""


def _error_of(declared: Operation, arguments: Mapping[str, Any], *, strict: bool) -> InvalidInput | None:
    """The error of invalid arguments; any other exception passes."""
    try:
        valid = declared.validate(arguments, strict=strict)
    except InvalidInput as error:
        return error
    assert valid.keys() == arguments.keys()
    return None


def _names_an_argument(error: InvalidInput, names: Iterable[str]) -> bool:
    return any(error.path == each or error.path.startswith(f"{each}.") for each in names)


@of_all
def test_any_json_is_accepted_or_refused_with_the_name_of_the_argument(name: str) -> None:
    declared = OPERATIONS[name]
    names = st.sampled_from([*declared.parameters, "spcae", "", "a.b"])

    @settings(max_examples=50)
    @given(st.dictionaries(names, _JSON | _NEAR, max_size=4), st.booleans())
    @example({}, True)
    @example(dict.fromkeys(declared.parameters, HUGE), True)
    @example(dict.fromkeys(declared.parameters, "9" * 5000), False)
    def check(arguments: dict[str, Any], strict: bool) -> None:
        error = _error_of(declared, arguments, strict=strict)
        if isinstance(error, InvalidEvent):
            assert arguments.keys() & {"event", "events"}
        elif error is not None:
            assert _names_an_argument(error, [*arguments, *declared.parameters])
            assert str(error).startswith(f"{error.path}: ")

    check()


# Examples.


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose space has what the examples name: positions up to 0:120, events e-17 and e-23, three agents,
    an item, a block, the entry l-7, and one about Acme Corp."""
    folder = tmp_path_factory.mktemp("village")

    async def work() -> None:
        agents = ("smith", "widow", "baker")
        async with Memory.open(folder) as memory:
            await memory.publish_many(
                [
                    event(id=f"e-{n}", agent=agents[n % 3], turn=n, payload={"text": f"nine sacks, {n}"})
                    for n in range(130)
                ]
            )
            await memory.items.put("village", "baker", "notes", "miller", "owes nine sacks")
            retain = memory.long_term.retain
            await retain("village", "baker", "Sift the flour first.", type="lesson", entry_id="l-7", tier="slow")
            await retain("village", "baker", "They prefer React.", entity="Acme Corp")
            await memory.working.set("village", "baker", "Goals", "Close 3 deals")
            await memory.conversation.add("village", "baker", "s-1", [{"role": "user", "content": "Who owes me?"}])

    with one_loop():
        run(work())
    return folder


def _words(declared: Operation) -> Sequence[str]:
    """The words of an example after `recallog`, without what a shell does with the output."""
    command, *words = shlex.split(declared.example.partition(" > ")[0])
    assert command == "recallog"
    return words


def _parsed(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The command that a command line names, and its parameters, without running it."""
    context = typer.main.get_group(app).make_context("recallog", list(words))
    while isinstance(context.command, TyperGroup):
        rest = [*context._protected_args, *context.args]
        name, command, rest = context.command.resolve_command(context, rest)
        assert command is not None
        context = command.make_context(name, rest, parent=context)
    return context.command_path, context.params


@of_all
def test_the_example_is_a_command_line_of_its_own_command(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("events.jsonl").touch()
    Path("memory").mkdir()
    declared = OPERATIONS[name]
    path, _ = _parsed(_words(declared))
    own = [word for word in declared.command.split() if not word.startswith("--")]
    assert path.split()[1:] == (own or ["ingest"])
    assert {word for word in declared.command.split() if word.startswith("--")} <= set(_words(declared))


@pytest.mark.models("conversations", "working")
@pytest.mark.parametrize("name", [name for name, each in OPERATIONS.items() if each.scope is Scope.READ])
def test_the_example_of_a_query_runs(name: str, home: Path) -> None:
    ended = recallog(*_words(OPERATIONS[name]), RECALLOG_HOME=str(home))
    assert (ended.code, bool(ended.out)) == (0, True), ended.err
