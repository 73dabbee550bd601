"""What an event and a question cost does not grow unnoticed: counts of calls, rows, bytes and fetches are recorded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDED = json.loads((ROOT / "benchmarks" / "counts.json").read_text())
GROWTH_MAX = 1.03
ADVICE = "Make it cheaper. If the cost is meant, run `make counts`, and commit benchmarks/counts.json with the change"


@pytest.mark.skipif(
    RECORDED["python"] != "{}.{}".format(*sys.version_info),
    reason=f"calls are counted under Python {RECORDED['python']}: another version makes other calls",
)
def test_no_count_has_grown_by_more_than_3_percent(tmp_path: Path) -> None:
    counted = tmp_path / "counts.json"
    command = [sys.executable, "-m", "benchmarks.counting", "--into", str(counted)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=600)
    recorded, counts = RECORDED["counts"], json.loads(counted.read_text())["counts"]
    assert {name: list(of) for name, of in counts.items()} == {name: list(of) for name, of in recorded.items()}, ADVICE
    grown = [
        f"{workload}, {name}: {count:,}, and {recorded[workload][name]:,} is recorded"
        for workload, of in counts.items()
        for name, count in of.items()
        if count > recorded[workload][name] * GROWTH_MAX
    ]
    assert grown == [], ADVICE
