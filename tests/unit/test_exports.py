"""The public names, frozen: a change of these lists changes what users import. The reference has the operations."""

import ast
import builtins
import collections.abc
import inspect
import subprocess
import sys
import typing
from collections.abc import Iterator
from functools import _lru_cache_wrapper
from importlib import import_module
from types import FunctionType, ModuleType, NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

import pytest

import recallog
import recallog.extending
import recallog_schemas
from recallog import Memory, models
from recallog.admin import Admin
from recallog.models import Consensus, Conversation, Items, LongTerm, Stream, Tiers, Working, Workspace
from recallog.operations.facade import Facade, all_operations
from recallog.remote.client import Remote
from recallog_schemas import kinds, views
from recallog_schemas import models as model_views

pytestmark = pytest.mark.models("all")

ERRORS = [
    "AccessDenied", "Conflict", "DeadLettered", "EmbedderUnavailable", "EventTooLarge", "Forbidden",
    "FutureSchema", "IdConflict", "IndexDamaged", "IndexLost", "IndexUnavailable", "InvalidArgument",
    "InvalidEvent", "InvalidInput", "InvariantViolation", "LedgerMismatch", "LockTimeout", "ModelFailed",
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
        *views.__all__,
    ]
)

EXTENDING = [
    "AdapterSettings", "AgentReading", "At", "Batch", "CandidateSource", "Changes", "ChatModel", "Checkpoint",
    "Chunk", "Components", "DESTROYED", "Database", "DocumentMaker", "Documents", "Doorbell", "Due", "DueTrigger",
    "Embedder", "Embedding", "Engine", "Evidence", "ExtractionRequest", "FacadePart", "Fact", "FactExtractor",
    "Filter", "FolderLock", "Generation", "Hit", "Judge", "KeptText", "KeptTexts", "KeysState", "Kind", "Ledger",
    "Lock", "Log", "LogName", "MARKS", "Manifest", "MemoryAccess", "MemoryIndex", "MemoryLedger", "MemoryStore",
    "Opener", "Outcome", "Passage", "Payload", "Point", "Pointer", "Projection", "QueueFailed", "Reactor",
    "ReadResult", "ReadSession", "Record", "RecordSource", "ReflectionAnswer", "ReflectionRequest", "Reflector",
    "Refusal", "Reranker", "RowKey", "Rows", "Scan", "Scope", "SealingKey", "SealingKeys", "Search", "SpaceReading",
    "Sparse", "SqliteLedger", "SqliteStore", "Store", "StoredPoint", "StoredRow", "Summarizer", "Synthesizer",
    "Table", "Tail", "TextCandidates", "TextDocuments", "Times", "TriggerQueue", "Unit", "Utterance", "Vectors",
    "Verdict", "View", "assemble", "bookkeeping", "check_repeat", "entry", "episode", "is_beyond",
    "log_of_refusals", "mark_of", "may_be_sealed", "name_of", "operation", "ordinal_key", "outcome_of",
    "parameters", "parts_of",
]  # fmt: skip

TESTING = ["ProjectionDriver", "ReactorDriver"]
SUITES = [
    "DatabaseContract", "EmbedderContract", "EngineContract", "LedgerContract", "ModelContract", "ReaderContract",
    "RepeatedIdsContract", "SealingKeysContract", "StoreContract", "UniqueIdsContract",
]  # fmt: skip

# What a facade has beside its operations: plain methods, for callbacks, streams and a user's own rows.
PLAIN: dict[type[Facade], set[str]] = {
    Memory: {
        "admin", "answer_due", "attribute", "catch_up", "catch_up_index", "close", "consensus",
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
    "recallog.remote": sorted(["Gap", "Remote", "Tailed", *REMOTE_PARTS]),
    "recallog.sync": sorted(["Remote", *REMOTE_PARTS, *(each.__name__ for each in PLAIN)]),
    "recallog.extending": EXTENDING,
    "recallog_testing": TESTING,
    "recallog_testing.contracts": SUITES,
}


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
    recallog, recallog.extending, recallog_schemas, kinds, models, model_views, views,
]  # fmt: skip
ROOMS = [import_module(f"recallog.{package}") for package in ("queries", "reactors", "retrieval", "models.items")]
"""Packages whose modules are imported when they are first used."""


@pytest.mark.parametrize("module", LAZY, ids=lambda module: module.__name__)
def test_type_checkers_see_the_names_that_are_imported_lazily_and_no_others(module: ModuleType) -> None:
    declared = list(_declared(module))
    assert sorted(name for _, name in declared) == module.__all__
    for source, name in declared:
        assert getattr(module, name) is getattr(import_module(source), name)


@pytest.mark.parametrize("package", ROOMS, ids=lambda package: package.__name__)
def test_type_checkers_see_the_modules_that_are_imported_lazily(package: ModuleType) -> None:
    declared = list(_declared(package))
    assert declared
    for source, name in declared:
        assert source == package.__name__
        assert getattr(package, name) is import_module(f"{source}.{name}")


def _declared(module: ModuleType) -> Iterator[tuple[str, str]]:
    """The names that a module imports for its users, each with the module that it is imported from."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                if alias.name == "*":
                    yield from ((node.module, name) for name in _public(import_module(node.module)))
                elif alias.asname is not None:
                    yield node.module, alias.asname


def _public(module: ModuleType) -> list[str]:
    """The names that `from module import *` imports, without those that it imports from elsewhere itself."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = {name: value for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    written = [name for name in own if name.isidentifier() and not name.startswith("_")]
    return [name for name in written if isinstance(own[name], type | FunctionType | _lru_cache_wrapper)]


@pytest.mark.parametrize("module", [*LAZY, *ROOMS], ids=lambda module: module.__name__)
def test_a_name_that_a_package_does_not_have_is_an_attribute_error(module: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'nothing'"):
        _ = module.nothing


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
    public = {*PYTHON, *PUBLIC, *EXTENDING}
    methods = [each for each in inspect.getmembers(facade, callable) if not each[0].startswith("_")]
    assert len(methods) >= len(facade.operations) > 0
    for name, method in methods:
        signature = inspect.signature(method)
        given = [each.annotation for each in signature.parameters.values() if each.name != "self"]
        assert {*_names([*given, signature.return_annotation])} <= public, name


@pytest.mark.parametrize("facade", FACADES)
def test_what_a_facade_has_beside_its_operations(facade: type[Facade]) -> None:
    names = {name for name in dir(facade) if not name.startswith("_")}
    assert names == PLAIN[facade] | facade.operations.keys()
    assert not PLAIN[facade] & facade.operations.keys()


def test_the_facades_of_a_memory() -> None:
    assert [Memory, *Memory.facades.values()] == FACADES
    assert Memory.facades == {
        "admin": Admin,
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
