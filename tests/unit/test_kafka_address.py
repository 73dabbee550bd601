"""The address of a Kafka ledger, and the rule from space to partition."""

import pytest
from aiokafka.partitioner import murmur2

from recallog_schemas.errors import SettingsError
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.headers import headers_of
from recallog_streams.ledgers.kafka.ledger import partition_of
from support.events import event

SECRET = "s3cr3t"


def test_a_bare_address_has_the_defaults_of_production() -> None:
    address = KafkaAddress.parse("kafka://broker")
    assert (address.servers, address.topic) == (("broker:9092",), "recallog.events")
    assert (address.partitions, address.replication, address.insync) == (None, 3, 2)
    assert address.connection()["security_protocol"] == "PLAINTEXT"


def test_all_parts_of_an_address_are_read() -> None:
    address = KafkaAddress.parse(
        "kafka://a:1,b:2,[::1]:3/events.of-us?partitions=8&replication=5&min_insync=3&client_id=x"
    )
    assert address.servers == ("a:1", "b:2", "[::1]:3")
    assert (address.topic, address.partitions, address.replication, address.insync) == ("events.of-us", 8, 5, 3)
    assert address.connection()["client_id"] == "x"


def test_a_single_broker_needs_one_option() -> None:
    assert KafkaAddress.parse("kafka://broker/t?replication=1").insync == 1


def test_a_user_requires_tls_unless_disabled() -> None:
    settings = KafkaAddress.parse(f"kafka://us%40er:{SECRET}%2F%3A@broker/t?sasl_mechanism=SCRAM-SHA-512").connection()
    assert settings["security_protocol"] == "SASL_SSL"
    assert settings["sasl_mechanism"] == "SCRAM-SHA-512"
    assert (settings["sasl_plain_username"], settings["sasl_plain_password"]) == ("us@er", f"{SECRET}/:")
    assert settings["ssl_context"].check_hostname


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("http://broker/t", "kafka://"),
        ("kafka:///t", "servers"),
        ("kafka://broker:port/t", "servers"),
        ("kafka://broker/a topic", "'a topic'"),
        ("kafka://broker/t?retention=5", "retention: not an option.*replication"),
        ("kafka://broker/t?partitions=many", "partitions=many"),
        ("kafka://broker/t?partitions=0", "partitions=0"),
        ("kafka://broker/t?replication=1&min_insync=2", "min_insync=2 is more than replication=1"),
        ("kafka://broker/t?security_protocol=TLS", "security_protocol=TLS.*SASL_SSL"),
        ("kafka://u:p@broker/t?sasl_mechanism=OAUTHBEARER", "sasl_mechanism=OAUTHBEARER"),
        ("kafka://broker/t?security_protocol=SASL_SSL", "user:password"),
        ("kafka://u:p@broker/t?security_protocol=SSL", "a user, but"),
        ("kafka://broker/t?timeout_seconds=0", "timeout_seconds"),
    ],
)
def test_an_error_about_a_wrong_address_says_what_is_wrong(url: str, named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        KafkaAddress.parse(url)


def test_a_missing_certificate_is_named() -> None:
    address = KafkaAddress.parse("kafka://broker/t?security_protocol=SSL&ssl_cafile=/nowhere/ca.pem")
    with pytest.raises(SettingsError, match=r"/nowhere/ca\.pem"):
        address.connection()


def test_an_address_shows_no_password() -> None:
    address = KafkaAddress.parse(f"kafka://user:{SECRET}@broker/t?ssl_password={SECRET}")
    assert SECRET not in f"{address} {address!r} {[address]}"
    assert str(address) == "kafka://user:***@broker:9092/t"


@pytest.mark.parametrize("password", ["{}@x", "{}/x", "12/{}", "{}?x", "1?{}", "1?x={}", "{}#", "{}:x", "[{}"])
def test_no_error_quotes_a_password_that_is_not_encoded(password: str) -> None:
    try:
        said = repr(KafkaAddress.parse(f"kafka://user:{password.format(SECRET)}@broker/t?replication=1"))
    except SettingsError as error:
        said = str(error)
    assert SECRET not in said


@pytest.mark.parametrize(
    ("key", "hashed"),  # from org.apache.kafka.common.utils.UtilsTest
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_that_of_the_java_client(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0xFFFFFFFF
    assert partition_of(key.decode(), 32) == (hashed & 0x7FFFFFFF) % 32


def test_headers_are_attributes_of_cloudevents() -> None:
    said = event(id="e1", at="2026-03-01T12:00:00Z", subject="customer 7 ü")
    assert dict(headers_of(said)) == {
        "content-type": b"application/json",
        "ce_specversion": b"1.0",
        "ce_id": b"e1",
        "ce_source": b"recallog:village",
        "ce_type": b"agent.spoke",
        "ce_time": b"2026-03-01T12:00:00+00:00",
        "ce_subject": "customer 7 ü".encode(),
    }
    assert "ce_subject" not in dict(headers_of(event()))
