"""What rules and panels name: the selectors in their expressions."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
DASHBOARD = DEPLOY / "grafana" / "recallog.json"

RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]
]
PANELS: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]


def list_expressions() -> dict[str, str]:
    """The expressions of all rules and panels, each by the name of its rule, or its panel with a number."""
    of_rules = {rule["alert"]: rule["expr"] for rule in RULES}
    of_panels = {
        f"{panel['title']} {target['refId']}": target["expr"].replace("$__rate_interval", "5m")
        for panel in PANELS
        for target in panel.get("targets", ())
    }
    return of_rules | of_panels


def find_selectors(expression: str) -> dict[str, list[promql_parser.Matcher]]:
    """The names of the series in an expression, each with its matchers. A name that is used twice has those of both."""
    found: dict[str, list[promql_parser.Matcher]] = {}

    def visit(node: promql_parser.Expr) -> bool:
        selector = node.vector_selector if isinstance(node, promql_parser.MatrixSelector) else node
        if isinstance(selector, promql_parser.VectorSelector):
            found.setdefault(str(selector.name), []).extend(selector.matchers.matchers)
        return True

    promql_parser.walk(promql_parser.parse(expression), pre_visit=visit)
    return found


def find_grouped(expression: str) -> Iterator[str]:
    """The labels by which an expression groups or joins series."""
    grouped: set[str] = set()

    def visit(node: promql_parser.Expr) -> bool:
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
            grouped.update(node.modifier.labels)
        return True

    promql_parser.walk(promql_parser.parse(expression), pre_visit=visit)
    yield from sorted(grouped)
