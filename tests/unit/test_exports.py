"""The public names, frozen: whoever changes this list changes what users import."""

import inspect

import recallog
import recallog.testing
from recallog import Memory

PUBLIC = [
    "AroundView", "BeliefsView", "Context", "EntriesView", "EpisodicView", "Event", "Explanation", "Memory", "Position",
    "Reaction", "RecallHit", "RecallView", "RecallogError", "ReflectionView", "Remembered", "SalientView", "SceneView",
    "SearchPage", "Settings", "TimelinePage",
]  # fmt: skip

QUESTIONS = [
    "abort_rebuild", "agent_settings", "agents", "beliefs", "catch_up", "catch_up_index", "close", "context",
    "dead_letter", "dead_letters", "declared_kinds", "entries", "episodic", "explain", "in_memory", "keep_reacting",
    "kinds", "ledger_ends", "log_entries", "open", "partition_of", "pending", "plan_rebuild", "publish",
    "publish_many", "react", "rebuild", "recall", "records", "reflection", "reindex", "retry_dead_letters", "row",
    "salient", "scene", "search", "space", "spaces", "status", "timeline", "verify",
]  # fmt: skip


def test_the_names_that_users_import() -> None:
    assert recallog.__all__ == PUBLIC
    assert recallog.testing.__all__ == ["ProjectionDriver"]


def test_each_of_them_is_there() -> None:
    for name in PUBLIC:
        assert getattr(recallog, name).__name__ == name


def test_what_a_memory_can_be_asked() -> None:
    methods = {name for name in dir(Memory) if not name.startswith("_")}
    assert methods == set(QUESTIONS)


def test_every_public_method_of_a_memory_is_documented() -> None:
    for name, method in inspect.getmembers(Memory, inspect.isfunction):
        assert name.startswith("_") or inspect.getdoc(method), name


def test_every_error_of_ours_has_one_base_and_is_documented() -> None:
    from recallog_schemas import errors

    for name, error in inspect.getmembers(errors, inspect.isclass):
        if issubclass(error, Exception):
            assert issubclass(error, recallog.RecallogError), name
            assert error.__doc__, name
            assert error.exit_code in (1, 2, 3), name
