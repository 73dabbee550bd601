"""The public names, frozen: a change of these lists changes what users import. The reference has the operations."""

import ast
import builtins
import collections.abc
import inspect
import subprocess
import sys
import typing
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType, NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

import pytest

import recallog
import recallog.extending
from recallog import Beliefs, Consensus, Conversation, Items, LongTerm, Memory, Stream, Tiers, Working, Workspace
from recallog.admin import Admin
from recallog.operations.facade import Facade, all_operations
from recallog.remote.client import Remote
from recallog_schemas import views
from recallog_tools import exports

pytestmark = pytest.mark.models("all")

ERRORS = [
    "AccessDenied", "Conflict", "DeadLettered", "EmbedderUnavailable", "EventTooLarge", "Forbidden",
    "FutureSchema", "IdConflict", "IndexDamaged", "IndexLost", "IndexUnavailable", "InvalidArgument",
    "InvalidEvent", "InvalidInput", "InvariantViolation", "LedgerMismatch", "LedgerMoved", "LockTimeout",
    "ModelFailed",
    "ModelMisconfigured", "NewDeadLetters", "NothingDue", "OutOfRange", "ProjectionError", "RateLimited",
    "Rebuilding", "RecallogError", "Refused", "SettingsError", "SourcesErased", "StorageCorrupt", "StorageError",
    "StorageForeign", "StorageFull", "StorageReadOnly", "StorageReplaced", "StorageTooNew",
    "StorageUnavailable", "Unauthorized", "UnknownOutcome", "ViewsBehind", "ViewsTooNew",
]  # fmt: skip

PUBLIC = sorted(
    [
        "Admin",
        "AsOf",
        "Batch",
        "Compacted",
        "Beliefs",
        "Consensus",
        "Conversation",
        "Event",
        "Items",
        "LongTerm",
        "MODELS",
        "Memory",
        "Model",
        "Position",
        "Progress",
        "Remote",
        "Settings",
        "Stream",
        "Tiers",
        "Working",
        "Workspace",
        "__version__",
        "compact",
        "format_context",
        "fuse",
        "wrap",
        *ERRORS,
    ]
)

EXTENDING = [
    "AdapterSettings", "AgentReading", "At", "CandidateSource", "Changes", "ChatModel", "Checkpoint", "Chunk",
    "Components", "DESTROYED", "Database", "DocumentMaker", "Documents", "Doorbell", "Due", "DueTrigger",
    "Embedder", "Embedding", "Engine", "Evidence", "ExternalSource", "ExtractionRequest", "FacadePart", "Fact",
    "FactExtractor",
    "Filter", "FolderLock", "Generation", "Hit", "Inventory", "Judge", "KeptText", "KeptTexts", "KeysState",
    "Kind", "KnownItem", "Ledger", "Lock", "Log", "LogName", "MARKS", "Manifest", "MemoryAccess", "MemoryIndex",
    "MemoryLedger", "MemoryStore", "Opener", "Outcome", "Passage", "Payload", "Point", "Pointer", "Projection",
    "QueueFailed", "Reactor", "ReadResult", "ReadSession", "Record", "RecordSource", "ReflectionAnswer",
    "ReflectionRequest", "Reflector", "Refusal", "Reranker", "RowKey", "Rows", "Scan", "Scope", "SealingKey",
    "SealingKeys", "Search", "SpaceReading", "Sparse", "SqliteLedger", "SqliteStore", "Store", "StoredPoint",
    "StoredRow", "Summarizer", "Synthesizer", "Table", "Tail", "TextCandidates", "TextDocuments", "Times",
    "TriggerQueue", "Unit", "Utterance", "Vectors", "Verdict", "assemble", "bookkeeping", "check_repeat", "entry",
    "episode", "is_beyond", "log_of_refusals", "mark_of", "may_be_sealed", "name_of", "operation", "ordinal_key",
    "outcome_of", "parameters", "parts_of",
]  # fmt: skip

VIEWS = sorted(name for name in views.__all__ if isinstance(getattr(views, name), type))

TESTING = ["ProjectionDriver", "ReactorDriver"]
SUITES = [
    "DatabaseContract", "EmbedderContract", "EngineContract", "LedgerContract", "ModelContract", "ReaderContract",
    "RepeatedIdsContract", "SealingKeysContract", "StoreContract", "UniqueIdsContract",
]  # fmt: skip

# What a facade has beside its operations: plain methods, for callbacks, streams and a user's own rows.
PLAIN: dict[type[Facade], set[str]] = {
    Memory: {
        "admin", "answer_due", "attribute", "beliefs", "catch_up", "catch_up_index", "close", "consensus",
        "conversation", "facades",
        "in_memory", "items", "keep_reacting", "log_entries", "long_term", "open", "operations", "reactor_of", "row",
        "start_index",
        "stream", "tick", "tiers", "working", "workspace",
    },
    Admin: {
        "attribute", "check_ready", "facades", "known_positions", "ledger_ends", "operations", "partition_of",
        "records",
        "restore_events", "scrub_event",
    },
    Beliefs: {"attribute", "facades", "operations"},
    Consensus: {"attribute", "facades", "operations"},
    Items: {"attribute", "facades", "operations"},
    Conversation: {"attribute", "facades", "operations"},
    LongTerm: {"attribute", "facades", "operations"},
    Working: {"attribute", "facades", "operations"},
    Workspace: {"attribute", "export_folder", "facades", "import_folder", "operations"},
    Tiers: {"attribute", "facades", "operations"},
    Stream: {"attribute", "facades", "operations"},
}  # fmt: skip

REMOTE_PARTS = ["RemoteAdmin", "RemoteWorkspace"]

MODULES = {
    "recallog": PUBLIC,
    "recallog.errors": ERRORS,
    "recallog.views": VIEWS,
    "recallog.remote": sorted(["Gap", "Remote", "Tailed", *REMOTE_PARTS]),
    "recallog.sync": sorted(["Remote", *REMOTE_PARTS, *(each.__name__ for each in PLAIN)]),
    "recallog.extending": EXTENDING,
    "recallog_testing": TESTING,
    "recallog_testing.contracts": SUITES,
}
DOCUMENTED = ["recallog", "recallog.views", "recallog.extending"]


@pytest.mark.parametrize("module", MODULES)
def test_the_list_of_public_names(module: str) -> None:
    assert import_module(module).__all__ == MODULES[module]


@pytest.mark.parametrize("module", MODULES)
def test_each_public_name_can_be_imported(module: str) -> None:
    found = import_module(module)
    for name in MODULES[module]:
        assert getattr(found, name) is not None
        assert name in dir(found)


LAZY = [import_module(package) for package, _ in exports.lazy_packages()]


def test_the_packages_with_stubs() -> None:
    rooms = {"recallog.queries", "recallog.models.items"}
    without = {*MODULES, *rooms, "recallog_schemas.kinds"} - {each.__name__ for each in LAZY}
    assert without == {"recallog.remote", "recallog.sync", "recallog_testing", "recallog_testing.contracts"}


@pytest.mark.parametrize("module", LAZY, ids=lambda module: module.__name__)
def test_type_checkers_see_the_names_that_are_imported_lazily_and_no_others(module: ModuleType) -> None:
    declared = list(_declared(module))
    assert sorted(name for _, name in declared) == module.__all__
    for source, name in declared:
        found = import_module(f"{source}.{name}") if source == module.__name__ else getattr(import_module(source), name)
        assert getattr(module, name) is found


def _declared(module: ModuleType) -> Iterator[tuple[str, str]]:
    """The names in the stub of a module, each with the module that it is imported from."""
    stub = Path(str(module.__file__)).with_suffix(".pyi")
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            yield from ((str(node.module), str(alias.asname)) for alias in node.names)


@pytest.mark.parametrize("module", LAZY, ids=lambda module: module.__name__)
def test_a_name_that_a_package_does_not_have_is_an_attribute_error(module: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'nothing'"):
        _ = module.nothing


def test_a_public_name_has_one_module() -> None:
    lists = [(module, name) for module in DOCUMENTED for name in MODULES[module] if name not in ERRORS]
    assert [name for name, count in Counter(name for _, name in lists).items() if count > 1] == []


@pytest.mark.parametrize("module", DOCUMENTED)
def test_a_public_name_names_the_module_that_users_import_it_from(module: str) -> None:
    for name in MODULES[module]:
        value = getattr(import_module(module), name)
        if isinstance(value, type | FunctionType):
            assert (name, value.__module__) == (name, "recallog.errors" if name in ERRORS else module)


def test_an_answer_and_an_error_are_pickled_by_their_public_names() -> None:
    """Also in a process that has never imported the public modules."""
    script = """
import pickle
from recallog_schemas.errors import Refused
from recallog_schemas.event import Position
from recallog_schemas.views.publishing import Published
view = Published(items=(Position(0, 7),))
print(pickle.dumps([view, Refused, Position(0, 7)], protocol=0).decode())
assert pickle.loads(pickle.dumps([view, Refused])) == [view, Refused]
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    for name in ("recallog.views\nPublished\n", "recallog.errors\nRefused\n", "recallog\nPosition\n"):
        assert f"c{name}" in ended.stdout


def test_importing_recallog_imports_no_library() -> None:
    script = "import sys; before = set(sys.modules); import recallog; print(*set(sys.modules) - before)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    libraries = {name.partition(".")[0] for name in ended.stdout.split()} - set(sys.stdlib_module_names)
    assert libraries == {"recallog", "recallog_schemas"}


# Types of signatures that come from Python itself.
PYTHON = {"PathLike", "UnionType", "datetime", *dir(builtins), *dir(collections.abc), *dir(typing)}
FACADES = list(PLAIN)


def _names(annotation: Any) -> Iterator[str]:
    """The names of the types in an annotation, which may be a text."""
    if isinstance(annotation, str):
        yield from (node.id for node in ast.walk(ast.parse(annotation)) if isinstance(node, ast.Name))
    elif isinstance(annotation, list):
        for each in annotation:
            yield from _names(each)
    elif get_origin(annotation) is not None:
        if get_origin(annotation) is not Literal:
            yield from _names(list(get_args(annotation)))
            yield from _names(get_origin(annotation))
    elif not isinstance(annotation, TypeVar) and annotation not in (None, NoneType):
        yield annotation.__name__


@pytest.mark.parametrize("facade", FACADES)
def test_every_type_in_the_signature_of_a_public_method_is_public(facade: type[Facade]) -> None:
    public = {*PYTHON, *PUBLIC, *VIEWS, *EXTENDING}
    members = inspect.getmembers(facade, callable)
    methods = [each for each in members if each[0] in facade.operations or not each[0].startswith("_")]
    assert len(methods) >= len(facade.operations) > 0
    for name, method in methods:
        signature = inspect.signature(method)
        given = [each.annotation for each in signature.parameters.values() if each.name != "self"]
        assert {*_names([*given, signature.return_annotation])} <= public, name


@pytest.mark.parametrize("facade", FACADES)
def test_what_a_facade_has_beside_its_operations(facade: type[Facade]) -> None:
    names = {name for name in dir(facade) if name in facade.operations or not name.startswith("_")}
    assert names == PLAIN[facade] | facade.operations.keys()
    assert not PLAIN[facade] & facade.operations.keys()


def test_the_facades_of_a_memory() -> None:
    assert [Memory, *Memory.facades.values()] == FACADES
    assert Memory.facades == {
        "admin": Admin,
        "beliefs": Beliefs,
        "consensus": Consensus,
        "items": Items,
        "conversation": Conversation,
        "long_term": LongTerm,
        "working": Working,
        "workspace": Workspace,
        "tiers": Tiers,
        "stream": Stream,
    }


def test_a_remote_memory_has_the_operations_of_a_memory_and_streams() -> None:
    assert [*all_operations(Remote)] == [*all_operations(Memory)]
    assert {name for name in vars(Remote) if not name.startswith("_")} == {
        "close", "facades", "operations", "seen", "tail", *Remote.operations, *Remote.facades,
    }  # fmt: skip


@pytest.mark.parametrize("facade", FACADES)
def test_every_public_method_of_a_facade_is_documented(facade: type[Facade]) -> None:
    for name, method in inspect.getmembers(facade, inspect.isroutine):
        assert name.startswith("_") or inspect.getdoc(method), name


def test_every_error_has_one_base_and_is_documented_and_public() -> None:
    from recallog_schemas import errors

    for name, error in inspect.getmembers(errors, inspect.isclass):
        if issubclass(error, Exception):
            assert issubclass(error, recallog.RecallogError), name
            assert error.__doc__, name
            assert error.exit_code in (1, 2, 3), name
            assert getattr(recallog, name) is error
