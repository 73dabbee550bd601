"""Every error that Recallog raises on purpose.

RecallogError
├── InvalidEvent                what was said is not an event
│   ├── EventTooLarge           it is longer than 256 KiB
│   └── FutureSchema            it was written by a newer Recallog
├── IdConflict                  its id is taken by another event of its space
├── OutOfRange                  a position that the ledger does not hold (yet), or an event that is not there to see
├── Parked                      the awaited record is a dead letter
├── NothingDue                  an answer where no trigger stands
├── Rebuilding                  the views are not there yet
├── ViewsBehind                 the workers have not reached the awaited position
├── NewDeadLetters              a rebuild that parks what the live views remember
├── ViewsTooNew                 the views were built by newer code
├── ProjectionError             a projection broke its contract
├── StorageError                a file or a service did not do as asked
│   ├── StorageUnavailable      it cannot be read or written now
│   │   ├── LockTimeout         another process holds it
│   │   ├── StorageFull         no space left
│   │   └── StorageReadOnly     no right to write
│   ├── StorageCorrupt          its bytes are damaged
│   ├── StorageForeign          it is not one of ours
│   ├── StorageTooNew           a newer Recallog wrote it
│   ├── StorageReplaced         the file under an open ledger is gone, or another one
│   └── LedgerMismatch          the views belong to another ledger
├── UnknownOutcome              the write may or may not have happened
├── SettingsError               settings that contradict each other
├── ReflectorFailed             a reflector has not answered its question
├── ReflectorMisconfigured      a reflector can answer no question until its settings change
└── InvariantViolation          a defect of Recallog itself

Each message says what happened and what to do next. `retryable` says whether the same call can succeed later.
"""

from typing import ClassVar


class RecallogError(Exception):
    """Base of all. `exit_code` is what a command ends with: 1 data or check, 2 wrong use, 3 unreachable."""

    retryable: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1


class InvalidEvent(RecallogError):
    """An event that breaks the schema. `path` names the field, `rule` the broken rule in a stable word."""

    def __init__(self, message: str, *, path: str = "", rule: str = "invalid") -> None:
        super().__init__(message)
        self.path = path
        self.rule = rule


class EventTooLarge(InvalidEvent):
    """An encoded event over `limits.EVENT_BYTES_MAX`."""


class FutureSchema(InvalidEvent):
    """An `envelope` or `schema_version` above what this code knows."""


class IdConflict(RecallogError):
    """An id that already names another event of the same space. Nothing of the call was written."""


class OutOfRange(RecallogError):
    """A position past the ledger's end or of a partition that the space does not live in, or an event that an agent may
    not see."""

    exit_code = 2


class DeadLettered(RecallogError):
    """The record that a reader waits for is a dead letter: it will never show in a view."""


class NothingDue(RecallogError):
    """There is no trigger to answer."""

    exit_code = 2


class Rebuilding(RecallogError):
    """There is no complete copy of the views yet."""

    retryable = True
    exit_code = 3


class ViewsBehind(RecallogError):
    """The views have not decided the position that a reader waits for, in the time that it waits."""

    retryable = True
    exit_code = 3


class NewDeadLetters(RecallogError):
    """A new generation parks records that the one it would replace does not."""


class ViewsTooNew(RecallogError):
    """The views were built by newer projections than this process has."""

    exit_code = 2


class ProjectionError(RecallogError):
    """A projection wrote what it may not write, or read rows without end."""


class StorageError(RecallogError):
    """A file or a service that did not do as asked."""

    exit_code = 3


class StorageUnavailable(StorageError):
    """Cannot be read or written now; nothing was written."""

    retryable = True


class LockTimeout(StorageUnavailable):
    """Another process kept its lock for longer than this one was ready to wait."""


class StorageFull(StorageUnavailable):
    """No space left on the device; nothing was written."""


class StorageReadOnly(StorageUnavailable):
    """This process may not write there."""

    retryable = False


class StorageCorrupt(StorageError):
    """Truncated or damaged bytes."""


class StorageForeign(StorageError):
    """A file that some other program made."""


class StorageTooNew(StorageError):
    """A file that a newer Recallog made."""


class StorageReplaced(StorageError):
    """The file was deleted or exchanged while it was open."""


class LedgerMismatch(StorageError):
    """The views were computed from another ledger, or from one that has lost records since."""


class IndexUnavailable(RecallogError):
    """The semantic index cannot be asked or written now. Recall then goes by keywords, and says so."""

    retryable = True
    exit_code = 3


class IndexLost(IndexUnavailable):
    """The engine no longer has the collection of this generation: it is built anew."""


class EmbedderUnavailable(IndexUnavailable):
    """No vectors can be made now."""


class UnknownOutcome(RecallogError):
    """The write may or may not be durable. Sending the same events (same ids) again is safe."""

    retryable = True
    exit_code = 3


class SettingsError(RecallogError):
    """Settings that are no use together, or an address that cannot be read."""

    exit_code = 2


class ReflectorFailed(RecallogError):
    """A reflector could not answer a question, or what it answered is no belief.

    Unlike with other errors, `retryable` hangs on the failure: a busy model may answer later, a question that the model
    refuses is refused again. `retry_after_seconds` is what the reflector asked to wait for, where it did.
    """

    exit_code = 3
    retryable: bool  # type: ignore[misc]  # of each failure, not of the class

    def __init__(self, reason: str, *, retryable: bool, retry_after_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds


class ReflectorMisconfigured(RecallogError):
    """A wrong address, model or API key. Asking again is of no use before an operator has changed them."""

    exit_code = 3


class InvariantViolation(RecallogError):
    """Something that cannot be. The process should end; the ledger is the truth that it starts again from."""
