"""Recallog: event-sourced memory for AI agents.

An agent's memory is not a separate store. It is a set of views computed from one durable ledger.
"""

from typing import TYPE_CHECKING

from recallog_schemas import views
from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.admin import Admin as Admin
    from recallog.memory import Memory as Memory
    from recallog.reading.time_travel import AsOf as AsOf
    from recallog.settings import Settings as Settings
    from recallog.version import __version__ as __version__
    from recallog_schemas.errors import DeadLettered as DeadLettered
    from recallog_schemas.errors import EmbedderUnavailable as EmbedderUnavailable
    from recallog_schemas.errors import EventTooLarge as EventTooLarge
    from recallog_schemas.errors import FutureSchema as FutureSchema
    from recallog_schemas.errors import IdConflict as IdConflict
    from recallog_schemas.errors import IndexLost as IndexLost
    from recallog_schemas.errors import IndexUnavailable as IndexUnavailable
    from recallog_schemas.errors import InvalidArgument as InvalidArgument
    from recallog_schemas.errors import InvalidEvent as InvalidEvent
    from recallog_schemas.errors import InvalidInput as InvalidInput
    from recallog_schemas.errors import InvariantViolation as InvariantViolation
    from recallog_schemas.errors import LedgerMismatch as LedgerMismatch
    from recallog_schemas.errors import LockTimeout as LockTimeout
    from recallog_schemas.errors import NewDeadLetters as NewDeadLetters
    from recallog_schemas.errors import NothingDue as NothingDue
    from recallog_schemas.errors import OutOfRange as OutOfRange
    from recallog_schemas.errors import ProjectionError as ProjectionError
    from recallog_schemas.errors import Rebuilding as Rebuilding
    from recallog_schemas.errors import RecallogError as RecallogError
    from recallog_schemas.errors import ReflectorFailed as ReflectorFailed
    from recallog_schemas.errors import ReflectorMisconfigured as ReflectorMisconfigured
    from recallog_schemas.errors import SettingsError as SettingsError
    from recallog_schemas.errors import StorageCorrupt as StorageCorrupt
    from recallog_schemas.errors import StorageError as StorageError
    from recallog_schemas.errors import StorageForeign as StorageForeign
    from recallog_schemas.errors import StorageFull as StorageFull
    from recallog_schemas.errors import StorageReadOnly as StorageReadOnly
    from recallog_schemas.errors import StorageReplaced as StorageReplaced
    from recallog_schemas.errors import StorageTooNew as StorageTooNew
    from recallog_schemas.errors import StorageUnavailable as StorageUnavailable
    from recallog_schemas.errors import UnknownOutcome as UnknownOutcome
    from recallog_schemas.errors import ViewsBehind as ViewsBehind
    from recallog_schemas.errors import ViewsTooNew as ViewsTooNew
    from recallog_schemas.event import Event as Event
    from recallog_schemas.event import Position as Position
    from recallog_schemas.views import *  # noqa: F403 - every view is public
    from recallog_streams.ledgers.ledger import Batch as Batch
    from recallog_streams.projector import Progress as Progress
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "recallog.admin": ["Admin"],
            "recallog.memory": ["Memory"],
            "recallog.reading.time_travel": ["AsOf"],
            "recallog.settings": ["Settings"],
            "recallog.version": ["__version__"],
            "recallog_schemas.errors": [
                "DeadLettered",
                "EmbedderUnavailable",
                "EventTooLarge",
                "FutureSchema",
                "IdConflict",
                "IndexLost",
                "IndexUnavailable",
                "InvalidArgument",
                "InvalidEvent",
                "InvalidInput",
                "InvariantViolation",
                "LedgerMismatch",
                "LockTimeout",
                "NewDeadLetters",
                "NothingDue",
                "OutOfRange",
                "ProjectionError",
                "Rebuilding",
                "RecallogError",
                "ReflectorFailed",
                "ReflectorMisconfigured",
                "SettingsError",
                "StorageCorrupt",
                "StorageError",
                "StorageForeign",
                "StorageFull",
                "StorageReadOnly",
                "StorageReplaced",
                "StorageTooNew",
                "StorageUnavailable",
                "UnknownOutcome",
                "ViewsBehind",
                "ViewsTooNew",
            ],
            "recallog_schemas.event": ["Event", "Position"],
            "recallog_schemas.views": views.__all__,
            "recallog_streams.ledgers.ledger": ["Batch"],
            "recallog_streams.projector": ["Progress"],
        },
    )
