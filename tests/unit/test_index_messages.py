"""Messages of the index protocol that are damaged: one error, which both ends expect."""

import msgspec
import pytest

from recallog.index import messages
from recallog_schemas.errors import InvalidArgument, SettingsError


@pytest.mark.parametrize(
    "damage",
    [b"", b"\xff", b"\x81\xa4type\xa4\xff\xff\xff\xff", b"\x84\xa4type\xa6Failed\xa5error\xa1\xff", b"\x91" * 5_000],
    ids=["empty", "no map", "a tag that is not UTF-8", "a text that is not UTF-8", "deep"],
)
def test_a_damaged_message_is_one_error(damage: bytes) -> None:
    for read in (messages.handshake, messages.call, messages.frame, messages.address):
        with pytest.raises(msgspec.MsgspecError):
            read(damage)
    with pytest.raises(msgspec.MsgspecError):
        messages.decode_settings(damage)


def test_settings_that_are_not_valid_are_named() -> None:
    with pytest.raises(SettingsError, match="RECALLOG_DEADLINE_SECONDS: should be"):
        messages.decode_settings(b'{"deadline_seconds": -1}')


def test_an_error_crosses_the_protocol_with_its_fields() -> None:
    failed = messages.failure(InvalidArgument("space: no name", path="space", rule="pattern"))
    received = messages.frame(messages.frame_message(failed)[messages.LENGTH_BYTES :])
    assert isinstance(received, messages.Failed)
    error = messages.error_of(received)
    assert isinstance(error, InvalidArgument)
    assert (str(error), error.path, error.rule) == ("space: no name", "space", "pattern")
