"""The short form of `make chaos`: kill -9 of everything for a minute, and a checker that shares no code with the fold.

A failing run prints its seed; `RECALLOG_TEST_SEED=<seed>` makes the same choices again (the scheduling of the system
cannot be repeated).
"""

import os
from pathlib import Path

import pytest

from chaos.campaign import Campaign
from chaos.clocks import compile_shim
from chaos.report import Show
from chaos.run import new_seed, run
from live.conftest import NewKafka, NewRedis

pytestmark = pytest.mark.models("all")


def test_repeated_kills_lose_duplicate_reorder_and_miscount_nothing(
    own_kafka: NewKafka, own_redis: NewRedis, tmp_path: Path
) -> None:
    seed = int(os.environ.get("RECALLOG_TEST_SEED") or new_seed())
    print(f"seed: RECALLOG_TEST_SEED={seed}; logs, histories and journal: {tmp_path}")
    campaign = Campaign.quick(seed)
    with Show(campaign) as show:
        report = run(campaign, tmp_path, own_kafka(), own_redis(fsync="always"), show, compile_shim(tmp_path))
    report.print()
    assert report.findings == []
    assert report.counts.service_kills == campaign.kills
    assert report.counts.tally.acknowledged == campaign.events
    assert report.counts.tally.operations["ok"] > 0
    assert report.copies.started > 0
    assert report.facts is not None
    assert report.facts.spaces > campaign.spaces
