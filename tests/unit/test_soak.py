"""The soak run: it finds a leak and names it, and nothing else, and its trends follow from the samples alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from soak import trends
from soak.run import Outcome, Plan, Sample
from soak.sampling import PARTS, Usage, disk_bytes, usage

TESTS = Path(__file__).parents[1]
HOURS = 0.01
MB = 1 << 20
MINUTES = [60.0 * minute for minute in range(120)]


@pytest.mark.models("all")
def test_a_run_of_a_minute_names_the_leak_of_one_process_and_nothing_else() -> None:
    command = [sys.executable, "-m", "soak", "--hours", str(HOURS), "--leak", "descriptors", "--json"]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}, check=False, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert [each["series"] for each in report["trends"] if each["grows"]] == ["descriptors of reader"]
    assert len(report["problems"]) == 1, report["problems"]
    assert report["problems"][0].startswith("descriptors of reader: ")
    assert report["verified"].splitlines()[-1].startswith("clean ")
    assert all(each["counts"]["actions"] > 0 for each in report["reports"].values())
    assert report["reports"]["client"]["counts"]["followed"] > 0


def memory(values: list[float], limit: float = trends.MEMORY_MB) -> trends.Trend:
    return trends.growth("memory of reader", MINUTES, values, limit, "MB")


def test_a_process_that_grows_by_a_few_hundred_bytes_an_event_is_found() -> None:
    events_a_minute, leaked_bytes = 720, 400
    grows = memory([80 + minute * events_a_minute * leaked_bytes / MB for minute in range(120)])
    assert grows.grows
    assert grows.growth == pytest.approx(119 * 720 * 400 / MB)


def test_a_process_whose_memory_comes_and_goes_does_not_grow() -> None:
    assert not memory([80.0 + 60 * (minute % 10 == 3) for minute in range(120)]).grows
    assert not memory([80.0 + minute % 15 for minute in range(120)]).grows


def test_a_peak_at_the_end_is_not_a_trend() -> None:
    assert not memory([80.0] * 110 + [200.0] * 10).grows


EVENTS = [720.0 * minute for minute in range(120)]


def test_disk_that_grows_with_events_is_as_it_should_be() -> None:
    assert not trends.per_event("disk of ledger", EVENTS, [2_000 * each for each in EVENTS]).grows


def test_disk_that_grows_faster_than_events_is_found() -> None:
    assert trends.per_event("disk of index", EVENTS, [each * each / 20 for each in EVENTS]).grows


def test_files_that_are_written_ahead_and_merged_do_not_grow() -> None:
    sawtooth = [1_000 * each + 16 * MB * (minute % 7) / 7 for minute, each in enumerate(EVENTS)]
    assert not trends.per_event("disk of views", EVENTS, sawtooth).grows


def outcome(index_mb: list[float], events: list[float]) -> Outcome:
    """A run in which only the memory of the process of the index changes."""

    def sample(minute: int) -> Sample:
        used = {name: Usage(1, 100.0, 80.0, 10, 4, 0.0) for name in ("writer", "reader", "server", "client")}
        used["index"] = Usage(2, 500.0, index_mb[minute], 20, 10, 0.0)
        return Sample(MINUTES[minute], int(events[minute]), used, dict.fromkeys(PARTS, 1 * MB))

    return Outcome(Plan(2.0), [sample(minute) for minute in range(120)])


def test_the_process_of_the_index_may_grow_with_events_and_no_more() -> None:
    with_events = [250 + each * 1_000 / MB for each in EVENTS]
    assert outcome(with_events, EVENTS).problems() == []
    (problem,) = outcome(with_events, [each / 100 for each in EVENTS]).problems()
    assert problem.startswith("memory of index: ")


def test_a_process_is_measured(tmp_path: Path) -> None:
    before = usage(os.getpid())
    with (tmp_path / "open").open("w"):
        after = usage(os.getpid())
    assert before is not None
    assert after is not None
    assert after.descriptors == before.descriptors + 1
    assert after.memory_mb < after.resident_mb
    assert usage(2**22 + 1) is None


def test_the_files_of_a_folder_are_counted_by_part(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    for name in ("ledger.db", "ledger.db-wal", "views.db", "index/rows.db", "keys.json"):
        (tmp_path / name).write_bytes(b"x" * 8192)
    assert disk_bytes(tmp_path) == {"ledger": 16384, "views": 8192, "index": 8192, "others": 8192}
