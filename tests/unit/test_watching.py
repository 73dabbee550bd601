"""The alert rules, their unit tests, their runbook and the dashboard."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from support import notices, promql

RUNBOOK = (promql.DEPLOY.parent / "docs" / "alerts.md").read_text()
TESTS = promql.DEPLOY / "prometheus" / "alerts_test.yml"
HEADINGS = {re.sub(r"[^a-z -]", "", each.lower()).replace(" ", "-") for each in re.findall(r"^## (.+)$", RUNBOOK, re.M)}
ROWS = ("Overview", "Partitions", "Reactors", "HTTP", "Index")


def promtool(config: pytest.Config, *arguments: str) -> None:
    """Run promtool. Without it the test is skipped, and with CI=true it fails."""
    if (program := shutil.which("promtool")) is None:
        if os.environ.get("CI", "").lower() in {"1", "true"}:
            pytest.fail("promtool is missing: apt install prometheus", pytrace=False)
        notices.add(config, "alert rules were NOT tested", "no promtool: apt install prometheus")
        pytest.skip("no promtool")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_runbook_entry_and_each_entry_an_alert() -> None:
    named = {rule["annotations"]["runbook_url"].removeprefix("docs/alerts.md#"): rule["alert"] for rule in promql.RULES}
    assert named.keys() == HEADINGS
    assert len(named) == len(promql.RULES)
    assert all(f"`{alert}`" in RUNBOOK for alert in named.values())


def test_each_alert_has_a_summary_a_severity_and_a_unit_test() -> None:
    tested = TESTS.read_text()
    for rule in promql.RULES:
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"]["summary"].endswith(".")
        assert re.search(rf"alertname: {rule['alert']}\n\s+exp_alerts:", tested), rule["alert"]


def test_the_jobs_for_kubernetes_are_valid(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """Some builds of promtool do not know Kubernetes, so that the discovery itself is left out."""
    configuration = yaml.safe_load(promql.ALERTS.with_name("kubernetes.yml").read_text())
    for job in configuration["scrape_configs"]:
        for discovery in job.pop("kubernetes_sd_configs", ()):
            assert discovery.keys() == {"role", "namespaces"}
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    promtool(pytestconfig, "check", "config", "--syntax-only", str(tmp_path / "prometheus.yml"))


def test_the_rules_are_valid_and_fire_when_they_must(pytestconfig: pytest.Config) -> None:
    promtool(pytestconfig, "check", "rules", str(promql.ALERTS))
    promtool(pytestconfig, "check", "config", "--syntax-only", str(promql.ALERTS.with_name("prometheus.yml")))
    promtool(pytestconfig, "test", "rules", str(TESTS))


@pytest.mark.parametrize(("name", "expression"), promql.list_expressions().items())
def test_each_expression_is_valid(name: str, expression: str) -> None:
    assert promql.find_selectors(expression), name


def test_the_dashboard_has_its_rows_and_panels_that_do_not_overlap() -> None:
    assert tuple(panel["title"] for panel in promql.PANELS if panel["type"] == "row") == ROWS
    assert len({panel["id"] for panel in promql.PANELS}) == len(promql.PANELS)
    cells = [
        (x, y)
        for panel in promql.PANELS
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
