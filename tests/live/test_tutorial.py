"""The tutorial of a cluster, on a real Kafka and a real Redis."""

import os
from pathlib import Path

import pytest

from live.conftest import NewRedis
from recallog_tools.transcripts import CLUSTER, TUTORIALS, run_steps, steps_of, with_addresses
from support.transcripts import environment_in, recorded

pytestmark = pytest.mark.models("all")


def test_each_command_of_the_tutorial_prints_what_its_transcript_shows(
    kafka: str, own_redis: NewRedis, tmp_path: Path
) -> None:
    (page,) = (page for page in TUTORIALS if page.stem == CLUSTER)
    ledger = f"kafka://{kafka}/recallog.tutorial-{os.getpid()}?partitions=8&replication=1"
    steps = with_addresses([step for step in steps_of(page) if not step.is_setup], ledger, own_redis().url)
    assert run_steps(steps, tmp_path, environment_in(tmp_path)) == recorded(page)
