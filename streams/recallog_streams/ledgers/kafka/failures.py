"""Translation of aiokafka's errors to those of Recallog: what happened, whether a retry can help, what to do."""

import ssl
from typing import Final

from aiokafka import errors as kafka

from recallog_schemas.errors import StorageError, StorageUnavailable

_LOGIN: Final = (kafka.SaslAuthenticationFailed, kafka.UnsupportedSaslMechanismError, kafka.IllegalSaslStateError)
_RIGHTS: Final = (kafka.TopicAuthorizationFailedError, kafka.ClusterAuthorizationFailedError)
_OLD: Final = (kafka.IncompatibleBrokerVersion, kafka.UnsupportedVersionError, NotImplementedError)
# Errors by which the broker refuses a request without writing any of it.
REFUSED: Final = (
    *_RIGHTS,
    kafka.MessageSizeTooLargeError,
    kafka.RecordListTooLargeError,
    kafka.InvalidTimestampError,
    kafka.InvalidTopicError,
    kafka.PolicyViolationError,
)


def name_error(error: Exception, address: object, doing: str) -> StorageError:
    """The error of Recallog for `error`, which occurred while `doing` something at `address`."""
    if isinstance(error, _LOGIN):
        return StorageError(
            f"{address} refused the login while {doing}: {error}. Check user, password, sasl_mechanism and "
            "security_protocol of the address"
        )
    if isinstance(error, _RIGHTS):
        return StorageError(
            f"{address} does not allow this user {doing}: {error}. Grant it Read, Write, Describe, DescribeConfigs "
            "and, to create the topic, Create"
        )
    if isinstance(error, kafka.InvalidTimestampError):
        return StorageError(
            f"{address} refused the time of a record while {doing}: the clock of this machine, or of the broker, is "
            "wrong. Correct it, or set message.timestamp.after.max.ms of the topic to the milliseconds that a writer "
            "may be ahead"
        )
    if isinstance(error, ssl.SSLError):
        return StorageError(
            f"no TLS with {address} while {doing}: {error}. Check ssl_cafile, ssl_certfile and security_protocol"
        )
    if isinstance(error, _OLD):
        return StorageError(
            f"{address} is too old or too new for this client: {error}. Kafka 3.1 to 4 is known to work"
        )
    if getattr(error, "retriable", False) or isinstance(error, OSError | TimeoutError | kafka.KafkaTimeoutError):
        return StorageUnavailable(
            f"{address} cannot be reached while {doing}: {error or type(error).__name__}. Try again"
        )
    return StorageError(f"{address} failed while {doing}: {error}")
