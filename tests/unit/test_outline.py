"""The outline of a space: who took part in it, and its first and newest sessions."""

from datetime import UTC, datetime

from recallog_projections.views.outline import OUTLINES, Outline, OutlineProjection, Participant
from recallog_schemas import Event, limits
from recallog_testing import ProjectionDriver


def event(number: int, agent: str, session: str | None = None, kind: str = "agent.spoke") -> Event:
    at = datetime(1970, 1, 1 + number, tzinfo=UTC)
    return Event(
        id=f"e-{number}-{agent}", space="village", agent=agent, kind=kind, session=session, at=at, payload={"text": "x"}
    )


def outline(*events: Event) -> Outline | None:
    driver = ProjectionDriver(OutlineProjection())
    driver.given(*events)
    driver.check()
    return driver.row(OUTLINES, "village")


def test_participants_are_listed_once_in_order_and_visitors_are_marked() -> None:
    found = outline(event(0, "miller"), event(1, "baker"), event(2, "miller"), event(3, "baker", kind="user.injected"))
    assert found is not None
    assert found.participants == (Participant("miller", False), Participant("baker", True))


def test_bookkeeping_does_not_make_a_participant() -> None:
    configured = Event(space="village", agent="narrator", kind="space.configured", payload={"shared_kinds": []})
    assert outline(configured) is None


def test_the_first_and_the_two_newest_sessions_are_known() -> None:
    found = outline(*(event(day, "baker", session) for day, session in enumerate(("a", "b", "c", None, "c"))))
    assert found is not None
    assert (found.first, found.newest, found.previous) == ("a", "c", "")


def test_a_space_with_one_session_has_no_previous_one() -> None:
    found = outline(event(0, "baker", "a"), event(1, "miller", "a"))
    assert found is not None
    assert (found.first, found.newest, found.previous) == ("a", "a", None)


def test_the_number_of_participants_is_bounded() -> None:
    found = outline(*(event(0, f"agent-{number}") for number in range(limits.OUTLINE_PARTICIPANTS + 1)))
    assert found is not None
    assert [each.name for each in found.participants[-2:]] == ["agent-254", "agent-255"]
