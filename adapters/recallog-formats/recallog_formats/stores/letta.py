"""Letta: agent files, with blocks and messages of agents."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from recallog import InvalidArgument
from recallog_formats.stores.conversations import conversation_rows
from recallog_formats.stores.json_files import list_in, load_json
from recallog_formats.stores.store import Destination, Fields, StoreFormat, StoreRow, left_out_rows, make_item, map_row

_EXPECTED = 'an agent file: {"agents": [{"messages", "block_ids", ...}], "blocks": [...], ...}'
_LEFT_OUT = {
    "groups": "groups of agents have no counterpart",
    "files": "read files with recallog workspace import",
    "sources": "read files with recallog workspace import",
    "tools": "tools have no counterpart",
    "mcp_servers": "servers of tools have no counterpart",
}


def _read(path: Path, into: Destination) -> Iterator[StoreRow]:
    document = load_json(path, _EXPECTED)
    agents = document.get("agents") if isinstance(document, dict) else None
    if not isinstance(agents, list):
        raise InvalidArgument(f"{path} is not a store of Letta: expected {_EXPECTED}", path="PATH")
    owners: dict[str, list[str]] = {}
    for number, agent in enumerate(agents, 1):
        if not isinstance(agent, Mapping):
            yield map_row(f"agent {number}", agent, _block, into)
            continue
        name = str(agent.get("name") or into.agent)
        for block in list_in(agent, "block_ids") or ():
            owners.setdefault(str(block), []).append(name)
        system = {"system": agent["system"]} if agent.get("system") else {}
        session = str(agent.get("id", number))
        yield from conversation_rows(session, list_in(agent, "messages") or (), replace(into, agent=name), system)
    for number, block in enumerate(list_in(document, "blocks") or (), 1):
        key = block.get("id", number) if isinstance(block, Mapping) else number
        for owner in owners.get(str(key), [into.agent]):
            yield map_row(f"block {key}", block, _block, replace(into, agent=owner))
    for name, why in _LEFT_OUT.items():
        yield from left_out_rows(name, document.get(name), why)


def _block(row: Fields, into: Destination) -> dict[str, Any]:
    return make_item(into, ["working"], row["label"], row["value"], row.get("updated_at"))


STORE = StoreFormat(
    "letta",
    "an agent file (.af)",
    "messages; with --trust agent blocks and the system prompt",
    "tools, settings of models, files, groups; archival memory, which agent files lack",
    _read,
)
