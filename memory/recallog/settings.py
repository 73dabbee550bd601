"""Where a memory lives: settings from the environment (`RECALLOG_…`) or from code."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from recallog_schemas import limits


class Settings(BaseSettings):
    """Settings of one memory. Each can be given as an environment variable `RECALLOG_<NAME>`."""

    model_config = SettingsConfigDict(env_prefix="RECALLOG_", frozen=True)

    home: Path = Path(".recallog")
    """The folder of the embedded form: the ledger, and the views that can be built from it."""
    lock_wait_seconds: float = Field(default=limits.LOCK_WAIT_SECONDS, gt=0)
    """How long to wait for another process before giving up."""
