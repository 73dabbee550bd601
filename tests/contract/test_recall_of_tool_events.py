"""Recall in a coding session: commands, paths, flags and errors are found by their exact strings."""

from typing import Any

from recallog import Event, Memory
from recallog.retrieval.channels import Channel
from support.events import event, run
from support.indexing import indexed

PASSED = "\n".join(f"tests/unit/test_part_{number}.py ........ [{number:2d}%]" for number in range(60))
"""More than the text of a tool event shows: errors in the middle of a long output are in its details only."""


def said(key: str, text: str) -> Event:
    return event(id=key, payload={"text": text})


def used(key: str, tool: str, arguments: Any, result: str, *, ok: bool = True) -> Event:
    return event(id=key, kind="tool.used", payload={"tool": tool, "arguments": arguments, "result": result, "ok": ok})


def shell(key: str, command: str, result: str, *, ok: bool = True) -> Event:
    return used(key, "shell", {"command": command}, result, ok=ok)


SESSION = [
    said("task", "The bakery's order service rounds prices wrongly. Please find out why and fix it."),
    shell("list", "ls -la src/orders", "basket.py\nprices.py\nreceipts.py\n__init__.py"),
    used("open-prices", "open", {"path": "src/orders/prices.py", "line": 40}, "def round_price(amount):\n    ..."),
    used("open-basket", "open", {"path": "src/orders/basket.py", "line": 12}, "class Basket:\n    ..."),
    said("plan", "The prices are rounded in two places. I start with the tests of the orders."),
    shell("missing", "pytest -q tests/orders", "E   ModuleNotFoundError: No module named 'moneylib'", ok=False),
    shell("install", "pip install --no-cache moneylib==2.4.1", "Successfully installed moneylib-2.4.1"),
    shell("failing", "pytest -x tests/orders", "FAILED tests/orders/test_prices.py::test_half_cents", ok=False),
    said("cause", "Half a cent is cut instead of rounded to the even cent."),
    used(
        "edit-prices",
        "edit",
        {"path": "src/orders/prices.py", "search": "int(amount)", "replace": "round_half_even(amount)"},
        "1 replacement",
    ),
    used("edit-receipts", "edit", {"path": "src/orders/receipts.py", "search": "%d", "replace": "%s"}, "1 replacement"),
    shell(
        "all", "pytest --maxfail=3", f"{PASSED}\nKeyError: 'VAT_RATE_FOOD'\n{PASSED}\n1 failed, 240 passed", ok=False
    ),
    used("edit-settings", "edit", {"path": "config/settings.toml", "search": "", "replace": "food = 0.07"}, "ok"),
    shell("passing", "pytest -x tests/orders", "12 passed in 0.31s"),
    shell("types", "mypy --strict src", "Success: no issues found in 9 source files"),
    shell("commit", "git commit -am 'Round half cents to even'", "[main 7be41c9] Round half cents to even"),
    said("done", "Prices are rounded to the even cent now, and all tests of the orders pass."),
]

QUESTIONS = [
    ("Where did we edit receipts.py?", {"edit-receipts"}),
    ("Where did we edit src/orders/prices.py?", {"edit-prices"}),
    ("When was /home/ada/bakery/src/orders/basket.py opened?", {"open-basket"}),
    ("What did `pytest -x` say?", {"failing", "passing"}),
    ("Which command failed with ModuleNotFoundError?", {"missing"}),
    ("Which command failed with a module not found error?", {"missing"}),
    ("What was installed with --no-cache?", {"install"}),
    ("Where does round_half_even come from?", {"edit-prices"}),
    ("Which commit is 7be41c9?", {"commit"}),
    ("Which test is test_half_cents in?", {"failing"}),
    ("What said VAT_RATE_FOOD?", {"all"}),
    ("What did pytest --maxfail show?", {"all"}),
    ("What did mypy --strict find?", {"types"}),
    ("Which version was 2.4.1?", {"install"}),
    ("What changed in settings.toml?", {"edit-settings"}),
]


async def first_hits(memory: Memory, count: int, channels: list[Channel] | None = None) -> dict[str, list[str]]:
    """The ids of the first hits of each question."""
    async with memory:
        await memory.publish_many(SESSION)
        await indexed(memory)
        return {
            question: [
                hit.event.id
                for hit in (await memory.recall("village", "baker", question, top_k=count, channels=channels)).hits
            ]
            for question, _ in QUESTIONS
        }


def test_exact_strings_find_their_events_first(memory: Memory) -> None:
    found = run(first_hits(memory, 2))
    assert {question: ids for question, ids in found.items() if not dict(QUESTIONS)[question] & set(ids)} == {}


def test_the_events_of_all_runs_of_a_command_are_found(memory: Memory) -> None:
    found = run(first_hits(memory, 4))
    assert {"failing", "passing"} <= set(found["What did `pytest -x` say?"])


def test_what_exact_strings_add_is_a_part_of_the_score(memory: Memory) -> None:
    async def scenario() -> None:
        async with memory:
            await memory.publish_many(SESSION)
            await indexed(memory)
            hits = (await memory.recall("village", "baker", "src/orders/prices.py", top_k=20)).hits
            parts = {hit.event.id: hit.parts.get("exact", 0.0) for hit in hits}
            assert parts["edit-prices"] > parts["edit-receipts"] > parts.get("task", 0.0) == 0.0

    run(scenario())
