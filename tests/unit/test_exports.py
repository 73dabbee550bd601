"""The public names, frozen: a change of these lists changes what users import."""

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

import recallog
import recallog.errors
import recallog.extending
import recallog.testing
import recallog_schemas
from recallog import Memory
from recallog_schemas import views

PUBLIC = [
    "AgentSettingsView", "AgentView", "AroundView", "AsOf", "Batch", "Belief", "BeliefsView", "Context", "Counted",
    "DeadLetter", "DeadLetterDetail", "Difference", "EntriesView", "EpisodicView", "Event", "Explanation", "KindView",
    "KindsView", "Memory", "PartitionStatus", "PendingTrigger", "Position", "Preview", "Progress", "Reaction",
    "RebuildPlan", "RebuildReport", "RecallHit", "RecallView", "RecallogError", "ReflectionView", "Remembered",
    "Salient", "SalientView", "SceneView", "SearchHit", "SearchPage", "Settings", "SpaceDetail", "SpaceView", "Status",
    "TableCheck", "TimelinePage", "Unreflected", "VerifyReport",
]  # fmt: skip

EXTENDING = [
    "Batch", "Changes", "Checkpoint", "Chunk", "Components", "Embedder", "Embedding", "Engine", "Evidence", "Filter",
    "Generation", "Hit", "Ledger", "Lock", "Log", "LogName", "Manifest", "MemoryLedger", "MemoryStore", "Outcome",
    "Passage", "Point", "Pointer", "Projection", "ReadResult", "Record", "ReflectionAnswer", "ReflectionRequest",
    "Reflector", "Reranker", "RowKey", "Rows", "Search", "Shape", "Sparse", "SqliteLedger", "SqliteStore", "Store",
    "StoredPoint", "StoredRow", "Table", "Tail", "Vectors", "assemble", "check_append", "is_beyond", "is_repeat",
    "ordinal_key", "outcome_of",
]  # fmt: skip

ERRORS = [
    "DeadLettered", "EmbedderUnavailable", "EventTooLarge", "FutureSchema", "IdConflict", "IndexLost",
    "IndexUnavailable", "InvalidEvent", "InvariantViolation", "LedgerMismatch", "LockTimeout", "NewDeadLetters",
    "NothingDue", "OutOfRange", "ProjectionError", "Rebuilding", "RecallogError", "ReflectorFailed",
    "ReflectorMisconfigured", "SettingsError", "StorageCorrupt", "StorageError", "StorageForeign", "StorageFull",
    "StorageReadOnly", "StorageReplaced", "StorageTooNew", "StorageUnavailable", "UnknownOutcome", "ViewsBehind",
    "ViewsTooNew",
]  # fmt: skip

TESTING = ["ProjectionDriver"]

QUESTIONS = [
    "abort_rebuild", "agent_settings", "agents", "beliefs", "catch_up", "catch_up_index", "close", "context",
    "dead_letter", "dead_letters", "declared_kinds", "entries", "episodic", "explain", "in_memory", "keep_reacting",
    "kinds", "ledger_ends", "log_entries", "open", "partition_of", "pending", "plan_rebuild", "publish",
    "publish_many", "react", "rebuild", "recall", "records", "reflection", "reindex", "retry_dead_letters", "row",
    "salient", "scene", "search", "space", "spaces", "status", "timeline", "verify",
]  # fmt: skip


MODULES = {"recallog": PUBLIC, "recallog.extending": EXTENDING, "recallog.errors": ERRORS, "recallog.testing": TESTING}


@pytest.mark.parametrize("module", MODULES)
def test_the_list_of_public_names(module: str) -> None:
    assert import_module(module).__all__ == MODULES[module]


@pytest.mark.parametrize("module", MODULES)
def test_each_public_name_can_be_imported(module: str) -> None:
    found = import_module(module)
    for name in MODULES[module]:
        assert getattr(found, name) is not None
        assert name in dir(found)


LAZY: list[ModuleType] = [
    recallog, recallog.extending, recallog_schemas, views,
    *(import_module(f"recallog.{package}") for package in ("queries", "reactors", "retrieval")),
]  # fmt: skip


@pytest.mark.parametrize("module", LAZY, ids=lambda module: module.__name__)
def test_type_checkers_see_the_names_that_are_imported_lazily_and_no_others(module: ModuleType) -> None:
    declared = {
        (node.module, alias.asname)
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
        if alias.asname is not None
    }
    assert sorted(str(name) for _, name in declared) == module.__all__
    for source, name in declared:
        assert source is not None
        assert getattr(module, str(name)) is getattr(import_module(source), str(name))


@pytest.mark.parametrize("module", LAZY, ids=lambda module: module.__name__)
def test_a_name_that_a_package_does_not_have_is_an_attribute_error(module: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'nothing'"):
        _ = module.nothing


def test_importing_recallog_imports_no_library() -> None:
    script = "import sys; before = set(sys.modules); import recallog; print(*set(sys.modules) - before)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    libraries = {name.partition(".")[0] for name in ended.stdout.split()} - set(sys.stdlib_module_names)
    assert libraries == {"recallog", "recallog_schemas"}


# Types of signatures that come from Python itself; `Row` is the type variable of the caller's own rows.
PYTHON = {
    "AsyncIterator", "BaseException", "Callable", "Collection", "None", "PathLike", "Row", "Self", "Sequence", "bool",
    "datetime", "float", "int", "list", "str",
}  # fmt: skip


def test_every_type_in_the_signature_of_a_public_method_is_public() -> None:
    for name, method in inspect.getmembers(Memory, inspect.isroutine):
        if name.startswith("_"):
            continue
        for annotation in method.__annotations__.values():
            used = {node.id for node in ast.walk(ast.parse(annotation)) if isinstance(node, ast.Name)}
            assert used <= PYTHON | set(PUBLIC) | set(EXTENDING), (name, annotation)


def test_the_list_of_methods_of_a_memory() -> None:
    methods = {name for name in dir(Memory) if not name.startswith("_")}
    assert methods == set(QUESTIONS)


def test_every_public_method_of_a_memory_is_documented() -> None:
    for name, method in inspect.getmembers(Memory, inspect.isfunction):
        assert name.startswith("_") or inspect.getdoc(method), name


def test_every_error_has_one_base_and_is_documented_and_public() -> None:
    from recallog_schemas import errors

    for name, error in inspect.getmembers(errors, inspect.isclass):
        if issubclass(error, Exception):
            assert issubclass(error, recallog.RecallogError), name
            assert error.__doc__, name
            assert error.exit_code in (1, 2, 3), name
            assert getattr(recallog.errors, name) is error
