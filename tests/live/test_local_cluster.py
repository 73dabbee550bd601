"""The local cluster: its servers answer, acknowledged writes survive kill -9, and nothing is left behind."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import redis
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from deploy.local import LocalRedis, LocalServerError
from deploy.local.ports import free_port

from live.conftest import NewKafka, NewRedis

REPOSITORY = Path(__file__).parents[2]
SECONDS = 30


def test_the_shared_kafka_answers(kafka: str, topic: str) -> None:
    create(kafka, topic)
    assert publish(kafka, topic, ["one", "two"]) == [0, 1]
    assert read(kafka, topic, 2) == ["one", "two"]


def test_the_shared_redis_answers_and_evicts_nothing(redis_url: str) -> None:
    with closing(redis.Redis.from_url(redis_url)) as client:
        assert client.ping()
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("appendonly") == {"appendonly": "yes"}


def test_kafka_survives_kill_nine_with_every_acknowledged_record_and_at_the_same_address(
    own_kafka: NewKafka, topic: str
) -> None:
    server = own_kafka()
    create(server.bootstrap, topic)
    before = server.bootstrap, server.pid
    texts = [f"record {number}" for number in range(1_000)]
    publish(server.bootstrap, topic, texts)

    server.kill()
    assert is_gone(before[1])
    server.start()

    assert server.bootstrap == before[0]
    assert server.pid != before[1]
    assert read(server.bootstrap, topic, len(texts)) == texts
    assert publish(server.bootstrap, topic, ["after"]) == [1_000]


def test_redis_survives_kill_nine_with_every_acknowledged_write(own_redis: NewRedis) -> None:
    server = own_redis(fsync="always")
    with closing(redis.Redis.from_url(server.url)) as client:
        for number in range(100):
            client.rpush("list", number)
    url = server.url

    server.kill()
    server.start()

    assert server.url == url
    with closing(redis.Redis.from_url(server.url)) as client:
        assert client.llen("list") == 100


def test_a_paused_server_answers_nothing_until_it_goes_on(own_redis: NewRedis) -> None:
    server = own_redis()
    with closing(redis.Redis.from_url(server.url, socket_timeout=0.2, retry=None)) as client:
        server.pause()
        with pytest.raises(redis.TimeoutError):
            client.ping()
        server.resume()
        assert client.ping()


def test_a_paused_server_is_stopped_too(own_redis: NewRedis) -> None:
    server = own_redis()
    pid = server.pid
    server.pause()
    server.stop()
    assert is_gone(pid)


def test_newer_data_can_be_replaced_by_an_older_copy(own_redis: NewRedis, tmp_path: Path) -> None:
    server = own_redis(fsync="always")
    with closing(redis.Redis.from_url(server.url)) as client:
        client.set("key", "old")
        server.copy_data(tmp_path / "copy")
        client.set("key", "new")

    server.kill()
    server.restore_data(tmp_path / "copy")
    server.start()

    with closing(redis.Redis.from_url(server.url, decode_responses=True)) as client:
        assert client.get("key") == "old"


def test_a_redis_with_snapshots_comes_back_with_its_dump(own_redis: NewRedis) -> None:
    server = own_redis(snapshots=True)
    with closing(redis.Redis.from_url(server.url, decode_responses=True)) as client:
        client.set("key", "saved")
        client.save()
        client.set("key", "not saved")

    server.kill()
    server.start()

    assert (server.data / "dump.rdb").is_file()
    with closing(redis.Redis.from_url(server.url, decode_responses=True)) as client:
        assert client.get("key") == "saved"


def test_a_server_listens_on_the_preferred_port_also_in_a_folder_that_had_another_one(
    own_redis: NewRedis, tmp_path: Path
) -> None:
    with LocalRedis(tmp_path / "redis") as before:
        ports = before.ports["server"], free_port()
    assert ports[0] != ports[1]
    with LocalRedis(tmp_path / "redis", preferred_port=ports[1]) as preferring:
        assert preferring.ports["server"] == ports[1]


def test_a_server_whose_preferred_port_is_in_use_listens_on_another_one(own_redis: NewRedis, tmp_path: Path) -> None:
    taken = own_redis().ports["server"]
    with LocalRedis(tmp_path / "redis", preferred_port=taken) as server:
        assert server.ports["server"] != taken


def test_a_server_ends_with_its_starter_even_if_that_is_killed(own_redis: NewRedis, tmp_path: Path) -> None:
    program = (
        "import sys; from deploy.local import LocalRedis; server = LocalRedis(sys.argv[1]).start();"
        "print(server.pid, flush=True); sys.stdin.read()"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        assert not is_gone(pid)
        starter.kill()
    wait_until(lambda: is_gone(pid), "the server is gone")


def test_two_servers_never_share_a_folder(own_redis: NewRedis) -> None:
    server = own_redis()
    with pytest.raises(LocalServerError, match="another Redis runs in"):
        LocalRedis(server.folder).start()
    assert server.running


def test_a_server_that_cannot_start_shows_the_end_of_its_log(own_redis: NewRedis) -> None:
    server = own_redis()
    server.kill()
    (server.data / "appendonlydir" / "appendonly.aof.manifest").write_text("not a manifest")
    with pytest.raises(LocalServerError, match=r"(?s)Redis ended with exit code 1.*manifest"):
        server.start()


def create(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])[topic].result(SECONDS)


def publish(bootstrap: str, topic: str, texts: list[str]) -> list[int]:
    """The offsets of the acknowledged records."""
    offsets: list[int] = []

    def acknowledged(error: KafkaError | None, message: Message) -> None:
        assert error is None
        offset = message.offset()
        assert offset is not None
        offsets.append(offset)

    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for text in texts:
        producer.produce(topic, text, on_delivery=acknowledged)
    assert producer.flush(SECONDS) == 0
    return offsets


def read(bootstrap: str, topic: str, count: int) -> list[str]:
    with closing(
        Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": False})
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        values = [message.value() for message in consumer.consume(count, timeout=SECONDS)]
    return [value.decode() for value in values if value is not None]


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # An orphan stays a zombie until an ancestor that waits for its children collects it.
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z"


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.01)
