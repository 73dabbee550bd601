"""Where a memory lives: settings from the environment (`RECALLOG_…`) or from code."""

from os import PathLike
from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from recallog_schemas import limits


class Settings(BaseSettings):
    """Settings of one memory. Each can be given as an environment variable `RECALLOG_<NAME>`."""

    model_config = SettingsConfigDict(env_prefix="RECALLOG_", frozen=True)

    @classmethod
    def of_folder(cls, home: str | PathLike[str] | None) -> Self:
        """The settings of a memory in the folder `home`; None: as the environment says."""
        return cls() if home is None else cls(home=Path(home), ledger=None, views=None)

    home: Path = Path(".recallog")
    """The folder of the embedded form: the ledger, and the views that can be built from it."""
    ledger: str | None = None
    """The ledger of a cluster: `kafka://host:9092/recallog.events?partitions=32&replication=3`. Needs `views` too."""
    views: str | None = None
    """Where a cluster's workers keep the views: `redis://host:6379/0`. Needs `ledger` too."""
    index: str | None = None
    """The semantic index: `embedded` (in the folder, kept by a process of its own), `off`, or the URL of a Qdrant
    server (`http://host:6333`). Unset: embedded for a memory in a folder, off on a cluster."""
    embedder: str = "minilm"
    """Who makes the vectors of a new index: `minilm`, `sentence-transformers[:<folder>]`, `onnx:<folder>`, or
    `http(s)://host/v1#model`, to which the texts are sent. An index that is there keeps its own: `recallog reindex`."""
    embedder_api_key: SecretStr | None = None
    index_token_vectors: bool = True
    """Whether a new index keeps a vector for each content word-piece, for late interaction: some 10 KB a memory."""
    after_wait_seconds: float = Field(default=10.0, gt=0)
    """How long a question on a cluster waits for the workers to reach the position it names."""
    worker_host: str = "127.0.0.1"
    """Where a worker serves `/health` and `/metrics`."""
    worker_port: int = Field(default=6066, ge=1, le=65535)
    lock_wait_seconds: float = Field(default=limits.LOCK_WAIT_SECONDS, gt=0)
    """How long to wait for another process before giving up."""
    log_events: int = Field(default=limits.LOG_EVENTS_KEPT, ge=limits.LOG_EVENTS_KEPT, le=limits.LOG_EVENTS_MAX)
    """How many of the newest events the views keep of each agent, and of what its space shares: salience scores so
    many. All processes of one folder need the same; raising it builds the views again."""
    reflector: str = "extractive"
    """Who answers when a reflection is due: `extractive` (offline, quotes the events), or the URL of an endpoint that
    speaks OpenAI's chat completions. With a URL what the agents have seen leaves this machine."""
    reflector_model: str | None = None
    """The endpoint's model."""
    reflector_api_key: SecretStr | None = None
    reflector_timeout_seconds: float = Field(default=30.0, gt=0)
