"""The compose file and the image: pinned versions, health checks, volumes and ports."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy.local.kafka.jars import kafka_version
from deploy.local.ports import HOST, KAFKA_PORT, REDIS_PORT

from recallog_projections.index.engines.server_connection import VERSION_MIN
from recallog_service.cli.serving import DEFAULT_PORT
from recallog_service.http.server import SHUTDOWN_SECONDS
from recallog_tools.packages import PYTHONS

REPOSITORY = Path(__file__).parents[2]
DOCKERFILE = (REPOSITORY / "deploy" / "Dockerfile").read_text()
RELEASE_FILE = REPOSITORY / ".github" / "workflows" / "release.yml"
RELEASE = yaml.safe_load(RELEASE_FILE.read_text())

SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())["services"]
IMAGES = {name: service["image"] for name, service in SERVICES.items() if "image" in service}


def test_the_compose_file_has_all_services_of_a_cluster() -> None:
    assert set(SERVICES) == {"kafka", "redis", "qdrant", "worker", "indexer", "server"}


@pytest.mark.parametrize("image", IMAGES.values())
def test_images_are_pinned_to_a_version(image: str) -> None:
    assert re.fullmatch(r"[a-z/]+:v?\d+\.\d+[a-z0-9.-]*", image)


@pytest.mark.parametrize("base", re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE))
def test_the_image_is_based_on_a_pinned_slim_python(base: str) -> None:
    assert re.fullmatch(r"python:3\.\d+[0-9.]*-slim", base)


def test_kafka_has_the_version_of_the_live_tests() -> None:
    assert IMAGES["kafka"] == f"apache/kafka:{kafka_version()}"


def test_the_commands_of_the_docs_use_the_ports_on_which_make_cluster_listens() -> None:
    docs = (REPOSITORY / "docs" / "cluster.md").read_text()
    exported = dict(re.findall(r"^export (RECALLOG_LEDGER|RECALLOG_VIEWS)='(.+)'$", docs, re.MULTILINE))
    ledger = f"kafka://{HOST}:{KAFKA_PORT}/recallog.events?partitions=8&replication=1"
    assert exported == {"RECALLOG_LEDGER": ledger, "RECALLOG_VIEWS": f"redis://{HOST}:{REDIS_PORT}/0"}


@pytest.mark.parametrize("name", IMAGES)
def test_services_are_checked_and_keep_their_data_on_a_named_volume(name: str) -> None:
    service = SERVICES[name]
    assert service["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}
    assert [volume.partition(":")[0] for volume in service["volumes"]] == [name]
    assert name in yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())["volumes"]


def test_qdrant_knows_the_idf_of_one_space() -> None:
    version = re.fullmatch(r"qdrant/qdrant:v(\d+)\.(\d+)\.\d+", IMAGES["qdrant"])
    assert version is not None
    assert (int(version[1]), int(version[2])) >= VERSION_MIN


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_bound_to_localhost(name: str) -> None:
    ports = SERVICES[name].get("ports", [])
    assert ports or name in ("indexer", "server")
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_redis_persists_acknowledged_writes_and_evicts_nothing() -> None:
    command = shlex.join(SERVICES["redis"]["command"])
    assert "--appendonly yes" in command
    assert "--maxmemory-policy noeviction" in command


def test_the_worker_waits_for_healthy_services_and_has_time_to_stop() -> None:
    worker = SERVICES["worker"]
    assert worker["depends_on"] == {
        "kafka": {"condition": "service_healthy"},
        "redis": {"condition": "service_healthy"},
    }
    assert set(worker["environment"]) == {"RECALLOG_LEDGER", "RECALLOG_VIEWS"}
    assert worker["stop_grace_period"] == "40s"


def test_the_indexer_is_a_worker_on_the_same_ledger() -> None:
    indexer, worker = SERVICES["indexer"], SERVICES["worker"]
    assert indexer["command"] == ["worker", "--only", "index"]
    assert indexer["depends_on"] == worker["depends_on"] | {"qdrant": {"condition": "service_healthy"}}
    assert indexer["environment"] == worker["environment"] | {"RECALLOG_INDEX": "http://qdrant:6333"}
    assert indexer["stop_grace_period"] == worker["stop_grace_period"]


def test_the_server_listens_on_this_machine_alone() -> None:
    server, indexer = SERVICES["server"], SERVICES["indexer"]
    assert server["command"] == ["serve"]
    assert server["network_mode"] == "host"
    assert set(server["environment"]) == set(indexer["environment"])  # no RECALLOG_SERVER_HOST
    assert all("127.0.0.1" in address for address in server["environment"].values())


def test_the_image_has_all_extras_that_a_cluster_can_use() -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (installed,) = re.findall(r"/wheels/recallog-\*\.whl\)\[(.+)\]", DOCKERFILE)
    assert set(installed.split(",")) == extras.keys() - {"dev"}


def test_the_server_waits_for_views_and_is_healthy_as_long_as_it_can_answer() -> None:
    server = SERVICES["server"]
    assert server["depends_on"]["worker"] == {"condition": "service_healthy"}
    (url,) = re.findall(r"http://[^']+", server["healthcheck"]["test"][-1])
    assert url == f"http://127.0.0.1:{DEFAULT_PORT}/readyz"


def test_the_server_has_time_to_end_its_requests_and_close_the_memory() -> None:
    assert int(SERVICES["server"]["stop_grace_period"].removesuffix("s")) >= SHUTDOWN_SECONDS + 10
    assert "STOPSIGNAL" not in DOCKERFILE  # SIGTERM, which reaches the command itself: the entrypoint has no shell


@pytest.mark.parametrize("name", ["worker", "indexer", "server"])
def test_processes_of_recallog_start_again_after_a_crash(name: str) -> None:
    assert SERVICES[name]["restart"] == "unless-stopped"


def test_the_image_runs_the_command_without_root_and_checks_the_worker_s_health() -> None:
    assert "\nUSER recallog\n" in DOCKERFILE
    assert 'ENTRYPOINT ["recallog"]' in DOCKERFILE
    assert "/health" in DOCKERFILE.partition("HEALTHCHECK")[2]


def test_the_image_has_the_wheel_and_not_the_source() -> None:
    build, _, image = DOCKERFILE.partition("\nFROM ")[2].partition("\nFROM ")
    assert "pip wheel --no-deps --wheel-dir /wheels ." in build
    copied = [line.split()[1:] for line in image.splitlines() if line.startswith("COPY")]
    assert copied == [["--from=build", "/opt/recallog", "/opt/recallog"]]


def test_a_release_needs_a_tag_and_one_secret() -> None:
    assert RELEASE[True] == {"push": {"tags": ["v*"]}}  # YAML 1.1 reads the key `on` as true
    secrets = set(re.findall(r"secrets\.(\w+)", RELEASE_FILE.read_text()))
    assert secrets == {"PYPI_TOKEN", "GITHUB_TOKEN"}  # each run has the second one


def test_nothing_is_released_that_was_not_tried_in_each_python() -> None:
    jobs = RELEASE["jobs"]
    needs = {name: job.get("needs") for name, job in jobs.items()}
    assert needs == {"build": None, "publish": "build", "image": "build"}
    (python,) = [each for each in jobs["build"]["steps"] if each.get("uses", "").startswith("actions/setup-python")]
    assert [f"python{version}" for version in python["with"]["python-version"].split()] == [*PYTHONS]
    assert any("recallog_tools.packages" in each.get("run", "") for each in jobs["build"]["steps"])


def test_the_released_image_has_a_list_of_what_it_consists_of() -> None:
    steps = RELEASE["jobs"]["image"]["steps"]
    (build,) = [each["with"] for each in steps if each.get("uses", "").startswith("docker/build-push-action")]
    assert (build["sbom"], build["file"]) == (True, "deploy/Dockerfile")
