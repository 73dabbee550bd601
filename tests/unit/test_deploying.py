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
from urllib.parse import urlsplit

import compose_spec
import httpx
import kubernetes_validate
import pytest
import typer
import yaml

from recallog import Memory, Settings
from recallog_service import metrics, worker
from recallog_service.access import Access
from recallog_service.cli.app import app as command_line
from recallog_service.cli.serving import DEFAULT_PORT
from recallog_service.http.app import Application
from recallog_service.http.door import Limits
from recallog_service.http.server import SHUTDOWN_SECONDS
from recallog_service.roles import DRAIN_SECONDS
from support import notices
from support.http import served
from support.waiting import WAIT_SECONDS
from unit.test_documentation import blocks

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "recallog"
COMPOSE = yaml.safe_load((DEPLOY / "compose" / "compose.yml").read_text())
DEVELOPMENT = yaml.safe_load((DEPLOY.parent / "docker-compose.yml").read_text())
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
KUBERNETES = ("1.28", "1.31", "1.34")
"""Versions against whose schemas the chart is checked."""
OF_SERVER = {"RECALLOG_SERVER_HOST", "RECALLOG_SERVER_PORT"}
"""Variables of `recallog serve` that are not settings of a memory."""
COMPONENTS = ("views", "indexers", "reactors", "server")
INDEX = ["components.indexers.enabled=true", "settings.RECALLOG_INDEX=http://qdrant:6333"]
EVERYTHING = [
    *INDEX,
    "certificates=recallog-tls",
    "imagePullSecrets[0].name=registry",
    "settings.RECALLOG_TELEMETRY=true",
    "components.reactors.secrets={RECALLOG_MODEL_API_KEY}",
    "networkPolicy.clients[0].namespaceSelector.matchLabels.name=ingress",
    "components.server.egress[0].ports[0].port=4318",
    "components.indexers.pod.nodeSelector.gpu=yes",
    "components.indexers.pod.tolerations[0].operator=Exists",
    *(f"components.{each}.secretName=recallog-{each}" for each in COMPONENTS),
    *(f"components.{each}.autoscaling.enabled=true" for each in COMPONENTS),
]
CLOSED = ["networkPolicy.monitoring=null", "networkPolicy.egress=null", "components.reactors.egress=null"]
COMBINATIONS = {
    "defaults": [],
    "everything": EVERYTHING,
    "index": INDEX,
    "closed": CLOSED,
    "no policies": ["networkPolicy.enabled=false"],
    **{f"no {each}": [f"components.{each}.enabled=false"] for each in ("views", "reactors", "server")},
    **{f"{each} scaled": [*INDEX, f"components.{each}.autoscaling.enabled=true"] for each in COMPONENTS},
}


@dataclass(frozen=True)
class Process:
    """A process of Recallog that something of `deploy` starts."""

    name: str
    command: tuple[str, ...]
    variables: Mapping[str, str]
    stop_seconds: int
    port: int | None = None
    paths: tuple[str, ...] = field(default=())


def render(config: pytest.Config, *values: str, file: Path = CHART / "values.yaml") -> subprocess.CompletedProcess[str]:
    """What helm makes of the chart with values. Without helm the test is skipped, and with CI=true it fails."""
    if (helm := shutil.which("helm")) is None:
        if os.environ.get("CI", "").lower() in {"1", "true"}:
            pytest.fail("helm is missing", pytrace=False)
        notices.add(config, "the chart was NOT rendered", "no helm: go install helm.sh/helm/v3/cmd/helm@v3.18.6")
        pytest.skip("no helm")
    given = [word for value in values for word in ("--set", value)]
    command = [helm, "template", "memory", str(CHART), "--kube-version", KUBERNETES[-1], "--values", str(file), *given]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rendered(config: pytest.Config, *values: str, **options: Path) -> list[dict[str, Any]]:
    """The objects of the chart with values."""
    done = render(config, *values, **options)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def rendered_kind(config: pytest.Config, kind: str, *values: str) -> dict[str, dict[str, Any]]:
    """The specifications of the objects of one kind, by component."""
    prefix = "memory-"
    documents = [each for each in rendered(config, *values) if each["kind"] == kind]
    return {each["metadata"]["name"].removeprefix(prefix): each["spec"] for each in documents}


def pods(config: pytest.Config, *values: str) -> dict[str, dict[str, Any]]:
    """The specifications of the pods by component."""
    return {name: spec["template"]["spec"] for name, spec in rendered_kind(config, "Deployment", *values).items()}


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
        text += (DEPLOY / "systemd" / "index.conf").read_text()
        variables = dict(re.findall(r"^Environment=(\w+)=(.+)$", text, re.MULTILINE))
        loaded = set(re.findall(r"^LoadCredential=(\w+):/etc/recallog/secrets/\1$", text, re.MULTILINE))
        assert {value.removeprefix("%d/") for value in variables.values()} == loaded
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


@pytest.mark.parametrize("values", COMBINATIONS.values(), ids=COMBINATIONS)
def test_the_chart_is_valid_for_the_schemas_of_its_kinds(values: list[str], pytestconfig: pytest.Config) -> None:
    documents = rendered(pytestconfig, *values)
    for document in documents:
        for version in KUBERNETES:
            kubernetes_validate.validate(document, version, strict=True)
    kinds = [document["kind"] for document in documents]
    assert kinds.count("Deployment") == kinds.count("PodDisruptionBudget") > 0
    assert ("HorizontalPodAutoscaler" in kinds) == any("autoscaling" in value for value in values)
    names = [(document["kind"], document["metadata"]["name"]) for document in documents]
    assert len(names) == len(set(names))


def test_numbers_of_a_file_of_values_are_written_in_full(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """A million was written as 1e+06, which is not a number of records."""
    settings = {"RECALLOG_SNAPSHOT_RECORDS": 1_000_000, "RECALLOG_DEADLINE_SECONDS": 0.5, "RECALLOG_TELEMETRY": True}
    scaled = {"enabled": True, "pods": {"recallog_lag_records": 2_500_000}}
    (tmp_path / "values.yaml").write_text(
        yaml.safe_dump({"settings": settings, "components": {"views": {"autoscaling": scaled}}})
    )
    documents = rendered(pytestconfig, file=tmp_path / "values.yaml")
    for document in documents:
        if document["kind"] == "Deployment":
            (container,) = document["spec"]["template"]["spec"]["containers"]
            variables = {each["name"]: each["value"] for each in container["env"]}
            assert variables.items() >= {name: json.dumps(value) for name, value in settings.items()}.items()
    (scaler,) = [each["spec"] for each in documents if each["kind"] == "HorizontalPodAutoscaler"]
    assert scaler["metrics"][0]["pods"]["target"]["averageValue"] == "2500000"


def test_values_that_the_chart_does_not_know_are_refused(pytestconfig: pytest.Config) -> None:
    for wrong in (
        "components.indexer.enabled=true",
        "components.views.replica=3",
        "networkPolicies.enabled=false",
        "secret.settings={ledger}",
    ):
        refused = render(pytestconfig, wrong)
        assert refused.returncode != 0, wrong
        assert "the schema" in refused.stderr, wrong


@pytest.mark.parametrize("component", ["indexers", "server"])
def test_a_component_that_uses_the_index_and_has_no_address_of_it_is_refused(
    component: str, pytestconfig: pytest.Config
) -> None:
    (other,) = {"indexers", "server"} - {component}
    refused = render(pytestconfig, INDEX[0], f"components.{other}.settings.RECALLOG_INDEX=http://qdrant:6333")
    assert f"RECALLOG_INDEX is missing in secret.settings or settings, for {component}" in refused.stderr


def test_a_service_of_the_namespace_gives_no_pod_a_setting(pytestconfig: pytest.Config) -> None:
    """The Service of a release `recallog` would give each pod `RECALLOG_SERVER_PORT=tcp://…`."""
    for pod in pods(pytestconfig).values():
        assert pod["enableServiceLinks"] is False


def test_a_component_reads_its_addresses_from_the_secret_of_its_role(pytestconfig: pytest.Config) -> None:
    for values, names in (([], dict.fromkeys(COMPONENTS, "recallog")), (EVERYTHING, {})):
        for component, pod in pods(pytestconfig, *values).items():
            (secret,) = [each["secret"] for each in pod["volumes"] if each["name"] == "secrets"]
            assert secret["secretName"] == names.get(component, f"recallog-{component}")
            (container,) = pod["containers"]
            (mounted,) = [each["mountPath"] for each in container["volumeMounts"] if each["name"] == "secrets"]
            files = {f"{mounted}/{item['path']}" for item in secret["items"]}
            variables = {each["name"]: each["value"] for each in container["env"]}
            assert files == {value for name, value in variables.items() if name.endswith("_FILE")}


def test_pods_reach_what_their_processes_use_and_no_more(pytestconfig: pytest.Config) -> None:
    services = {9092, 9093, 6379, 6380, 6333, 6334}
    expected = {"views": services, "indexers": services, "reactors": services | {443}, "server": services | {443}}
    for component, policy in rendered_kind(pytestconfig, "NetworkPolicy", *INDEX).items():
        dns, *others = policy["egress"]
        assert {(port["port"], port["protocol"]) for port in dns["ports"]} == {(53, "UDP"), (53, "TCP")}
        assert {port["port"] for rule in others for port in rule["ports"]} == expected[component]


def test_only_a_server_is_reached_by_clients_and_all_pods_by_prometheus(pytestconfig: pytest.Config) -> None:
    serving = {name: pod["containers"][0]["ports"] for name, pod in pods(pytestconfig, *INDEX).items()}
    for component, policy in rendered_kind(pytestconfig, "NetworkPolicy", *INDEX).items():
        monitoring, *clients = policy["ingress"]
        assert monitoring["from"] == [
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
        ]
        assert [rule["from"] for rule in clients] == ([[{"podSelector": {}}]] if component == "server" else [])
        assert {port["port"] for rule in policy["ingress"] for port in rule["ports"]} == {
            port["containerPort"] for port in serving[component]
        }


def test_a_network_policy_without_sources_lets_nobody_in(pytestconfig: pytest.Config) -> None:
    for component, policy in rendered_kind(pytestconfig, "NetworkPolicy", *CLOSED).items():
        assert "Ingress" in policy["policyTypes"]
        assert all(rule["from"] for rule in policy.get("ingress", ()))
        assert ("ingress" in policy) == (component == "server")


def test_a_server_takes_requests_until_its_pod_is_known_to_end(pytestconfig: pytest.Config) -> None:
    pod = pods(pytestconfig)["server"]
    *_, pause = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    assert pod["terminationGracePeriodSeconds"] >= int(pause) + SHUTDOWN_SECONDS + 10


def test_jobs_of_prometheus_find_the_pods_and_the_service_of_the_chart(pytestconfig: pytest.Config) -> None:
    labels: dict[str, list[dict[str, str]]] = {"pod": [], "service": []}
    for document in rendered(pytestconfig, *INDEX):
        if document["kind"] == "Deployment":
            labels["pod"].append(document["spec"]["template"]["metadata"]["labels"])
        elif document["kind"] == "Service":
            labels["service"].append(document["metadata"]["labels"])
    jobs = yaml.safe_load((DEPLOY / "prometheus" / "kubernetes.yml").read_text())["scrape_configs"]
    of_compose = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    assert [job["job_name"] for job in jobs] == [job["job_name"] for job in of_compose]
    found = {}
    for job in jobs:
        for discovery in job.get("kubernetes_sd_configs", ()):
            (keep,) = [each for each in job["relabel_configs"] if each.get("action") == "keep"]
            prefix = f"__meta_kubernetes_{discovery['role']}_label_"
            found[job["job_name"]] = {
                each["app.kubernetes.io/component"]
                for each in labels[discovery["role"]]
                for by_name in ({prefix + re.sub("[^a-z]", "_", name): value for name, value in each.items()},)
                if re.fullmatch(keep["regex"], ";".join(by_name[name] for name in keep["source_labels"]))
            }
    workers = {"views", "indexers", "reactors"}
    assert found == {"recallog-worker": workers, "recallog-server": {"server"}, "recallog-ready": {"server"}}


def test_pods_are_scaled_by_series_that_the_adapter_serves_and_a_worker_has(pytestconfig: pytest.Config) -> None:
    adapter = yaml.safe_load((DEPLOY / "prometheus" / "adapter.yml").read_text())["rules"]
    served = {
        sort: {rule["seriesQuery"].partition("{")[0] for rule in adapter[sort]} for sort in ("custom", "external")
    }
    used: dict[str, set[str]] = {"pods": set(), "external": set()}
    for scaler in rendered_kind(pytestconfig, "HorizontalPodAutoscaler", *EVERYTHING).values():
        for metric in scaler["metrics"]:
            if (sort := metric["type"].lower()) in used:
                used[sort].add(metric[sort]["metric"]["name"])
    assert (used["pods"], used["external"]) == (served["custom"], served["external"])
    assert all(f'"{name}"' in inspect.getsource(metrics) for names in served.values() for name in names)


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
    for pod in pods(pytestconfig, *EVERYTHING).values():
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


@pytest.fixture(scope="module")
def secrets_of_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_secrets(tmp_path_factory.mktemp("repository"))


def make_secrets(repository: Path) -> Path:
    """Run the commands of the page on deploying that make the secrets; their folder in `repository`."""
    (repository / "deploy" / "compose").mkdir(parents=True)
    (script,) = [each for each in blocks("docs/deploying.md", "shell") if "secrets" in each and "password()" in each]
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=repository, check=True)
    return repository / "deploy" / "compose" / "secrets"


def test_the_page_makes_the_secrets_of_the_compose_file(secrets_of_page: Path) -> None:
    named = {secret["file"].removeprefix("./secrets/") for secret in COMPOSE["secrets"].values()}
    assert {file.name for file in secrets_of_page.iterdir()} == named
    assert secrets_of_page.stat().st_mode & 0o777 == 0o700
    for file in secrets_of_page.iterdir():
        assert file.stat().st_mode & 0o777 == 0o644  # containers read it as other users; its owner writes the key


def test_the_redis_exporter_finds_its_password_at_its_address(secrets_of_page: Path) -> None:
    variables = COMPOSE["services"]["redis-exporter"]["environment"]
    passwords = json.loads(Path(secrets_of_page, Path(variables["REDIS_PASSWORD_FILE"]).name).read_text())
    with_user = variables["REDIS_ADDR"].replace("://", f"://{variables['REDIS_USER']}@")
    assert passwords.keys() == {with_user, variables["REDIS_ADDR"]}
    users = (secrets_of_page / "redis_users").read_text()
    for password in passwords.values():
        assert f"user {variables['REDIS_USER']} on >{password} " in users


def test_users_of_redis_on_the_page_have_the_rights_of_the_example(secrets_of_page: Path) -> None:
    def rights(text: str) -> dict[str, str]:
        return {words[1]: " ".join(words[2:]) for words in map(str.split, re.sub(r">\S+ ", "", text).splitlines())}

    example = rights((DEPLOY / "redis" / "users.acl").read_text())
    written = rights((secrets_of_page / "redis_users").read_text())
    assert written == {
        "default": example["default"],
        "recallog": example["recallog-operator"],
        "exporter": example["exporter"],
    }
    address = urlsplit((secrets_of_page / "views").read_text())
    assert f"user {address.username} on >{address.password} " in (secrets_of_page / "redis_users").read_text()


def test_the_proxy_takes_what_a_server_takes() -> None:
    (size,) = re.findall(r"max_size (\d+)MiB", (DEPLOY / "compose" / "Caddyfile").read_text())
    assert int(size) * 1024 * 1024 == Limits().body_bytes


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
    copy = tmp_path / unit.name.replace("@", "@index")
    copy.write_text(unit.read_text().replace("/opt/recallog/bin/recallog", str(program)))
    added = tmp_path / f"{copy.name}.d" / "index.conf"
    added.parent.mkdir()
    shutil.copy(DEPLOY / "systemd" / "index.conf", added)
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
