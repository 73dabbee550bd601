"""The sizing model finds costs that it is given, and its plans grow with what they are for."""

import re
from pathlib import Path

import pytest
from benchmarks.scale import FEATURES, Costs, Prices, Run, Shape, Used, _values, plan, shapes

from recallog_schemas import limits

COSTS = {
    "topic_bytes": (40.0, 0.3),
    "redis_bytes": (42.0, 220.0, 2.0, 470.0),
    "worker_seconds": (20e-6, 15e-9),
    "redis_seconds": (2.4e-6, 0.0),
}


def used(shape: Shape) -> Used:
    """What `COSTS` say exactly."""
    return Used(
        *(
            sum(cost * value for cost, value in zip(costs, _values(shape, FEATURES[name]), strict=True))
            for name, costs in COSTS.items()
        )
    )


def test_a_fit_finds_the_costs_of_each_feature_and_predicts_another_shape() -> None:
    fitted, unseen = shapes(20)
    costs = Costs([Run(shape, used(shape)) for shape in fitted])
    for name, expected in COSTS.items():
        assert [*costs.of[name].values()] == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert costs.predict(unseen) == pytest.approx(used(unseen), rel=1e-6)


def test_no_cost_is_negative() -> None:
    falling = [Run(Shape(1_000, 10, 1, size), Used(100.0 / size, 1.0, 1.0, 1.0 / size)) for size in (10, 100, 1_000)]
    assert min(cost for costs in Costs(falling).of.values() for cost in costs.values()) >= 0


def test_logs_keep_a_bounded_number_of_events() -> None:
    assert Shape(100, 10, 1, 1).kept == 100
    assert Shape(10**9, 10, 2, 1).kept == 20 * limits.LOG_EVENTS_KEPT


def test_a_plan_has_room_for_its_peak_and_its_views() -> None:
    costs = Costs([Run(shape, used(shape)) for shape in shapes(20)[0]])
    plans = [plan(costs, Shape(10**n, 10 ** (n - 5), 10, 300), 30, 10, 64, Prices()) for n in range(6, 11)]
    for each in plans:
        assert each.peak * COSTS["worker_seconds"][0] < each.workers
        assert 2 * each.redis_gib < each.redis_servers * 64
        assert each.partitions >= 4 * max(each.workers, each.redis_servers)
        assert each.partitions.bit_count() == 1
    assert [each.month for each in plans] == sorted(each.month for each in plans)
    assert plans[-1].redis_servers > plans[0].redis_servers


def test_the_plans_of_the_page_follow_from_the_costs_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sizing.md").read_text()
    costs = Costs([Run(shape, used(shape)) for shape in shapes(20)[0]])
    for name, cost, unit, feature in re.findall(r"^  (\w+ \w+) +([\d.]+) (bytes|µs) +(\S.*)$", page, re.MULTILINE):
        costs.of[name.replace(" ", "_")][feature] = float(cost) / (1e6 if unit == "µs" else 1)
    rows = re.findall(r"^  1e(\d+) +(.+)$", page, re.MULTILINE)
    assert len(rows) == 5
    for exponent, row in rows:
        expected = plan(costs, Shape(10 ** int(exponent), 10 ** (int(exponent) - 5), 10, 300), 365, 10, 64, Prices())
        # The page has three digits of each cost.
        assert [float(cell.replace(",", "")) for cell in row.split()] == pytest.approx(expected[1:], rel=0.02, abs=0.5)
