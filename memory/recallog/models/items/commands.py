"""Changes of items: each is published, and its answer says what the views made of it.

The views decide, in the order of the ledger. A change that they would refuse now is refused before anything is written,
by the same rules; a caller that gives the id of the event may repeat the call, so that its event is always written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recallog.access import MemoryAccess
from recallog.commands.foreseeing import folded
from recallog.commands.making import made
from recallog.models.items import queries
from recallog.operations.parameters import At
from recallog.reading.read_session import ReadSession, Snapshot
from recallog_projections.models.items import projection as items
from recallog_projections.models.items.projection import Items
from recallog_projections.tables import LogName
from recallog_schemas import Event, Position, Record, limits
from recallog_schemas.errors import Conflict, InvalidArgument, Refused
from recallog_schemas.models.items import limits as items_limits
from recallog_schemas.models.items.views import ItemChange
from recallog_schemas.validation import json_of

_WHY = {
    items.FULL: f"{{namespace}} has as many keys as it may have, {limits.WORKING_BLOCKS_MAX} in working memory and "
    f"{items_limits.SCRATCHPAD_KEYS_MAX} in a scratchpad; delete one first",
    items.UNKNOWN: "there is no item {path}",
    items.NOT_TEXT: "{path} holds no text, and a text can be added to a text only; use put",
    items.NOT_QUEUE: "{path} is no queue: only a list in a scratchpad can be drained",
    items.TOO_LARGE: f"the value of {{path}} would exceed {limits.ITEM_VALUE_BYTES_MAX:,} bytes, or "
    f"{items_limits.SCRATCHPAD_CHARS_MAX:,} characters in a scratchpad; keep it in parts",
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where an item lies."""

    space: str
    agent: str
    namespace: Sequence[str]
    key: str
    argument: str = "value"
    """The name of the argument that is the value, for messages."""

    @property
    def path(self) -> str:
        return "/".join((*self.namespace, self.key))


def value_of(address: Address, value: Any, *, json_text: bool) -> Any:
    """The value of an argument, which may be the text of a JSON document."""
    name = address.argument
    if not json_text:
        return value
    if not isinstance(value, str):
        raise InvalidArgument(f"{name}: should be a text if json_text is set", path=name, rule="string_type")
    try:
        return json_of(value)
    except ValueError as error:
        raise InvalidArgument(f"{name}: is no JSON: {error}", path=name, rule="json_invalid") from None


def event(address: Address, kind: str, event_id: str | None = None, **fields: Any) -> Event:
    """The event of a change. Raises `InvalidArgument` if the value is no JSON, or too large."""
    payload = {"namespace": list(address.namespace), "key": address.key, **fields}
    if payload.get("base") is None:
        payload.pop("base", None)
    try:
        session = items.session_of(address.namespace)
        return made(address.space, address.agent, f"item.{kind}", payload, event_id, session=session)
    except InvalidArgument as error:
        if error.path != "value" and not error.path.startswith("value."):
            raise
        path = address.argument + error.path.removeprefix("value")
        message = str(error).removeprefix(error.path)
        raise InvalidArgument(f"{path}{message}", path=path, rule=error.rule) from None


async def change(access: MemoryAccess, address: Address, kind: str, event_id: str | None, **fields: Any) -> ItemChange:
    """Publish one change, and answer what it did. With an id it may have been published before.

    Raises `InvalidArgument`, `Conflict` and `Refused`.
    """
    changed = event(address, kind, event_id, **fields)
    shown = Address(address.space, address.agent, address.namespace, changed.payload.get("to", address.key))
    if event_id is None and (reason := (await foreseen(access, [changed]))[0]) is not None:
        return await _refused(access, address, changed, reason, None)
    (position,) = await access.append([changed])
    snapshot, reasons = await verdicts(access, [changed], position, [shown])
    if reasons[0] is not None:
        return await _refused(access, address, changed, reasons[0], position)
    return ItemChange(
        changed=True,
        id=changed.id,
        position=position,
        item=queries.present(snapshot, shown.space, shown.agent, shown.namespace, shown.key),
    )


async def foreseen(access: MemoryAccess, events: Sequence[Event]) -> list[str | None]:
    """For each of some changes of one agent's items, in their order, why the views would refuse it now."""
    records = [Record(0, offset, each, b"", memorable=True) for offset, each in enumerate(events)]
    rows = await access.of_space(events[0].space, lambda reading: folded(reading, Items(), records), At())
    log = (items.REFUSALS.name, events[0].space, events[0].agent)
    refusals = items.REFUSALS.decode_all(rows.changes().logs.get(log, ()))
    reasons = {refusal.event: refusal.reason for refusal in refusals}
    return [reasons.get(each.id) for each in events]


async def verdicts(
    access: MemoryAccess, events: Sequence[Event], after: Position, shown: Sequence[Address]
) -> tuple[Snapshot, list[str | None]]:
    """Why the views refused each of some published changes of one agent, None if they did not, and the items `shown`
    as they are now; `after` is the position of the last event."""
    space, agent = events[0].space, events[0].agent

    async def read(reading: ReadSession) -> Snapshot:
        rows = [queries.row_key(each.space, each.agent, each.namespace, each.key) for each in shown]
        return await reading.snapshot(rows, [(LogName(items.REFUSALS.name, space, agent), limits.LOG_EVENTS_KEPT)])

    snapshot = await access.of_space(space, read, At(after=after))
    refusals = items.REFUSALS.decode_all(snapshot.tail(items.REFUSALS, space, agent).entries)
    reasons: Mapping[str, str] = {each.event: each.reason for each in refusals}
    return snapshot, [reasons.get(each.id) for each in events]


async def _refused(
    access: MemoryAccess, address: Address, changed: Event, reason: str, position: Position | None
) -> ItemChange:
    """The answer to a change that was refused, or would be. Only that there is nothing to delete is no error."""
    if reason == items.UNKNOWN and changed.kind == "item.deleted":
        return ItemChange(changed=False, id=changed.id if position else None, position=position, item=None)
    raise await refusal(access, address, changed, reason)


async def refusal(access: MemoryAccess, address: Address, changed: Event, reason: str) -> Refused:
    """The error of a change that was refused."""
    if reason != items.CONFLICT:
        namespace = "/".join(address.namespace)
        return Refused(_WHY[reason].format(namespace=namespace, path=address.path), reason=reason)
    found = await access.of_space(
        address.space,
        lambda reading: queries.get(reading, address.space, address.agent, address.namespace, address.key),
        At(),
    )
    base = changed.payload.get("base")
    now = f"has version {found.item.version} (SHA-256 {found.item.sha256})" if found.item else "does not exist"
    expected = "that there is none" if base == 0 else f"version {base}" if isinstance(base, int) else f"SHA-256 {base}"
    return Conflict(
        f"{address.path} {now}, but the change relies on {expected}. Read it again, and make the change anew",
        version=found.item.version if found.item else 0,
    )
