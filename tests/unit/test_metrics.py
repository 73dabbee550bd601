"""The metrics of the server and of a worker: names by Prometheus' conventions, each in its page."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from recallog_projections.stores.store import Outcome
from recallog_service import metrics as of_worker
from recallog_service.http import metrics as of_server
from recallog_streams.projector import ProcessedBatch

DOCS = Path(__file__).parents[2] / "docs"


def exposed() -> Iterator[tuple[str, Any]]:
    """The page that names a family, and the family. Each has a sample."""
    server = of_server.ServerMetrics()
    server.begun()
    server.count_request("GET", "/v1/spaces", 200, 0.1)
    server.count_stalled()
    worker = of_worker.WorkerMetrics()
    worker.count_batch(ProcessedBatch(0, 7, 0.1, Outcome.APPLIED))
    worker.count_messages(1, False)
    worker.count_reaction("agent.reflected", "answered", 0.1)
    for page, text in (("telemetry.md", server.expose(1, 2, 3)), ("cluster/processes.md", worker.expose([]))):
        for family in text_string_to_metric_families(text.decode()):
            if not family.name.endswith("_created"):
                yield page, family


FAMILIES = list(exposed())


@pytest.mark.parametrize(("page", "family"), FAMILIES, ids=[family.name for _, family in FAMILIES])
def test_a_name_follows_the_conventions_and_is_in_its_page(page: str, family: Any) -> None:
    assert re.fullmatch("recallog(_[a-z]+)+", family.name)
    assert family.documentation.endswith(".")
    shown = f"{family.name}_total" if family.type == "counter" else family.name
    if family.type == "histogram":
        assert family.name.endswith("_seconds")
    assert any(f"`{shown}`" in (DOCS / each).read_text() for each in (page, "watching.md"))
    assert {label for sample in family.samples for label in sample.labels} <= {
        *("method", "route", "status", "le"),
        *("partition", "views", "state", "outcome", "kind", "repeated", "of"),
    }


def test_a_dropped_stream_is_counted_once_however_often_the_metrics_are_read() -> None:
    metrics = of_server.ServerMetrics()
    metrics.count_stalled()
    for fell_behind in (0, 2, 2, 3):
        text = metrics.expose(0, fell_behind, 0).decode()
        assert f"recallog_http_streams_dropped_total {fell_behind + 1}.0" in text


def test_no_label_of_the_server_has_a_text_of_a_client() -> None:
    metrics = of_server.ServerMetrics()
    for number in range(100):
        for route in ("/v1/spaces", ""):
            metrics.begun()
            metrics.count_request(f"METHOD{number}", route, 405, 0.1)
    methods = set(re.findall('method="([^"]*)"', metrics.expose(0, 0, 0).decode()))
    assert methods == {of_server.OTHER}
