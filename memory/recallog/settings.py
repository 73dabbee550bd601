"""Where a memory lives: settings from the environment (`RECALLOG_…`) or from code."""

from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from recallog_schemas import limits


class Settings(BaseSettings):
    """Settings of one memory. Each can be given as an environment variable `RECALLOG_<NAME>`."""

    model_config = SettingsConfigDict(env_prefix="RECALLOG_", frozen=True)

    home: Path = Path(".recallog")
    """The folder of the embedded form: the ledger, and the views that can be built from it."""
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
