"""Prometheus scrapes running processes, and finds every series and label that alert rules and the dashboard name."""

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import httpx
import promql_parser
import pytest

from live.conftest import NewRedis, started_server
from live.secured import SecuredRedis, terminating_tls
from live.servers import Server, client_of, created_key
from live.support import Cluster, wait_until
from live.watchers import BlackboxExporter, NodeExporter, Prometheus, RedisExporter, Watcher
from recallog_service.reacting.handler import FAILED
from support import own_package, promql
from support.certificates import Authority
from support.events import event
from unit.test_deploying import COMPOSE, make_secrets

pytestmark = pytest.mark.models("all")

Watching = TypeVar("Watching", bound=Watcher)

KEYS = {"at", "level", "logger", "message"}
SOMETIMES = {("outcome", FAILED)}
"""Values of labels that exist only after something has gone wrong."""


@pytest.fixture
def cluster(kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path) -> Iterator[Cluster]:
    python = own_package.installed(tmp_path)  # has an engine of the index that several processes can use
    redis = own_redis(settings={"maxmemory": "512mb"})
    with Cluster(kafka, topic, redis.url, tmp_path, python=python) as cluster:
        yield cluster


def test_prometheus_finds_everything_that_rules_and_panels_name(
    cluster: Cluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    index = {"RECALLOG_INDEX": f"shared://{tmp_path / 'engine'}"}
    worker = cluster.worker(only="views,index,reactors", **index)
    worker.wait_until(lambda health: health["healthy"] and health["partitions"], "the worker has partitions")
    key = created_key(cluster, "read", "publish", "operate")
    server = Server(cluster)
    cluster.publish_only([event("session.ended"), *(event(turn=turn) for turn in range(5))])

    async def ask() -> None:
        async with client_of(server, key) as client:
            await client.get("/v1/spaces")
            await client.get("/v1/absent")

    asyncio.run(ask())

    def start(watcher: Watching) -> Watching:
        started = started_server(watcher, request.config)
        request.addfinalizer(started.kill)
        return started

    blackbox = start(BlackboxExporter(tmp_path / "blackbox"))
    certificate = Authority.create(tmp_path / "certificates").sign("proxy", timedelta(days=9))
    with terminating_tls(certificate, server.url.removeprefix("http://")) as tls:
        targets = {
            "recallog-worker": f"127.0.0.1:{worker.port}",
            "recallog-server": server.url.removeprefix("http://"),
            "recallog-ready": f"{server.url}/readyz",
            "recallog-tls": tls,
            "redis": start(RedisExporter(tmp_path / "redis-exporter", cluster.redis_url)).address,
            "node": start(NodeExporter(tmp_path / "node-exporter")).address,
        }
        prometheus = start(Prometheus(tmp_path / "prometheus", targets, blackbox.address, key))
        missing: list[str] = []

        def has_all() -> bool:
            missing.clear()
            for name, expression in promql.list_expressions().items():
                missing.extend(_missing(prometheus, name, expression))
            return not missing

        try:
            wait_until(has_all, "every series is there")
        except AssertionError as error:
            raise AssertionError("\n".join(missing)) from error

        health = {each["labels"]["job"]: each["health"] for each in prometheus.ask("targets")["activeTargets"]}
        assert health == dict.fromkeys(targets, "up")
        # What holds at this moment fires after its time; the certificate expires within two weeks.
        wait_until(lambda: rules_of(prometheus)["RecallogCertificate"]["state"] == "pending", "an alert is pending")
        rules = rules_of(prometheus)
        assert {name: rule["lastError"] for name, rule in rules.items() if rule.get("lastError")} == {}
        healthy = {"RecallogWorkerProblem", "RecallogTopicSettings", "RecallogServerNotReady", "RecallogRedisMemory"}
        assert {name: rules[name]["state"] for name in healthy} == dict.fromkeys(healthy, "inactive")

    lines = [json.loads(line) for each in (worker.log.read_text(), server.log) for line in each.splitlines()]
    assert lines
    assert all(line.keys() >= KEYS for line in lines)


def test_the_redis_exporter_logs_in_as_in_the_compose_file(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    made, variables = make_secrets(tmp_path), COMPOSE["services"]["redis-exporter"]["environment"]
    server = started_server(SecuredRedis(tmp_path / "redis", made / "redis_users"), request.config)
    request.addfinalizer(server.kill)
    passwords = tmp_path / "passwords"
    in_compose = (made / Path(variables["REDIS_PASSWORD_FILE"]).name).read_text()
    passwords.write_text(in_compose.replace(variables["REDIS_ADDR"].partition("://")[2], server.address))
    login = f"--redis.user={variables['REDIS_USER']}", f"--redis.password-file={passwords}"
    exporter = started_server(RedisExporter(tmp_path / "exporter", f"redis://{server.address}", *login), request.config)
    request.addfinalizer(exporter.kill)
    page = httpx.get(f"{exporter.url}/metrics", timeout=30).text
    assert "\nredis_up 1\n" in page
    assert "\nredis_memory_max_bytes " in page


def rules_of(prometheus: Prometheus) -> dict[str, Any]:
    return {rule["name"]: rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]}


def _missing(prometheus: Prometheus, name: str, expression: str) -> Iterator[str]:
    """What an expression names and Prometheus does not have."""
    labels: set[str] = set()
    for series, matchers in promql.find_selectors(expression).items():
        found = prometheus.ask("series", **{"match[]": series})
        if not found:
            yield f"{name}: no series {series}"
        for matcher in matchers:
            values = {each[matcher.name] for each in found if matcher.name in each}
            exact = matcher.op == promql_parser.MatchOp.Equal and (matcher.name, matcher.value) not in SOMETIMES
            if not values or (exact and matcher.value not in values):
                yield f"{name}: {series} has no {matcher.name}={matcher.value}, but {sorted(values)}"
        labels |= {label for each in found for label in each}
    yield from (f"{name}: no label {label}" for label in promql.find_grouped(expression) if label not in labels)
