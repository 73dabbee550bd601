"""Every error that Recallog raises on purpose.

RecallogError
├── InvalidInput                what was given is invalid: `path` names the field
│   ├── InvalidArgument         an argument has a wrong type, or is out of bounds
│   └── InvalidEvent            the event breaks the schema
│       ├── EventTooLarge       it is longer than 256 KiB
│       └── FutureSchema        a newer version of Recallog wrote it
├── IdConflict                  the id belongs to another event of the same space
├── Refused                     a rule of what agents keep does not allow the change
│   └── Conflict                the item is no longer in the state that the change relies on
├── OutOfRange                  the ledger has no such position (yet), or the agent may not see the event
├── AccessDenied                a server does not do this for its caller
│   ├── Unauthorized            the caller gave no valid key
│   ├── Forbidden               not found, or not permitted by this key
│   └── RateLimited             the caller has asked too often
├── DeadLettered                the awaited record is a dead letter
├── NothingDue                  there is no pending trigger to answer
├── Rebuilding                  the views are not built yet
├── ViewsBehind                 the workers have not processed the awaited position in time
├── NewDeadLetters              a rebuild would turn records of the live views into dead letters
├── ViewsTooNew                 newer code built the views
├── ProjectionError             a projection broke its contract
├── StorageError                a file or a service failed
│   ├── StorageUnavailable      it cannot be read or written now
│   │   ├── LockTimeout         another process holds the lock
│   │   ├── StorageFull         no space is left
│   │   └── StorageReadOnly     the process may not write
│   ├── StorageCorrupt          the bytes are damaged
│   ├── StorageForeign          another program created the file
│   ├── StorageTooNew           a newer version of Recallog wrote it
│   ├── StorageReplaced         the file of an open ledger was deleted or replaced
│   ├── LedgerMismatch          the views belong to another ledger
│   └── LedgerMoved             the events are in another ledger now
├── IndexUnavailable            the semantic index cannot be queried or written now
│   ├── IndexLost               the engine no longer has the collection
│   ├── IndexDamaged            the engine's files are damaged
│   └── EmbedderUnavailable     no vectors can be computed now
├── UnknownOutcome              the write may or may not have happened
├── SettingsError               the settings are invalid or contradict each other
├── ModelFailed                 a reflector, an extractor, a synthesizer or a summarizer gave no valid answer
├── ModelMisconfigured          none of its answers can succeed until the settings change
└── InvariantViolation          a defect of Recallog itself

Each message says what happened and what to do next. `retryable` says whether the same call can succeed later.
"""

from typing import Any, ClassVar, Self

from recallog_schemas.lazy_exports import document


class RecallogError(Exception):
    """Base class. `exit_code` is a command's exit code: 1 for data or a failed check, 2 wrong use, 3 unreachable."""

    retryable: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__ == __name__:
            document(cls, "recallog.errors")


document(RecallogError, "recallog.errors")


class InvalidInput(RecallogError):
    """What was given is invalid. `path` names the field, and `rule` is a stable word for the broken rule."""

    def __init__(self, message: str, *, path: str = "", rule: str = "invalid") -> None:
        super().__init__(message)
        self.path = path
        self.rule = rule

    def under(self, field: str) -> Self:
        """The same error, for the value of `field`."""
        separator = "." if self.path else ": "
        path = f"{field}.{self.path}" if self.path else field
        return type(self)(f"{field}{separator}{self}", path=path, rule=self.rule)


class InvalidArgument(InvalidInput):
    """An argument of an operation has a wrong type or is out of bounds."""

    exit_code = 2


class InvalidEvent(InvalidInput):
    """An event breaks the schema."""


class EventTooLarge(InvalidEvent):
    """An encoded event exceeds `limits.EVENT_BYTES_MAX`."""


class FutureSchema(InvalidEvent):
    """The `envelope` or `schema_version` of an event is newer than this code supports."""


class IdConflict(RecallogError):
    """The id already belongs to another event of the same space. The call wrote nothing.

    `path` is the first field that differs, for example `payload.text`; `at` is not compared. `position` is the position
    of the event with this id, for example `0:41`; "" if it is in the same call.
    """

    def __init__(self, message: str, *, path: str, position: str) -> None:
        super().__init__(message)
        self.path = path
        self.position = position


class SourcesErased(RecallogError):
    """A source of an event was erased before the event was written. Nothing was written."""

    retryable: ClassVar[bool] = True


class Refused(RecallogError):
    """A rule for entries and items does not allow the change, for example the limit of pinned entries. Nothing has
    changed.

    `reason` is a stable word for the rule.
    """

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class Conflict(Refused):
    """The item is no longer in the state that the change relies on (`base`). Read it again, and repeat the change.

    `version` is its present version; 0 if there is no such item.
    """

    def __init__(self, message: str, *, version: int) -> None:
        super().__init__(message, reason="conflict")
        self.version = version


class OutOfRange(RecallogError):
    """A position is past the ledger's end or in a partition that does not hold the space, or an agent may not see an
    event. `path` names the argument; "" if no argument is at fault."""

    exit_code = 2

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class AccessDenied(RecallogError):
    """A server does not do this for its caller."""

    exit_code = 2


class Unauthorized(AccessDenied):
    """The caller gave no key or token, or one that is unknown, revoked or expired."""


class Forbidden(AccessDenied):
    """What is requested does not exist, or the key of the caller does not allow it.

    Both cases have the same message, so that it does not reveal whether the thing exists.
    """

    def __init__(self, message: str = "not found, or not permitted by this key") -> None:
        super().__init__(message)


class RateLimited(AccessDenied):
    """The caller has asked too often. The same call can succeed after `retry_after_seconds`."""

    retryable = True

    def __init__(self, message: str, *, retry_after_seconds: float) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class DeadLettered(RecallogError):
    """The record that a reader waits for is a dead letter: it will never appear in a view."""


class NothingDue(RecallogError):
    """There is no pending trigger to answer."""

    exit_code = 2


class Rebuilding(RecallogError):
    """There is no complete generation of the views yet."""

    retryable = True
    exit_code = 3


class ViewsBehind(RecallogError):
    """The views did not process the position that a reader waits for within the reader's time limit."""

    retryable = True
    exit_code = 3


class NewDeadLetters(RecallogError):
    """A new generation has dead letters that the generation it would replace does not have."""


class ViewsTooNew(RecallogError):
    """The views were built by newer versions of the projections than this process has."""

    exit_code = 2


class ProjectionError(RecallogError):
    """A projection wrote a row that it may not write, or not of its type."""


class StorageError(RecallogError):
    """A file or a service failed."""

    exit_code = 3


class StorageUnavailable(StorageError):
    """The storage cannot be read or written now; nothing was written."""

    retryable = True


class LockTimeout(StorageUnavailable):
    """Another process held the lock for longer than this process waits."""


class StorageFull(StorageUnavailable):
    """No space is left on the device; nothing was written."""


class StorageReadOnly(StorageUnavailable):
    """This process may not write there."""

    retryable = False


class StorageCorrupt(StorageError):
    """The stored bytes are truncated or damaged. `finding` is the message without the advice at its end.

    For a damaged record of the ledger, `position` is its position, for example `0:57`, and `until` the offset of the
    next record that can be read, as far as known: reading can continue there.
    """

    def __init__(self, finding: str, *, remedy: str = "", position: str = "", until: int | None = None) -> None:
        super().__init__(f"{finding}. {remedy}" if remedy else finding)
        self.finding = finding
        self.position = position
        self.until = until


class StorageForeign(StorageError):
    """Another program created the file, or the topic's settings would lose history."""


class StorageTooNew(StorageError):
    """A newer version of Recallog created the file."""


class StorageReplaced(StorageError):
    """The file was deleted or replaced while it was open."""


class LedgerMismatch(StorageError):
    """The views were computed from another ledger, or the ledger has lost or changed records since.

    `position` is the position of a missing or changed record, for example `0:57`; "" if the whole ledger is another
    one.
    """

    def __init__(self, message: str, *, position: str = "") -> None:
        super().__init__(message)
        self.position = position


class LedgerMoved(StorageError):
    """The events of the ledger were moved to another one, and it takes no more events. Send events to that one.

    `ledger` is the name of the other ledger: its topic.
    """

    def __init__(self, message: str, *, ledger: str) -> None:
        super().__init__(message)
        self.ledger = ledger


class IndexUnavailable(RecallogError):
    """The semantic index cannot be queried or written now. Recall then uses keywords and reports it as `degraded`."""

    retryable = True
    exit_code = 3


class IndexLost(IndexUnavailable):
    """The engine no longer has the collection of this generation. The index is rebuilt."""


class IndexDamaged(IndexUnavailable):
    """The engine cannot read its files, or what it returned is damaged. The index is built again in other files."""


class EmbedderUnavailable(IndexUnavailable):
    """No vectors can be computed now."""


class UnknownOutcome(RecallogError):
    """The write may or may not be durable. Sending the same events (with the same ids) again is safe."""

    retryable = True
    exit_code = 3


class SettingsError(RecallogError):
    """The settings contradict each other, or an address cannot be parsed."""

    exit_code = 2


class ModelFailed(RecallogError):
    """A reflector, an extractor, a synthesizer or a summarizer failed, or its answer is not valid.

    `retryable` is set for each failure: a busy model may answer later, but a prompt that the model refuses is refused
    again. `retry_after_seconds` is the wait that the model's server requested; None if it requested none.
    """

    exit_code = 3
    retryable: bool  # type: ignore[misc]  # set for each failure, not for the class

    def __init__(self, reason: str, *, retryable: bool, retry_after_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds


class ModelMisconfigured(RecallogError):
    """The address, the model or the API key is wrong. Retrying fails until an operator corrects the settings."""

    exit_code = 3


class InvariantViolation(RecallogError):
    """An internal assumption does not hold. The process should end; it recovers from the ledger when it restarts."""
