"""The fold of `memory.metered`: what an agent may spend on entries, and what it has spent."""

import msgspec

from recallog_projections.models.long_term import linking, tables
from recallog_projections.rows import Rows
from recallog_schemas import Record


def apply(rows: Rows, record: Record) -> None:
    """Add units to the balance, or subtract them. An agent has a balance from its first grant on; a use may overdraw
    it."""
    event = record.event
    agent = linking.agent_of(rows, event.space, event.agent)
    units, eur = event.payload.get("units"), event.payload.get("eur")
    if units is not None:
        units = float(units)
        balance = agent.balance
        if balance is not None or units >= 0:
            balance = (balance or 0.0) + units
        agent = msgspec.structs.replace(agent, balance=balance, spent=agent.spent + max(0.0, -units))
    if eur is not None:
        agent = msgspec.structs.replace(agent, eur=agent.eur + float(eur))
    rows.put(tables.AGENTS, agent, event.space, event.agent)
