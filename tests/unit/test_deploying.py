"""The chart, the compose file and the units of `deploy`: valid, and all that they name exists."""

import asyncio
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import compose_spec
import httpx
import kubernetes_validate
import pytest
import typer
import yaml

from recallog import Memory, Settings
from recallog_service import worker
from recallog_service.access import Access
from recallog_service.cli.app import app as command_line
from recallog_service.cli.serving import DEFAULT_PORT
from recallog_service.http.app import Application
from recallog_service.http.server import SHUTDOWN_SECONDS
from recallog_service.roles import DRAIN_SECONDS
from support import notices
from support.http import served
from support.waiting import WAIT_SECONDS

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "recallog"
COMPOSE = yaml.safe_load((DEPLOY / "compose" / "compose.yml").read_text())
DEVELOPMENT = yaml.safe_load((DEPLOY.parent / "docker-compose.yml").read_text())
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
KUBERNETES = ("1.28", "1.31", "1.34")
"""Versions against whose schemas the chart is checked."""
OF_SERVER = {"RECALLOG_SERVER_HOST", "RECALLOG_SERVER_PORT"}
"""Variables of `recallog serve` that are not settings of a memory."""
EVERYTHING = [
    "components.indexers.enabled=true",
    "certificates=recallog-tls",
    "settings.RECALLOG_TELEMETRY=true",
    *(f"components.{each}.autoscaling.enabled=true" for each in ("views", "indexers", "reactors", "server")),
]


@dataclass(frozen=True)
class Process:
    """A process of Recallog that something of `deploy` starts."""

    name: str
    command: tuple[str, ...]
    variables: Mapping[str, str]
    stop_seconds: int
    port: int | None = None
    paths: tuple[str, ...] = field(default=())


def rendered(config: pytest.Config, *values: str) -> list[dict[str, Any]]:
    """What the chart makes of values. Without helm the test is skipped, and with CI=true it fails."""
    if (helm := shutil.which("helm")) is None:
        if os.environ.get("CI", "").lower() in {"1", "true"}:
            pytest.fail("helm is missing", pytrace=False)
        notices.add(config, "the chart was NOT rendered", "no helm: go install helm.sh/helm/v3/cmd/helm@v3.18.6")
        pytest.skip("no helm")
    given = [word for value in values for word in ("--set", value)]
    command = [helm, "template", "memory", str(CHART), "--kube-version", KUBERNETES[-1], *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def list_of_chart(config: pytest.Config) -> Iterator[Process]:
    for document in rendered(config, *EVERYTHING):
        if document["kind"] == "Deployment":
            pod = document["spec"]["template"]["spec"]
            (container,) = pod["containers"]
            (port,) = container["ports"]
            yield Process(
                document["metadata"]["name"],
                tuple(container["args"]),
                {each["name"]: each["value"] for each in container["env"]},
                pod["terminationGracePeriodSeconds"],
                port["containerPort"],
                tuple(container[probe]["httpGet"]["path"] for probe in ("readinessProbe", "livenessProbe")),
            )


def list_of_compose() -> Iterator[Process]:
    for name, service in COMPOSE["services"].items():
        if "build" in service:
            (url,) = re.findall(r"http://127.0.0.1:(\d+)(/\w+)", service["healthcheck"]["test"][-1])
            stop = int(service["stop_grace_period"].removesuffix("s"))
            yield Process(name, tuple(service["command"]), service["environment"], stop, int(url[0]), (url[1],))


def list_of_units() -> Iterator[Process]:
    for unit in UNITS:
        text = unit.read_text()
        (started,) = re.findall(r"^ExecStart=/opt/recallog/bin/recallog (.+)$", text, re.MULTILINE)
        (stop,) = re.findall(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)
        variables = dict(re.findall(r"^Environment=(\w+)=(.+)$", text, re.MULTILINE))
        for role in worker.ROLES if "%i" in started else ("",):
            yield Process(f"{unit.name} {role}", tuple(shlex.split(started.replace("%i", role))), variables, int(stop))


def check(process: Process) -> None:
    """All that a process is given exists, and it has time to stop."""
    parse(process.command)
    for name in process.variables:
        setting = name.removesuffix("_FILE").removeprefix("RECALLOG_").lower()
        assert name in OF_SERVER or setting in Settings.model_fields, (process.name, name)
    serves = process.command[0] == "serve"
    assert process.stop_seconds >= (SHUTDOWN_SECONDS if serves else DRAIN_SECONDS) + 10, process.name
    if process.port is not None:
        assert process.port == (DEFAULT_PORT if serves else Settings.model_fields["worker_port"].default)
    assert set(process.paths) <= (paths_of_server() if serves else paths_of_worker()), process.name


def parse(command: tuple[str, ...]) -> None:
    """Parse a command line as `recallog` does. Raises for an unknown command, option or value."""
    group = typer.main.get_command(command_line)
    context = group.make_context("recallog", [*command], resilient_parsing=False)
    name, found, rest = group.resolve_command(context, [*command])  # type: ignore[attr-defined]
    parsed = found.make_context(name, rest, parent=context)
    if only := parsed.params.get("only"):
        assert set(only.split(",")) <= worker.ROLES.keys()


def paths_of_worker() -> set[str]:
    return set(re.findall(r'@app\.page\("(.+)"\)', inspect.getsource(worker)))


@cache
def paths_of_server() -> set[str]:
    """Of the paths that probes may name, those that a server answers without a key."""

    async def ask() -> set[str]:
        async with Memory.open(Settings(ledger="memory://", views="memory://")) as memory:
            app = Application(memory, Access.of(Settings()))
            async with served(app) as (_, url), httpx.AsyncClient(base_url=url, timeout=WAIT_SECONDS) as client:
                paths = ("/healthz", "/readyz")
                return {path for path in paths if (await client.get(path)).status_code == 200}

    return asyncio.run(ask())


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("values", [[], EVERYTHING], ids=["defaults", "everything"])
def test_the_chart_is_valid_for_the_schemas_of_its_kinds(
    values: list[str], version: str, pytestconfig: pytest.Config
) -> None:
    documents = rendered(pytestconfig, *values)
    for document in documents:
        kubernetes_validate.validate(document, version, strict=True)
    kinds = {document["kind"] for document in documents}
    assert {"Deployment", "PodDisruptionBudget", "NetworkPolicy", "Service"} <= kinds
    assert ("HorizontalPodAutoscaler" in kinds) == bool(values)
    names = [(document["kind"], document["metadata"]["name"]) for document in documents]
    assert len(names) == len(set(names))


def test_what_the_chart_selects_is_what_it_labels(pytestconfig: pytest.Config) -> None:
    documents = rendered(pytestconfig, *EVERYTHING)
    pods = [each["spec"]["template"]["metadata"]["labels"] for each in documents if each["kind"] == "Deployment"]
    for document in documents:
        spec = document["spec"]
        selector = spec.get("podSelector", spec.get("selector"))
        if selector is not None:
            wanted = selector.get("matchLabels", selector)
            assert sum(wanted.items() <= labels.items() for labels in pods) == 1, document["metadata"]["name"]


def test_the_chart_gives_each_process_what_exists(pytestconfig: pytest.Config) -> None:
    processes = list(list_of_chart(pytestconfig))
    assert len(processes) == 4
    for process in processes:
        check(process)
        assert {"RECALLOG_LEDGER_FILE", "RECALLOG_VIEWS_FILE"} <= process.variables.keys()


def test_the_chart_runs_without_root_in_a_pod_that_writes_nothing(pytestconfig: pytest.Config) -> None:
    for document in rendered(pytestconfig, *EVERYTHING):
        if document["kind"] == "Deployment":
            pod = document["spec"]["template"]["spec"]
            uid = re.findall(r"useradd .*--uid (\d+)", (DEPLOY / "Dockerfile").read_text())
            assert [str(pod["securityContext"]["runAsUser"])] == uid
            assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"]
            assert not pod["automountServiceAccountToken"]


@pytest.mark.parametrize("document", [COMPOSE, DEVELOPMENT], ids=["production", "development"])
def test_the_compose_files_are_valid_for_the_specification(document: dict[str, Any]) -> None:
    compose_spec.PyCompose.from_json(json.dumps(document)).validate()
    volumes = {volume.partition(":")[0] for each in document["services"].values() for volume in each.get("volumes", ())}
    assert {volume for volume in volumes if volume[0] not in "./"} == document["volumes"].keys()
    files = {volume for volume in volumes if volume.startswith(".")}
    assert all((DEPLOY / "compose" / file).exists() for file in files)


def test_a_compose_file_with_a_misspelt_key_is_not_valid() -> None:
    wrong = {"services": {"redis": {"image": "redis:7.4", "comand": []}}}
    with pytest.raises(ValueError, match="comand"):
        compose_spec.PyCompose.from_json(json.dumps(wrong))


@pytest.mark.parametrize("process", [*list_of_compose()], ids=lambda process: process.name)
def test_the_production_compose_file_gives_each_process_what_exists(process: Process) -> None:
    check(process)
    service = COMPOSE["services"][process.name]
    files = {f"/run/secrets/{secret}" for secret in service["secrets"]}
    assert {value for name, value in process.variables.items() if name.endswith("_FILE")} <= files
    assert service["build"]["dockerfile"] == "deploy/Dockerfile"


@pytest.mark.parametrize(
    ("name", "service"), [(name, each) for name, each in COMPOSE["services"].items() if "build" not in each]
)
def test_images_of_the_production_compose_file_are_those_of_development_or_pinned(
    name: str, service: dict[str, Any]
) -> None:
    assert re.fullmatch(r"[a-z0-9/_-]+:v?\d+\.\d+[a-z0-9.-]*", service["image"])
    assert DEVELOPMENT["services"].get(name, service)["image"] == service["image"]


def test_only_the_proxy_is_reached_from_other_machines() -> None:
    published = {
        name: port for name, each in COMPOSE["services"].items() for port in each.get("ports", ()) if "127" not in port
    }
    assert published.keys() == {"proxy"}
    assert COMPOSE["networks"]["inside"]["internal"]


def test_prometheus_and_the_proxy_use_names_and_ports_of_the_compose_file() -> None:
    services = COMPOSE["services"]
    text = (DEPLOY / "prometheus" / "prometheus.yml").read_text() + (DEPLOY / "compose" / "Caddyfile").read_text()
    named = {name for names in re.findall(r"names: \[(.+)\]", text) for name in names.split(", ")}
    named |= set(re.findall(r"([a-z-]+):\d{2,}", text))
    assert named <= services.keys() | {"port"}
    used = {int(port) for port in re.findall(r"\b(?:port: |server:)(\d+)", text)}
    assert used == {process.port for process in list_of_compose()}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_the_units_are_valid(unit: Path, tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("recallog")
    copy = tmp_path / unit.name.replace("@", "@views")
    copy.write_text(unit.read_text().replace("/opt/recallog/bin/recallog", str(program)))
    done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("process", [*list_of_units()], ids=lambda process: process.name)
def test_the_units_give_each_process_what_exists(process: Process) -> None:
    check(process)


@pytest.mark.parametrize(
    "command", [("worker", "--onyl", "views"), ("wroker",), ("worker", "--only", "view"), ("serve", "--port", "x")]
)
def test_a_command_that_does_not_exist_is_found(command: tuple[str, ...]) -> None:
    with pytest.raises((SystemExit, AssertionError, typer.BadParameter.__bases__[0])):  # type: ignore[arg-type]
        parse(command)
