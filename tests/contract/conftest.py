"""A memory that recalls, and the Qdrant of the engine's tests.

Qdrant is from RECALLOG_TEST_QDRANT, else from Docker, else the client's local mode, which is a different
implementation, in Python. The summary says if it was used.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
import yaml

from live.conftest import docker_answers
from recallog import Memory
from recallog_projections.index.engines.edge import EdgeEngine
from support import notices
from support.indexing import indexing_of, memory_with

_CONTAINER_SECONDS = 120


@pytest.fixture(params=["index", "words"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Memory:
    """A memory with an index in this process, and one that recalls by words."""
    if request.param == "words":
        return Memory.in_memory()
    engine = EdgeEngine(tmp_path / "engine")
    return memory_with(tmp_path, lambda ledger: indexing_of(ledger, engine))


@pytest.fixture(scope="session")
def qdrant_url(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """The address of a real Qdrant, shared by the session, so that tests use unique prefixes; None if there is none."""
    if given := os.environ.get("RECALLOG_TEST_QDRANT"):
        yield given
    elif docker_answers():
        with _container() as url:
            yield url
    else:
        notices.add(
            request.config,
            "the engine's tests did NOT run on a Qdrant server",
            "the client's local mode was used: set RECALLOG_TEST_QDRANT=http://host:6333, or start Docker",
        )
        yield None


@cache
def _image() -> str:
    """The image in docker-compose.yml."""
    compose = Path(__file__).parents[2] / "docker-compose.yml"
    return str(yaml.safe_load(compose.read_text())["services"]["qdrant"]["image"])


@contextmanager
def _container() -> Iterator[str]:
    with warnings.catch_warnings(action="ignore"):
        from testcontainers.core.container import DockerContainer
        from testcontainers.core.wait_strategies import LogMessageWaitStrategy

    container = DockerContainer(_image()).with_exposed_ports(6333)
    ready = LogMessageWaitStrategy("Qdrant HTTP listening on").with_startup_timeout(_CONTAINER_SECONDS)
    with container.waiting_for(ready):
        yield f"http://{container.get_container_host_ip()}:{container.get_exposed_port(6333)}"
