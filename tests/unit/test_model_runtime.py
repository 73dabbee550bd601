"""The runtime of the models tells nobody what it does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.models()

EMBED = """
from recallog_projections.index.embedders.registry import embedder
from recallog_projections.index.embedders.embedder import Passage
assert embedder("minilm").embed([Passage("The mill burned.")])[0].readable
"""


def test_embedding_leaves_no_id_of_a_device_behind(tmp_path: Path) -> None:
    # In CI the package collects nothing, whatever the settings are.
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "GITHUB_ACTIONS")}
    environment |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    subprocess.run([sys.executable, "-c", EMBED], env=environment, check=True, timeout=120)
    assert list(tmp_path.rglob("*")) == []
