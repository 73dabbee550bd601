"""Settings of a memory, from the environment (`RECALLOG_…`) or from code."""

import os
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, SettingsConfigDict

from recallog_schemas import limits
from recallog_schemas.errors import InvalidArgument, SettingsError
from recallog_schemas.sealing import Policy
from recallog_schemas.validation import first_problem, is_text

if TYPE_CHECKING:
    from recallog_streams.tracing import Tracing


class Settings(BaseSettings):
    """Settings of one memory. Each can be given as an environment variable `RECALLOG_<NAME>`, or in a file that
    `RECALLOG_<NAME>_FILE` names, so that a secret is not in the environment."""

    @field_validator("*")
    @classmethod
    def _is_text(cls, value: object) -> object:
        """The name of a folder or a host must be valid text. Undecodable bytes of the environment or the command line
        are refused."""
        if isinstance(value, str | Path) and (not is_text(str(value)) or "\0" in str(value)):
            raise PydanticCustomError("string_unicode", "is not valid text")
        return value

    @field_validator("scrub")
    @classmethod
    def _names_sorts(cls, value: str) -> str:
        if value:
            from recallog.scrubbing import Scrubber

            Scrubber.of(value)
        return value

    model_config = SettingsConfigDict(env_prefix="RECALLOG_", frozen=True, allow_inf_nan=False)

    @classmethod
    def settings_customise_sources(cls, settings_cls: type[BaseSettings], *_: Any, **sources: Any) -> tuple[Any, ...]:
        given = sources["init_settings"]
        return given, sources["env_settings"], cls._read_files, lambda: cls._read_other(given.init_kwargs)

    @classmethod
    def _read_files(cls) -> dict[str, str]:
        return {name: value for name in cls.model_fields if (value := read_file(variable_of(name))) is not None}

    @classmethod
    def _read_other(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """The settings that variables of other memories give, see `other_settings`, which few programs need."""
        if not any(name.startswith(_OTHER_PREFIXES) for name in os.environ):
            return {}
        from recallog import other_settings

        return {**other_settings.read({*given, *cls.list_set()})}

    @classmethod
    def list_set(cls) -> set[str]:
        """The settings that have a variable of their own in the environment, in small or capital letters."""
        variables, present = {name: variable_of(name) for name in cls.model_fields}, {*map(str.upper, os.environ)}
        return {name for name, variable in variables.items() if {variable, f"{variable}_FILE"} & present}

    @classmethod
    def of_folder(cls, home: str | PathLike[str] | None) -> Self:
        """The settings of a memory in the folder `home`. None means the settings of the environment.

        Raises `InvalidArgument` if `home` cannot name a folder, and `SettingsError`.
        """
        return cls.valid() if home is None else cls.valid(home=_folder(home), ledger=None, views=None)

    @classmethod
    def valid(cls, **given: Any) -> Self:
        """The settings of the environment, except those that are given. Raises `SettingsError`."""
        try:
            return cls(**given)
        except ValidationError as error:
            problem = first_problem(error)
            raise SettingsError(f"RECALLOG_{problem.path.upper()}: {problem.message}") from None

    @property
    def serves_index(self) -> bool:
        """Whether a separate process serves the index, which is in the memory's folder."""
        return self.ledger is None and self.views is None and self.index in (None, "embedded")

    def tracing(self) -> "Tracing | None":
        """Makes spans; None if `telemetry` is off. Raises `SettingsError` if OpenTelemetry is not installed."""
        if not self.telemetry:
            return None
        from recallog_streams.tracing import Tracing

        return Tracing()

    home: Path = Path(".recallog")
    """The folder of the embedded form: the ledger, and the views that can be built from it."""
    ledger: str | None = None
    """The ledger of a cluster: `kafka://host:9092/recallog.events?partitions=32&replication=3`. Needs `views` too. Its
    option `timeout_seconds` (30) is how long publishing waits for the cluster before its outcome is unknown."""
    views: str | None = None
    """The store in which a cluster's workers maintain the views: `redis://host:6379/0`, or several that share the
    partitions: `redis://a:6379,b:6379/0`. Needs `ledger` too."""
    seal: Policy = "subjects"
    """Which events are encrypted in the ledger, so that they can be erased: `subjects` (those with a subject, and those
    of entries), `all`, `each` (as `subjects`, and each other event with its own key), or `off`. Events that are already
    sealed can be read with each value."""
    keys: str | None = None
    """Where the keys of sealed events are: `redis://host:6379/0`, or the URL of an adapter. Default: a file in the
    folder, the Redis of the views on a cluster."""
    projections: str | None = None
    """Projections of your own, in Python: `module:name`, separated by commas. The module may be in the working
    directory. All programs and commands that see this setting fold and show their views beside the built-in ones,
    unless a program gives its own projections to `Memory.open`."""
    external: str | None = None
    """External sources of `search`, in Python: `name=module:function`, separated by commas. The module may be in the
    working directory. A program may give its own ones to `Memory.open` instead."""
    workspace: Path | None = None
    """The folder of documents that `workspace import` and `workspace export` use if the call does not name one."""
    index: str | None = None
    """The semantic index: `embedded` (in the folder, served by a separate process), `off`, or the URL of a Qdrant
    server (`http://host:6333`). Default: embedded for a memory in a folder, off on a cluster."""
    embedder: str = "minilm"
    """The embedder of a new index: `minilm`, `onnx:<folder>`, or the embedder of a package:
    `sentence-transformers[:<folder>]`, or `http(s)://host/v1#model`, to which the texts are sent. A folder or model may
    be followed by its prefixes, `?query=query:+&passage=passage:+`. `recallog reindex` changes the embedder of an
    existing index. A URL has 30 s for a batch of texts, and `deadline_seconds` for a question."""
    embedder_api_key: SecretStr | None = None
    """The API key that is sent to an embedder that is a URL."""
    index_token_vectors: bool = True
    """Whether a new index stores a vector for each content token, for late interaction: 96 bytes with the default
    model."""
    index_replication_factor: int | None = Field(default=None, ge=1)
    """On how many machines of a Qdrant cluster each point of a new index is. Default: the server's, usually 1."""
    index_shard_number: int | None = Field(default=None, ge=1)
    """Into how many shards a Qdrant cluster divides the points of a new index. Default: the server's."""
    index_on_disk: bool = False
    """Whether a Qdrant server reads the vectors, graphs and words of a new index from disk instead of RAM."""
    index_quantization: Literal["none", "scalar"] = "none"
    """`scalar`: a Qdrant server compares the vectors of a new index by copies in RAM with 8 bits per number, and the
    best again by vectors with 16 bits."""
    index_grpc_port: int | None = Field(default=None, ge=1, le=65535)
    """The port at which a Qdrant server takes points by gRPC, usually 6334. Default: points are written by HTTP."""
    index_idle_seconds: float = Field(default=300.0, ge=0)
    """How long an embedded index is served after its last use, once everything is indexed. With 0, this ends with the
    program that asked for it."""
    deadline_seconds: float = Field(default=limits.DEADLINE_SECONDS, gt=0)
    """How long a query waits for another process or server that does not respond: for a connection, for each answer,
    and when the memory is closed. It also limits external sources; a reranker may take five times as long.
    Publishing has longer limits of its own (see the options of a Kafka ledger's URL)."""
    after_wait_seconds: float = Field(default=10.0, gt=0)
    """How long a query on a cluster waits until the workers have processed the position that it names in `after`."""
    worker_host: str = "127.0.0.1"
    """The address at which a worker serves `/health` and `/metrics`."""
    worker_port: int = Field(default=6066, ge=1, le=65535)
    """The port at which a worker serves `/health` and `/metrics`."""
    jwt_key: SecretStr | None = None
    """The key with which tokens of an identity provider are checked: a secret of at least 32 bytes, or a public key
    (PEM). Their claim `recallog` has a grant: `{"spaces": ["acme/*"], "agent": "baker", "verbs": ["read"]}`."""
    jwt_algorithm: Literal["HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "ES256", "ES384", "EdDSA"] = "HS256"
    """The algorithm of these tokens; others are refused."""
    jwt_audience: str | None = None
    """The audience (`aud`) that these tokens must name. If it is not set, they must not name one."""
    jwt_issuer: str | None = None
    """The issuer (`iss`) that these tokens must name. Default: any."""
    telemetry: bool = False
    """Whether operations have OpenTelemetry spans, and on a cluster also the fold of the events that they wrote. Needs
    the extra `telemetry`. Where spans go is set by the program, or by the variables `OTEL_…`."""
    scrub: str = ""
    """The data that is replaced in the payloads of events before they are stored: `secrets`, `emails`, `phones` and
    `cards`, separated by commas. The text then says `[SECRET]`, `[EMAIL]`, `[PHONE]` or `[CARD]`. Default: nothing."""
    reactor_at_once: int = Field(default=limits.REACTIONS_AT_ONCE, ge=1, le=1_000)
    """How many triggers of each reactor that calls a model a process answers at the same time."""
    reactor_models_per_second: float | None = Field(default=None, gt=0)
    """How many triggers per second a process gives to reactors that do not just apply a rule, such as those that call a
    model; a fraction is allowed. Default: no limit."""
    reactor_deadline_seconds: float = Field(default=limits.REACTION_SECONDS, gt=0)
    """How long a reactor may take for an answer, with all repeats. Then the trigger is closed as failed."""
    lock_wait_seconds: float = Field(default=limits.LOCK_WAIT_SECONDS, gt=0)
    """How long to wait for a lock that another process holds. A query waits at most `deadline_seconds`, if that is
    less. It then folds in memory the records that the views lack."""
    create_ledger: bool = True
    """Whether a topic that does not exist is created. If it is off, a process reports a missing topic: for clusters
    whose operators create the topics. A worker never creates a topic again that it has used."""
    log_events: int = Field(default=limits.LOG_EVENTS_KEPT, ge=limits.LOG_EVENTS_KEPT, le=limits.LOG_EVENTS_MAX)
    """How many of the newest events the views retain: of each agent, and of the shared events of each space. Salience
    scores at most this many. All processes of one folder need the same value; a higher one rebuilds the views."""
    snapshot_records: int = Field(default=limits.SNAPSHOT_RECORDS, ge=0)
    """The number of records of a space after which a query of the past (`as_of`) saves a snapshot of it in the file of
    the views, so that later queries fold few records. A lower number makes these queries faster, and the file larger. 0
    means no snapshots. A cluster does not have snapshots."""
    count_accesses: bool = True
    """Whether queries count the entries that they show (`memory.accessed`). If it is off, queries leave no trace: for
    debugging and evaluation."""
    model: str | None = None
    """The chat model that reflects, extracts facts, summarises and answers: the URL of an endpoint for OpenAI's chat
    completions and the model's name, `https://host/v1#name`. With it, texts that agents have seen, said and kept leave
    this machine. Its option `timeout_seconds` (30) is the limit of a request:
    `https://host/v1?timeout_seconds=60#name`. By default, rules answer, offline."""
    model_api_key: SecretStr | None = None
    """The API key of that model. It is not sent to any other host: the key for another host is in the environment
    variable that the option `api_key_variable` of its URL names."""
    model_reflect: str | None = None
    """The model that answers due reflections, if it is not that of `model`: a URL with a name, or `off` for the rule
    that quotes events."""
    model_extract: str | None = None
    """The model that extracts facts from texts, if it is not that of `model`: a URL with a name, or `off` for the rule
    for English and Chinese."""
    model_summarize: str | None = None
    """The model that summarises the beginning of long conversations, if it is not that of `model`: a URL with a name,
    or `off` for the rule that quotes messages."""
    model_answer: str | None = None
    """The model that answers `long_term.reflect`, if it is not that of `model`: a URL with a name, or `off` for the
    rule that quotes entries."""


_OTHER_PREFIXES = ("MEMORY_INDEX", "AGX_WORKSPACE_ROOT")
"""How the names of the variables in `other_settings` begin. That module is imported only if there is one."""


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return f"{Settings.model_config['env_prefix']}{name.upper()}"


def read_file(variable: str) -> str | None:
    """The text of the file that the environment variable `<variable>_FILE` names, without a line break at its end; None
    if there is no such variable. Raises `SettingsError` if the file cannot be read, or if `variable` is set too."""
    file = os.environ.get(f"{variable}_FILE")
    if file is None:
        return None
    if variable in os.environ:
        raise SettingsError(f"{variable} and {variable}_FILE are both set: unset one of them")
    try:
        return Path(file).read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        # Without the path, in which somebody may have put the secret itself.
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise SettingsError(f"{variable}_FILE: the file that it names cannot be read: {reason}") from None


def _folder(home: object) -> Path:
    if isinstance(home, str | PathLike):
        path = os.fspath(home)
        if isinstance(path, str) and path and "\0" not in path and is_text(path):
            return Path(path)
    raise InvalidArgument("home: should be the path of a folder, valid text", path="home", rule="path_type")
