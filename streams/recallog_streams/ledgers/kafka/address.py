"""The address of a Kafka ledger: `kafka://host:port,host:port/topic?option=value`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self
from urllib.parse import parse_qsl, unquote

from aiokafka.helpers import create_ssl_context

from recallog_schemas.errors import SettingsError

DEFAULT_TOPIC: Final = "recallog.events"
DEFAULT_PARTITIONS: Final = 32
_PORT: Final = 9092
_FORM: Final = "write it as kafka://host:port,host:port/topic?option=value"
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")  # Kafka's own rule
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI")
_NUMBERS: Final = ("partitions", "replication", "min_insync")


@dataclass(frozen=True, repr=False)
class KafkaAddress:
    """A topic of a cluster, how to create it if it does not exist, and how to log in. Never shows its passwords."""

    servers: tuple[str, ...]
    topic: str = DEFAULT_TOPIC
    partitions: int | None = None
    """The partitions of a topic to create (default: 32); an existing topic must have as many."""
    replication: int = 3
    min_insync: int | None = None
    """Replicas that must store an event before it is acknowledged; by default one less than `replication`."""
    timeout_seconds: float = 30.0
    """How long `append` waits for a cluster that does not answer, both for the connection and for acknowledgements,
    and how long creating a topic may take. Other calls wait for the deadline of a question."""
    client_id: str = "recallog"
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str = "PLAIN"
    sasl_kerberos_service_name: str = "kafka"
    sasl_kerberos_domain_name: str | None = None
    ssl_cafile: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    ssl_password: str | None = None
    username: str | None = None
    password: str | None = field(default=None)

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read a URL. A user and password precede the servers; in them @ : / ? # and % are percent-encoded.

        With a user the default is SASL_SSL. Raises `SettingsError`, which names what is wrong and never the password.
        """
        scheme, found, rest = url.partition("://")
        if not found or scheme != "kafka":
            raise SettingsError(f"a Kafka ledger's address starts with kafka://; {_FORM}")
        location, _, query = rest.partition("?")
        authority, _, topic = location.partition("/")
        login, _, hosts = authority.rpartition("@")
        if "@" in topic or "@" in query:  # the rest of a password, which no later message may quote
            raise SettingsError("an @ after the servers; write @ : / ? # and % in a user or password as %40 %3A %2F …")
        values: dict[str, Any] = {"servers": _servers(hosts), "topic": topic.rstrip("/") or DEFAULT_TOPIC}
        if login:
            user, separated, password = login.partition(":")
            values |= {"username": unquote(user), "password": unquote(password) if separated else None}
            values["security_protocol"] = "SASL_SSL"
        values |= _options(query)
        return cls(**values)

    def __post_init__(self) -> None:
        if _TOPIC.fullmatch(self.topic) is None or self.topic in (".", ".."):
            raise SettingsError(f"{self.topic!r} is not a name of a topic: letters, digits and . _ - , at most 249")
        for name in _NUMBERS:
            number = getattr(self, name)
            if number is not None and number < 1:
                raise SettingsError(f"{name}={number}: at least 1")
        if not self.timeout_seconds > 0:
            raise SettingsError(f"timeout_seconds={self.timeout_seconds}: more than 0")
        if self.insync > self.replication:
            raise SettingsError(
                f"min_insync={self.insync} is more than replication={self.replication}: nothing could ever be written"
            )
        if self.security_protocol not in _PROTOCOLS:
            raise SettingsError(f"security_protocol={self.security_protocol}: one of {', '.join(_PROTOCOLS)}")
        if self.sasl_mechanism not in _MECHANISMS:
            raise SettingsError(f"sasl_mechanism={self.sasl_mechanism}: one of {', '.join(_MECHANISMS)}")
        sasl = self.security_protocol.startswith("SASL")
        if sasl and self.sasl_mechanism != "GSSAPI" and (self.username is None or self.password is None):
            raise SettingsError(f"{self.security_protocol} needs kafka://user:password@host:port/…")
        if not sasl and self.username is not None:
            raise SettingsError(f"a user, but security_protocol={self.security_protocol} sends none; use SASL_SSL")

    @property
    def insync(self) -> int:
        """Replicas that must store an event before it is acknowledged."""
        return max(1, self.replication - 1) if self.min_insync is None else self.min_insync

    def __str__(self) -> str:
        """The address without its passwords and options."""
        login = "" if self.username is None else f"{self.username}:***@"
        return f"kafka://{login}{','.join(self.servers)}/{self.topic}"

    def __repr__(self) -> str:
        return f"KafkaAddress({str(self)!r})"

    def connection(self) -> dict[str, Any]:
        """The arguments of every client of aiokafka. Raises `SettingsError` if certificates cannot be read."""
        settings: dict[str, Any] = {
            "bootstrap_servers": list(self.servers),
            "client_id": self.client_id,
            "security_protocol": self.security_protocol,
            # One request may take a third of a call's time, so that another broker can still be tried.
            "request_timeout_ms": max(1, round(self.timeout_seconds * 1000 / 3)),
        }
        if self.security_protocol.endswith("SSL"):
            settings["ssl_context"] = self._ssl_context()
        if self.security_protocol.startswith("SASL"):
            settings |= {
                "sasl_mechanism": self.sasl_mechanism,
                "sasl_plain_username": self.username,
                "sasl_plain_password": self.password,
                "sasl_kerberos_service_name": self.sasl_kerberos_service_name,
                "sasl_kerberos_domain_name": self.sasl_kerberos_domain_name,
            }
        return settings

    def _ssl_context(self) -> Any:
        try:
            return create_ssl_context(
                cafile=self.ssl_cafile,
                certfile=self.ssl_certfile,
                keyfile=self.ssl_keyfile,
                # Without a password, OpenSSL would prompt for one on the terminal, and a worker would hang.
                password=self.ssl_password or "",
            )
        except OSError as error:
            files = ", ".join(str(file) for file in (self.ssl_cafile, self.ssl_certfile, self.ssl_keyfile) if file)
            raise SettingsError(f"the certificates {files} cannot be used: {error}") from None


def _servers(hosts: str) -> tuple[str, ...]:
    servers = []
    for server in hosts.split(","):
        found = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^\s:@/\[\]]+)(?::(\d{1,5}))?", server)
        if found is None:
            raise SettingsError(f"not a list of servers; {_FORM}")  # not quoted: a password with an @ may be part of it
        servers.append(f"{found[1]}:{found[2] or _PORT}")
    return tuple(servers)


def _options(query: str) -> Mapping[str, Any]:
    known = {one.name for one in fields(KafkaAddress)} - {"servers", "topic", "username", "password"}
    values: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in known:
            raise SettingsError(f"{name}: not an option of a Kafka ledger; the options are {', '.join(sorted(known))}")
        values[name] = value
        try:
            if name in _NUMBERS:
                values[name] = int(value)
            elif name == "timeout_seconds":
                values[name] = float(value)
        except ValueError:
            raise SettingsError(f"{name}={value}: not a number") from None
    return values
