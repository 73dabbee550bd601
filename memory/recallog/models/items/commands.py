"""Changes of items. Each change is published, and its answer contains the verdict of the views."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from recallog.access import MemoryAccess
from recallog.commands.command import Judge
from recallog.commands.making import make_event
from recallog.models.items import queries
from recallog.operations.parameters import At
from recallog_projections.models.items import projection as items
from recallog_projections.models.items.projection import ItemsProjection
from recallog_schemas import Event, Position, limits
from recallog_schemas.errors import Conflict, InvalidArgument, Refused
from recallog_schemas.models.items import limits as items_limits
from recallog_schemas.models.items.views import ItemChange
from recallog_schemas.validation import json_of
from recallog_streams import erasing
from recallog_streams.ledgers.ledger import Ledger

_WHY = {
    items.FULL: f"{{namespace}} is full, with {limits.WORKING_BLOCKS_MAX} keys in working memory or "
    f"{items_limits.SCRATCHPAD_KEYS_MAX} in a scratchpad; delete one first",
    items.UNKNOWN: "there is no item {path}; list the keys of its namespace, or put it first",
    items.NOT_TEXT: "{path} is not a text, and only a text can be extended; use put",
    items.NOT_QUEUE: "{path} is not a queue, and only a list in a scratchpad can be drained; use get",
    items.TOO_LARGE: f"the value of {{path}} would exceed {limits.ITEM_VALUE_BYTES_MAX:,} bytes, or "
    f"{items_limits.SCRATCHPAD_CHARS_MAX:,} characters in a scratchpad; keep it in parts",
}

JUDGE = Judge(ItemsProjection, items.REFUSALS)
"""The verdicts on changes of items in all namespaces."""

RESERVED_KEYS = frozenset({items.PENDING, "session_facts", "__taskspace_hint__", "__taskspace_label_hint__"})
"""Keys of scratchpads that only events of the system write."""


@dataclass(frozen=True, slots=True)
class ItemAddress:
    """The address of an item."""

    space: str
    agent: str
    namespace: Sequence[str]
    key: str
    argument: str = "value"
    """The name of the argument that gives the value, for messages."""
    key_argument: str = "key"
    """The name of the argument that gives the key."""

    @property
    def path(self) -> str:
        return "/".join((*self.namespace, self.key))


def value_of(address: ItemAddress, value: Any, *, json_text: bool) -> Any:
    """The value of an argument, which may be the text of a JSON document."""
    name = address.argument
    if not json_text:
        return value
    if not isinstance(value, str):
        raise InvalidArgument(f"{name}: should be a text if json_text is set", path=name, rule="string_type")
    try:
        return json_of(value)
    except ValueError as error:
        raise InvalidArgument(f"{name}: must be JSON: {error}", path=name, rule="json_invalid") from None


def event(address: ItemAddress, kind: str, event_id: str | None = None, **fields: Any) -> Event:
    """The event of a change. Raises `InvalidArgument` if the value is not JSON, or too large."""
    payload = {"namespace": list(address.namespace), "key": address.key, **fields}
    if payload.get("base") is None:
        payload.pop("base", None)
    try:
        session = items.session_of(address.namespace)
        return make_event(address.space, address.agent, f"item.{kind}", payload, event_id, session=session)
    except InvalidArgument as error:
        if error.path != "value" and not error.path.startswith("value."):
            raise
        path = address.argument + error.path.removeprefix("value")
        message = str(error).removeprefix(error.path)
        raise InvalidArgument(f"{path}{message}", path=path, rule=error.rule) from None


async def change(
    access: MemoryAccess, address: ItemAddress, kind: str, event_id: str | None, **fields: Any
) -> ItemChange:
    """Publish one change, and return its result. With an id, the change may have been published before.

    Raises `InvalidArgument`, also for a reserved key, `Conflict` and `Refused`.
    """
    _check_keys(address, {address.key_argument: address.key, "to": fields.get("to", "")})
    changed = event(address, kind, event_id, **fields)
    if event_id is None and (reasons := (await JUDGE.foresee(access, [changed]))[0]):
        return await _make_refusal(access, address, changed, reasons[""], None)
    key = changed.payload.get("to", address.key)
    shown = queries.row_key(address.space, address.agent, address.namespace, key)
    verdict = await JUDGE.publish(access, [changed], [shown])
    if verdict.reasons[0]:
        return await _make_refusal(access, address, changed, verdict.reasons[0][""], verdict.position)
    item = queries.present(verdict.snapshot, address.space, address.agent, address.namespace, key)
    return ItemChange(changed=True, id=changed.id, position=verdict.position, item=item)


async def erase(access: MemoryAccess, address: ItemAddress, deleted: ItemChange) -> ItemChange:
    """Erase all values that an item has had, and return its deletion."""
    from recallog.commands.erasing import erase_events

    ids = await _changes_of(access.components.ledger, address)
    erasure = await erase_events(access, address.space, ids, address.agent) if ids else None
    return deleted.model_copy(update={"erasure": erasure})


async def _changes_of(ledger: Ledger, address: ItemAddress) -> list[str]:
    """The ids of the events that set the item's values."""
    found = []
    async for event in erasing.find_events(ledger, address.space, to_json(address.key)):
        payload = event.payload
        is_here = event.agent == address.agent and payload.get("namespace") == [*address.namespace]
        if is_here and event.kind in ItemsProjection.kinds and address.key in (payload.get("key"), payload.get("to")):
            found.append(event.id)
    return found


def _check_keys(address: ItemAddress, keys: Mapping[str, str]) -> None:
    """Raise `InvalidArgument` for the first reserved key, with the name of its argument."""
    for argument, key in keys.items():
        is_reserved = key in RESERVED_KEYS or key.startswith(items.RESULTS)
        if is_reserved and items.session_of(address.namespace) is not None:
            raise InvalidArgument(
                f"{argument}: {key!r} is reserved for what the system keeps in a scratchpad; choose another key",
                path=argument,
                rule="reserved",
            )


async def _make_refusal(
    access: MemoryAccess, address: ItemAddress, changed: Event, reason: str, position: Position | None
) -> ItemChange:
    """The answer to a change that was refused, or that would be. Deleting an item that does not exist is not an
    error."""
    if reason == items.UNKNOWN and changed.kind == "item.deleted":
        return ItemChange(changed=False, id=changed.id if position else None, position=position, item=None)
    raise await refusal(access, address, changed, reason)


async def refusal(access: MemoryAccess, address: ItemAddress, changed: Event, reason: str) -> Refused:
    """The error of a change that was refused."""
    if reason != items.CONFLICT:
        namespace = "/".join(address.namespace)
        return Refused(_WHY[reason].format(namespace=namespace, path=address.path), reason=reason)
    found = await access.of_agent(address.space, address.agent, At(), queries.get, address.namespace, address.key)
    base = changed.payload.get("base")
    now = f"has version {found.item.version} (SHA-256 {found.item.sha256})" if found.item else "does not exist"
    expected = "its absence" if base == 0 else f"version {base}" if isinstance(base, int) else f"SHA-256 {base}"
    return Conflict(
        f"{address.path} {now}, but the change relies on {expected}. Read it again, and repeat the change",
        version=found.item.version if found.item else 0,
    )
