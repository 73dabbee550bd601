"""Each role on a Kafka and a Redis with TLS, logins and ACLs: with the rights of the examples, and with fewer."""

import asyncio
import re
import secrets
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import redis
from deploy.local.ports import HOST

from live.conftest import started_server
from live.secured import MECHANISM, SecuredKafka, SecuredRedis, rights_of, terminating_tls
from live.servers import Server, client_of, created_key, recallog
from live.support import SECONDS, Cluster, wait_until
from recallog.errors import StorageError
from support import own_package
from support.certificates import Authority
from support.events import event

pytestmark = pytest.mark.models("all")

DEPLOY = Path(__file__).parents[2] / "deploy"
LINES = re.findall(r"^acl (.+)$", (DEPLOY / "kafka" / "acls.sh").read_text(), re.MULTILINE)
USERS = (DEPLOY / "redis" / "users.acl").read_text()
ROLES = ("operator", "server", "views", "index", "reactors")
(OWN_VIEWS,) = (line.replace("built-in", "reminders") for line in LINES if "built-in" in line)
"""For the views of a model that the package of these tests brings along."""
DANGEROUS = (
    ("FLUSHALL",),
    ("FLUSHDB",),
    ("KEYS", "*"),
    ("CONFIG", "GET", "save"),
    ("CLIENT", "LIST"),
    ("SWAPDB", "0", "1"),
)
CHANGE = ("SET", "{recallog}:manifest", "")
ADMIN = "user admin on >admin ~* &* +@all\n"
"""The user with which a test looks at Redis."""


class Secured:
    """A broker and a Redis, and the rights of `deploy`."""

    def __init__(self, folder: Path, config: pytest.Config) -> None:
        self.folder = folder
        self.authority = Authority.create(folder / "certificates")
        self.passwords = {role: secrets.token_hex(8) for role in ROLES}
        users = folder / "users.acl"
        users.write_text(ADMIN + "".join(self._with_password(line) for line in USERS.splitlines(keepends=True)))
        self.redis = started_server(SecuredRedis(folder / "redis", users), config)
        self.kafka = started_server(SecuredKafka(folder / "kafka", self.authority), config)
        for role, password in self.passwords.items():
            self.kafka.add_user(f"recallog-{role}", password)
        self.python = own_package.installed(folder)  # has an engine of the index that several processes can use
        self.tls = ""

    def _with_password(self, line: str) -> str:
        role = line.split()[1].removeprefix("recallog-")
        return line.replace(">PASSWORD", f">{self.passwords.get(role, 'unused')}")

    def cluster_of(self, role: str) -> Cluster:
        """The cluster with the login of a role."""
        login = f"recallog-{role}:{self.passwords[role]}"
        options = f"&sasl_mechanism={MECHANISM}&ssl_cafile={self.authority.file}"
        views = f"rediss://{login}@{self.tls}/0?ssl_ca_certs={self.authority.file}"
        folder = self.folder / role
        folder.mkdir(exist_ok=True)
        bootstrap = f"{login}@{self.kafka.secured}"
        return Cluster(bootstrap, "recallog.events", views, folder, options=options, python=self.python)

    def admin(self) -> "redis.Redis[bytes]":
        return redis.Redis(HOST, self.redis.ports["server"], username="admin", password="admin")

    def allow(self, *without: str) -> None:
        """Give the rights of the example, except those of lines that contain one of `without`."""
        lines = [line for line in (*LINES, OWN_VIEWS) if not any(each in line for each in without)]
        self.kafka.allow(rights_of([["acl", *shlex.split(line)] for line in lines]))


@contextmanager
def secured(folder: Path, config: pytest.Config) -> Iterator[Secured]:
    made = Secured(folder, config)
    try:
        with terminating_tls(made.authority.sign("redis"), made.redis.address) as made.tls:
            yield made
    finally:
        made.kafka.kill()
        made.redis.kill()


def test_each_role_works_with_the_rights_of_the_examples_and_has_no_others(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    with secured(tmp_path, pytestconfig) as services, ExitStack() as running:
        services.allow()
        clusters = {role: running.enter_context(services.cluster_of(role)) for role in ROLES}
        operator = clusters["operator"]
        operator.publish_only([event()])  # creates the topic
        key = created_key(operator, "read", "publish", "operate")
        index = {"RECALLOG_INDEX": f"shared://{tmp_path / 'engine'}"}
        workers = {role: clusters[role].worker(only=role, **index) for role in ("views", "index", "reactors")}
        server = Server(clusters["server"])
        for worker in workers.values():
            worker.wait_until(lambda health: health["healthy"], "it is healthy")
        asyncio.run(publish_and_ask(server, key))
        seen = [event("world.observed", agent="narrator", turn=turn) for turn in range(12)]
        operator.publish([event("agent.configured", payload={"reflection_threshold": 3}), *seen])
        wait_until(lambda: has_reflected(operator), "a trigger is answered")
        assert operator.refusal(lambda memory: memory.admin.verify()) is None
        for role, worker in workers.items():
            assert (role, worker.health()["problems"]) == (role, [])
        assert operator.ask(lambda memory: memory.admin.status()).ledger_bytes > 0
        assert [each for each in services.admin().acl_log() if each["username"] != "default"] == []

        # Only those who publish may append, and only those who fold may change the views.
        refused = clusters["views"].refusal(lambda memory: memory.publish(event(turn=99)))
        assert isinstance(refused, StorageError)
        for role in ROLES:
            login = {"username": f"recallog-{role}", "password": services.passwords[role]}
            with redis.Redis(HOST, services.redis.ports["server"], **login) as client:
                for words in DANGEROUS if role in ("operator", "views") else (*DANGEROUS, CHANGE):
                    with pytest.raises(redis.exceptions.NoPermissionError):
                        client.execute_command(*words)

        ledger = str(operator.settings.ledger)
        switched = recallog(operator, "copy", ledger, ledger.replace("recallog.events", "recallog.larger"), "--switch")
        assert switched.code == 0, switched.err


async def publish_and_ask(server: Server, key: str) -> None:
    async with client_of(server, key) as client:
        spoken = {"agent": "baker", "kind": "agent.spoke", "payload": {"text": "Bread!"}}
        published = await client.post("/v1/spaces/village/events", json=spoken)
        assert published.is_success, published.text
        answer = await client.get("/v1/spaces/village/agents/baker/episodic")
        assert answer.is_success, answer.text


def has_reflected(cluster: Cluster) -> bool:
    return bool(cluster.ask(lambda memory: memory.beliefs("village", "baker")).beliefs)


def test_a_role_without_one_of_its_rights_says_so(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    missing = {
        "views": ("--group recallog.built-in.", "GroupAuthorizationFailed"),
        "reactors": ("--group recallog.reactors.", "the agents cannot start"),
    }
    of_index = "User:recallog-index --operation Read --operation DescribeConfigs"
    with secured(tmp_path, pytestconfig) as services, ExitStack() as running:
        services.allow("User:recallog-server", of_index, *(line for line, _ in missing.values()))
        clusters = {role: running.enter_context(services.cluster_of(role)) for role in ROLES}
        clusters["operator"].publish_only([event()])
        index = {"RECALLOG_INDEX": f"shared://{tmp_path / 'engine'}"}
        for role, (_, why) in missing.items():
            clusters[role].worker(only=role, **index).wait_until_red(why)
        ended = clusters["index"].worker(only="index", **index)
        assert ended.process.wait(SECONDS) != 0
        assert "does not allow this user" in ended.log.read_text()
        refused = clusters["server"].refusal(lambda memory: memory.publish(event(turn=1)))
        assert isinstance(refused, StorageError)

        services.allow()
        services.admin().execute_command("ACL", "SETUSER", "recallog-views", "-@write")
        ended = clusters["views"].worker()
        assert ended.process.wait(SECONDS) != 0
        assert "denies its user a command" in ended.log.read_text()


def test_an_unknown_authority_and_a_wrong_password_are_refused(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    with secured(tmp_path, pytestconfig) as services:
        services.allow()
        cluster = services.cluster_of("server")
        ledger, views = str(cluster.settings.ledger), str(cluster.settings.views)
        other = str(services.authority.file), str(Authority.create(tmp_path / "other").file)
        wrong = services.passwords["server"], "wrong"
        for changed in (
            {"ledger": ledger.replace(*other)},
            {"ledger": ledger.replace(*wrong)},
            {"views": views.replace(*other)},
            {"views": views.replace(*wrong)},
        ):
            refused = cluster.refusal(lambda memory: memory.episodic("village", "baker"), **changed)
            assert isinstance(refused, StorageError), changed
            assert services.passwords["server"] not in str(refused)
