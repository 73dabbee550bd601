"""The HTTP routes of operations, which the server and its clients derive from the declarations."""

from typing import Any

import pytest

from recallog import Memory
from recallog.operations.routes import routes

ROUTES = routes(Memory)


@pytest.mark.models("prompt")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("episodic", "GET /v1/spaces/{space}/agents/{agent}/episodic"),
        ("agent_settings", "GET /v1/spaces/{space}/agents/{agent}/settings"),
        ("salient", "GET /v1/spaces/{space}/agents/{agent}/salient"),
        ("recall", "POST /v1/spaces/{space}/agents/{agent}/recall"),
        ("search", "POST /v1/spaces/{space}/agents/{agent}/search"),
        ("context", "POST /v1/spaces/{space}/agents/{agent}/context"),
        ("entries", "POST /v1/spaces/{space}/agents/{agent}/entries"),
        ("items.put", "POST /v1/spaces/{space}/agents/{agent}/items/put"),
        ("long_term.list", "GET /v1/spaces/{space}/agents/{agent}/long-term/list"),
        ("long_term.forget", "POST /v1/spaces/{space}/agents/{agent}/long-term/forget"),
        ("scene", "GET /v1/spaces/{space}/scene"),
        ("resume", "GET /v1/spaces/{space}/resume"),
        ("spaces", "GET /v1/spaces"),
        ("pending", "GET /v1/pending"),
        ("publish_many", "POST /v1/publish-many"),
        ("admin.status", "GET /v1/status"),
        ("admin.plan_rebuild", "GET /v1/plan-rebuild"),
        ("admin.abort_rebuild", "POST /v1/admin/abort-rebuild"),
        ("admin.rebuild", "POST /v1/admin/rebuild"),
    ],
)
def test_a_route_follows_from_the_declaration(name: str, expected: str) -> None:
    assert f"{ROUTES[name].method} {ROUTES[name].path}" == expected


def test_each_route_is_of_one_operation() -> None:
    assert len({(route.method, route.path) for route in ROUTES.values()}) == len(ROUTES)


def test_what_changes_something_is_never_a_get() -> None:
    assert not [name for name, route in ROUTES.items() if route.method == "GET" and not route.operation.read_only]


def test_work_for_all_agents_that_reports_its_progress_is_a_job() -> None:
    jobs = {name for name, route in ROUTES.items() if route.is_job}
    of_operators = {"admin.verify", "admin.repair", "admin.rebuild", "admin.reindex", "admin.copy"}
    of_operators |= {"admin.retry_dead_letters"}
    assert jobs == {*of_operators, "react", "erase"}


@pytest.mark.models("items")
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        (
            "episodic",
            {"space": "acme/village", "agent": "baker", "window": 3, "as_of": None, "after": "0:41"},
            ("/v1/spaces/acme%2Fvillage/agents/baker/episodic", [("window", "3"), ("after", "0:41")], None),
        ),
        (
            "timeline",
            {"space": "v", "agent": "b", "kinds": ["agent.spoke", "a.b"], "before": {"partition": 0, "offset": 7}},
            (
                "/v1/spaces/v/agents/b/timeline",
                [("kinds", "agent.spoke"), ("kinds", "a.b"), ("before", "0:7")],
                None,
            ),
        ),
        (
            "recall",
            {"space": "v", "agent": "b", "query": "who?", "wait_index": True},
            ("/v1/spaces/v/agents/b/recall", [], {"query": "who?", "wait_index": True}),
        ),
        ("admin.status", {}, ("/v1/status", [], None)),
        (
            "items.list",
            {"space": "v", "agent": "b", "namespace": ["notes", "a/b"], "newest_first": False},
            (
                "/v1/spaces/v/agents/b/items/list",
                [("namespace", "notes"), ("namespace", "a/b"), ("newest_first", "false")],
                None,
            ),
        ),
    ],
)
def test_a_request_has_names_in_its_path_and_the_rest_in_its_query_or_body(
    name: str, arguments: dict[str, Any], expected: tuple[str, list[tuple[str, str]], Any]
) -> None:
    assert ROUTES[name].request(arguments) == expected
