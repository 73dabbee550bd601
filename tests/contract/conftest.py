"""A memory that recalls, and the Qdrant of the engine's tests.

Qdrant is from QDRANT_URL, else from Docker. Without both, the tests run on a stand-in, and the summary says so.
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
from support import notices, qdrant_stand_in
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
def qdrant_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a Qdrant, or of a stand-in, shared by the session, so that tests use unique prefixes."""
    if given := os.environ.get("QDRANT_URL"):
        yield given
    elif docker_answers():
        with _container() as url:
            yield url
    else:
        notices.add(
            request.config,
            "the engine's tests did NOT run on a Qdrant server",
            "a stand-in was used, which checks the form of requests: set QDRANT_URL=http://host:6333, or start Docker",
        )
        with qdrant_stand_in.serve() as stand_in:
            yield stand_in.url


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
