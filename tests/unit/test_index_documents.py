"""Documents of the semantic index: their fields, and visibility of their context."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog_projections.index import documents, points
from recallog_projections.index.documents import DOCUMENTS, Document, Index, point_id
from recallog_projections.views import builtin
from recallog_schemas import Event, limits
from recallog_schemas.kinds import CATALOGUE
from recallog_testing import ProjectionDriver
from support.events import event
from support.folding import folded, ledger_at, rows_of
from support.oracle import expect
from support.payloads import LEAST
from support.random_events import bytes_of_an_event, random_ledger

MADE_WITH = {"embedder": "toy", "model": "toy model", "token_vectors": True, "points": 1}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CHARS_BEFORE = 400
OTHERS_KEPT = 8


def spoke(text: str = "Bread!", kind: str = "agent.spoke", **fields: Any) -> Event:
    return event(kind, payload={"text": text}, **fields)


def indexed(*events: Event) -> list[Document]:
    """The documents of some events, in ledger order."""
    driver = ProjectionDriver(Index(MADE_WITH))
    driver.given(*events)
    driver.check()
    return documents_of(driver.ledger.values())


def documents_of(values: Sequence[bytes], *, unique_ids: bool = True, batch_records: int = 1000) -> list[Document]:
    ledger = ledger_at(values, unique_ids=unique_ids, batch_records=batch_records)
    projector, generation = folded(ledger, builtin.with_settings(Index(MADE_WITH)))
    found = {
        ordinal[2]: DOCUMENTS.decode(data)
        for ordinal, data in rows_of(projector.store, generation, "index.document").items()
    }
    for key, document in found.items():
        assert key == point_id(document.space, document.session, document.ordinal)
    return sorted(found.values(), key=lambda document: document.offset)


def before(*events: Event) -> str:
    """The context of the last of some events."""
    return indexed(*events)[-1].before


# Documents.


def test_an_event_with_text_is_a_document_with_all_filterable_fields() -> None:
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    (document,) = indexed(spoke("Who burned the mill?", session="trial", turn=3, at=at))
    assert (document.space, document.agent, document.kind) == ("village", "baker", "agent.spoke")
    assert (document.session, document.ordinal, document.turn, document.offset) == ("trial", 0, 3, 0)
    assert document.at == 1_772_366_400_000_000
    assert document.readers == ("baker",)
    assert document.is_question
    assert '"Who burned the mill?"' in document.event


@pytest.mark.parametrize("text", ["", " ", "\n\t\u00a0\u3000"])
def test_an_event_without_text_is_not_indexed_and_takes_no_ordinal(text: str) -> None:
    assert [document.ordinal for document in indexed(spoke(), spoke(text), spoke())] == [0, 1]


@pytest.mark.parametrize("kind", sorted(name for name, kind in CATALOGUE.items() if kind.role == "bookkeeping"))
def test_bookkeeping_is_not_indexed(kind: str) -> None:
    assert indexed(event(kind, payload={"text": "tick", **LEAST[kind]})) == []


def test_an_unknown_kind_is_indexed_by_its_text() -> None:
    assert [document.kind for document in indexed(spoke(kind="shop.opened"))] == ["shop.opened"]


def test_a_record_with_half_a_surrogate_pair_is_a_dead_letter_and_takes_no_ordinal() -> None:
    texts = ["One.", "The \ud83d mill", "Two."]
    values = [bytes_of_an_event(random.Random(0), id=f"e-{n}", payload={"text": text}) for n, text in enumerate(texts)]
    assert [(document.offset, document.ordinal) for document in documents_of(values)] == [(0, 0), (2, 1)]


def test_surrogates_in_a_text_are_replaced() -> None:
    assert documents.clean(" \ud83dThe mill\udca9 🔥\n") == "?The mill? 🔥"


def test_a_very_long_text_is_a_document_and_its_end_is_the_context_of_the_next() -> None:
    words = " ".join(f"w{number}" for number in range(30_000))
    long, short = indexed(spoke(words), spoke("Yes."))
    assert words in long.event
    assert len(short.before) == CHARS_BEFORE
    assert words.endswith(short.before)


@pytest.mark.parametrize("microsecond", [0, 1, 123_457, 651_003, 999_999])
def test_a_time_is_stored_to_the_microsecond(microsecond: int) -> None:
    at = datetime(2026, 3, 1, 12, 0, 7, microsecond, tzinfo=UTC)
    assert indexed(spoke(at=at))[0].at == (at - EPOCH) // timedelta(microseconds=1)


@given(st.integers(-(2**50), 2**52).map(lambda since: EPOCH + timedelta(microseconds=since)))
def test_every_time_is_stored_to_the_microsecond(at: datetime) -> None:
    kept = documents_of([bytes_of_an_event(random.Random(0), at=at.isoformat())])[0].at
    assert kept == (at - EPOCH) // timedelta(microseconds=1)


# Ordinals and ids.


def weights(*events: Event) -> dict[str, float]:
    """The weights of the terms of the last of some events."""
    return points.weights_of(indexed(*events)[-1])


def test_a_word_of_the_text_before_counts_less() -> None:
    assert (
        weights(spoke("Fresh bread!"), spoke("bread"))["bread"] < weights(spoke("Good day!"), spoke("bread"))["bread"]
    )


@pytest.mark.parametrize("declared", [False, True])
def test_the_words_of_an_action_count_in_full_although_they_were_announced(declared: bool) -> None:
    kinds = {"shell.ran": {"role": "action"}}
    settings = [event("space.configured", payload={"kinds": kinds})] if declared else []
    tool = event("tool.used", payload={"tool": "shell", "arguments": {"command": "pytest -x"}, "result": "3 passed"})
    action = spoke("pytest -x", kind="shell.ran") if declared else tool
    announced = weights(*settings, spoke("Now I run pytest -x."), action)
    assert announced == weights(*settings, spoke("Good day!"), action)


def test_an_action_has_no_length_of_prose() -> None:
    long = "bread " * 100
    tool = event("tool.used", payload={"tool": "shell", "result": long})
    assert [document.length for document in indexed(spoke(long), tool)] == [len(long.strip()), 0]


def test_exact_strings_of_the_details_of_a_tool_call_are_terms() -> None:
    output = [f"{number} passed" for number in range(600)]
    output[300] = "KeyError in src/orders/prices.py"
    tool = event("tool.used", payload={"tool": "shell", "arguments": {"command": "make"}, "result": "\n".join(output)})
    (document,) = indexed(tool)
    assert "prices" not in points.text_of(document)
    found = points.weights_of(document)
    assert {"=src/orders/prices.py", "=prices.py", "=keyerror"} <= found.keys()
    assert "prices" not in found


def test_the_terms_of_details_are_bounded() -> None:
    names = " ".join(f"{number:04x}_x" for number in range(5_000))
    tool = event("tool.used", payload={"tool": "shell", "result": f"{'.' * 500} {names} {'.' * 500}"})
    assert len(weights(tool)) <= limits.INDEX_DETAIL_TERMS_MAX + 10


def test_ordinals_count_by_session_and_events_without_session_by_space() -> None:
    sessions = ["a", None, "b", "a", None, "b"]
    found = indexed(*(spoke(session=session) for session in sessions), spoke(space="city"))
    assert [(document.session, document.ordinal) for document in found[:-1]] == [
        *(("a", 0), ("", 0), ("b", 0), ("a", 1), ("", 1), ("b", 1))
    ]
    assert (found[-1].space, found[-1].ordinal) == ("city", 0)


def test_a_point_has_the_same_id_on_every_machine_and_whenever_it_is_made() -> None:
    assert point_id("village", "", 0) == "238be3cf-febd-65eb-dec3-cb9846f90833"
    assert point_id("village", "trial", 7) == "da31af97-cebc-ccea-401b-8ba573deaef8"


NAMES = st.text("ab1-_./", min_size=0, max_size=4)


@given(st.sets(st.tuples(NAMES, NAMES, st.integers(0, 20)), max_size=30))
def test_no_two_documents_have_one_id(ordinals: set[tuple[str, str, int]]) -> None:
    assert len({point_id(*ordinal) for ordinal in ordinals}) == len(ordinals)


# The context of a document.


def test_the_context_of_a_document_is_the_previous_event_of_its_session() -> None:
    assert (
        before(spoke("The mill burns."), spoke("Elsewhere.", session="b"), spoke("I know.")) == "baker: The mill burns."
    )
    assert before(spoke("The mill burns."), spoke("I know.", session="b")) == ""
    assert before(spoke("The mill burns.", space="city"), spoke("I know.")) == ""


def test_a_private_thought_is_no_context_of_a_shared_event() -> None:
    shared, thought = spoke("The mill burns.", "world.observed", agent="judge"), spoke("Good.", "agent.thought")
    assert before(shared, thought, spoke("Who was it?", "world.observed", agent="judge")) == "judge: The mill burns."
    assert before(shared, thought, spoke("Bad.", "agent.thought", agent="miller")) == "judge: The mill burns."
    assert before(shared, thought, spoke("Very good.", "agent.thought")) == "baker: Good."


def test_the_context_of_an_addressed_event_was_visible_to_its_whole_audience() -> None:
    whisper = spoke("Psst.", audience=["miller"])
    assert before(whisper, spoke("What?", agent="miller", audience=["baker"])) == "baker: Psst."
    assert before(whisper, spoke("What?", agent="miller", audience=["baker", "smith"])) == ""
    assert before(whisper, spoke("I heard it.", agent="miller", audience=[])) == "baker: Psst."


def test_an_event_that_was_private_when_published_is_not_shared_later() -> None:
    sharing = event("space.configured", agent="judge", payload={"shared_kinds": ["agent.spoke"]})
    found = indexed(spoke("Secret."), sharing, spoke("Public."), spoke("And more."))
    assert [document.readers for document in found] == [("baker",), ("*",), ("*",)]
    assert [document.before for document in found] == ["", "", "baker: Public."]


def test_a_repeated_record_is_indexed_once() -> None:
    twice = spoke(id="one")
    found = documents_of([bytes_of(twice), bytes_of(twice)], unique_ids=False)
    assert [document.offset for document in found] == [0]


def bytes_of(one: Event) -> bytes:
    driver = ProjectionDriver(Index(MADE_WITH))
    driver.given(one)
    return driver.ledger.values()[0]


# Comparison with brute force over random events.


@dataclass(frozen=True)
class Heard:
    """One document as the rules define it."""

    offset: int
    session: str
    ordinal: int
    readers: frozenset[str] | None
    """None: everybody."""
    before: str


def heard(values: Sequence[bytes], *, unique_ids: bool) -> list[Heard]:
    """The context of each document: the previous event of its session, by ordinal, that every reader could see,
    among the newest that all could see and the newest few that only some could."""
    found: list[Heard] = []
    spoken: dict[tuple[str, str], list[tuple[frozenset[str] | None, str]]] = {}
    for one in expect(values, unique_ids=unique_ids).counted:
        words = one.text.strip()
        if not one.memorable or not words:
            continue
        readers = None if one.shared else frozenset([one.agent, *(one.audience or [])])
        session = spoken.setdefault((one.space, one.session or ""), [])
        private = [ordinal for ordinal, (who, _) in enumerate(session) if who is not None][-OTHERS_KEPT:]
        before = ""
        for ordinal, (who, line) in enumerate(session):
            if who is None or (ordinal in private and readers is not None and readers <= who):
                before = line
        line = f"{one.agent}: {words[-CHARS_BEFORE:]}"[-CHARS_BEFORE:]
        found.append(Heard(one.offset, one.session or "", len(session), readers, before))
        session.append((readers, line))
    return found


@pytest.mark.models("all")
@given(st.integers(0, 2**32), st.booleans(), st.sampled_from([1, 2, 7]))
def test_documents_follow_the_rules_wherever_batches_end(seed: int, unique_ids: bool, batch: int) -> None:
    values = random_ledger(random.Random(seed), 60, unique_ids=unique_ids)
    found = documents_of(values, unique_ids=unique_ids, batch_records=batch)
    expected = heard(values, unique_ids=unique_ids)
    assert [
        Heard(each.offset, each.session, each.ordinal, frozenset(each.readers) - {"*"} or None, each.before)
        for each in found
    ] == expected
    assert found == documents_of(values, unique_ids=unique_ids)
    assert len({point_id(each.space, each.session, each.ordinal) for each in found}) == len(found)


@given(st.integers(0, 2**32))
def test_the_context_of_a_document_was_visible_to_each_of_its_readers(seed: int) -> None:
    values = random_ledger(random.Random(seed), 60, unique_ids=True)
    counted = expect(values, unique_ids=True).counted
    for document in documents_of(values):
        if document.before:
            earlier = [
                one
                for one in counted
                if one.offset < document.offset
                and one.space == document.space
                and document.before.endswith(one.text.strip()[-100:])
                and (one.session or "") == document.session
            ]
            readers = document.readers if document.readers != ("*",) else None
            assert any(
                one.shared if readers is None else all(one.is_seen_by(reader) for reader in readers) for one in earlier
            )


def test_the_limits_equal_those_of_the_oracle() -> None:
    assert (limits.INDEX_BEFORE_CHARS, limits.INDEX_OTHERS_KEPT) == (CHARS_BEFORE, OTHERS_KEPT)


@given(st.integers(0, 2**32))
def test_a_document_is_restored_from_its_payload(seed: int) -> None:
    for document in documents_of(random_ledger(random.Random(seed), 20, unique_ids=True)):
        assert documents.from_payload(documents.payload(document)) == document
