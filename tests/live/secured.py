"""A Kafka with TLS, SCRAM and ACLs, and a Redis with users and TLS, with certificates of a test."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

import redis
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from deploy.local import LocalKafka, LocalRedis, ports

from support.certificates import Authority, Certificate

TESTS = Path(__file__).parents[1]
MECHANISM = "SCRAM-SHA-512"
LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_OPERATIONS = {each.name.replace("_", "").lower(): each for each in AclOperation}


class SecuredKafka(LocalKafka):
    """Clients use the listener with TLS and a login. That without is the operator's: a real broker has none."""

    port_names: ClassVar[tuple[str, ...]] = (*LocalKafka.port_names, "secured")

    def __init__(self, folder: Path, authority: Authority) -> None:
        certificate = authority.sign("kafka")
        of_listener = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificate.both),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority.file),
            f"{MECHANISM.lower()}.sasl.jaas.config": f"{LOGIN_MODULE} required;",
        }
        settings = {
            **{f"listener.name.secured.{name}": value for name, value in of_listener.items()},
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURED:SASL_SSL",
            "sasl.enabled.mechanisms": MECHANISM,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        super().__init__(folder, settings=settings, short_lived=True)

    @property
    def secured(self) -> str:
        """Bootstrap servers with TLS and a login."""
        return f"{ports.HOST}:{self.ports['secured']}"

    def add_user(self, name: str, password: str) -> None:
        """Add a user, or change its password."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(name, info, password.encode())
        admin = self._admin()  # its calls end with it
        for done in admin.alter_user_scram_credentials([change]).values():
            done.result(30)

    def allow(self, rights: Sequence["Right"]) -> None:
        """Add rights."""
        admin = self._admin()
        for done in admin.create_acls([*rights]).values():
            done.result(30)

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def _all_settings(self) -> dict[str, str]:
        settings = super()._all_settings()
        added = f",SECURED://{ports.HOST}:{self.ports['secured']}"
        return settings | {name: settings[name] + added for name in ("listeners", "advertised.listeners")}


Right = AclBinding


def rights_of(commands: Sequence[Sequence[str]]) -> list[Right]:
    """The rights that lines `kafka-acls.sh … --add` give. Raises `ValueError` for an option that is not known here."""
    found = []
    for words in commands:
        given: dict[str, list[str]] = {}
        for word, value in zip(words[1:], [*words[2:], ""], strict=True):
            if word.startswith("--"):
                given.setdefault(word[2:], []).append("" if value.startswith("--") else value)
        pattern = ResourcePatternType[given.pop("resource-pattern-type", ["literal"])[0].upper()]
        (principal,) = given.pop("allow-principal")
        resources = [(ResourceType[kind.upper()], name) for kind in ("topic", "group") for name in given.pop(kind, ())]
        resources += [(ResourceType.BROKER, "kafka-cluster") for _ in given.pop("cluster", ())]
        for operation in given.pop("operation"):
            for kind, name in resources:
                allowed = _OPERATIONS[operation.lower()], AclPermissionType.ALLOW
                found.append(AclBinding(kind, name, pattern, principal, "*", *allowed))
        if unknown := given.keys() - {"add", "bootstrap-server", "command-config"}:
            raise ValueError(f"not known here: {unknown}")
    return found


class SecuredRedis(LocalRedis):
    """A Redis with the users of a file. The default user may only run PING."""

    def __init__(self, folder: Path, users: Path) -> None:
        super().__init__(folder, settings={"aclfile": str(users)})

    @contextmanager
    def _prober(self) -> Iterator[Callable[[], bool]]:
        with redis.Redis(ports.HOST, self.ports["server"], socket_timeout=1) as client:

            def answers() -> bool:
                with suppress(redis.ConnectionError, redis.TimeoutError):
                    return bool(client.ping()) and self.running
                return False

            yield answers


@contextmanager
def terminating_tls(certificate: Certificate, server: str) -> Iterator[str]:
    """The address of a proxy that takes TLS and forwards to `server`: the binary of some wheels cannot take TLS."""
    arguments = [str(certificate.certificate), str(certificate.key), server]
    command = [sys.executable, "-m", "support.tls_proxy", *arguments]
    with subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, text=True) as proxy:
        try:
            assert proxy.stdout is not None
            yield f"{ports.HOST}:{int(proxy.stdout.readline())}"
        finally:
            proxy.kill()
