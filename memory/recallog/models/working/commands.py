"""Changes of working memory: of the document as a whole, and of a queue that is drained."""

from collections.abc import Mapping, Sequence

from recallog.access import MemoryAccess
from recallog.commands.command import Reasons
from recallog.models import working
from recallog.models.items import commands as changes
from recallog.models.items import queries
from recallog.models.items.commands import ItemAddress
from recallog.models.working.blocks import WORKING, rows_of
from recallog.operations.parameters import At
from recallog.reading.read_session import ReadSession
from recallog_projections.models.items import projection as items
from recallog_projections.models.items.projection import ItemRow
from recallog_schemas import Event
from recallog_schemas.errors import Conflict, InvalidArgument, Refused
from recallog_schemas.models.working.views import DocumentChange, Drained
from recallog_schemas.names import in_nfc
from recallog_schemas.validation import json_of

_TRIES = 50
"""How often a reader tries to drain a queue. A try fails if another reader was faster; with two readers, that is every
second try."""


def address(space: str, agent: str, label: str, session: str | None) -> ItemAddress:
    """The address of a block, or of a key of a scratchpad."""
    namespace = WORKING if session is None else items.session_namespace(session)
    return ItemAddress(space, agent, namespace, label, argument="content", key_argument="label")


async def write_document(access: MemoryAccess, space: str, agent: str, text: str, base: str | None) -> DocumentChange:
    """Publish the difference between the document and `text` at once.

    Raises `InvalidArgument` for a text that is not a document or was cut, `Refused`, and with `base` `Conflict` if
    another change came first.
    """
    contents = _contents(text)

    async def read(reading: ReadSession) -> Mapping[str, ItemRow]:
        async def rows(reads: ReadSession) -> Mapping[str, ItemRow]:
            return (await rows_of(reads, space, agent, WORKING, None))[1]

        return await reading.steady(rows)

    before = await access.of_space(space, At(), read)
    document = working.queries.document_text({label: items.value_of(row) for label, row in before.items()})
    if base is not None and items.sha256_of(document) != base:
        raise _moved_on(agent)
    deleted = [label for label in before if label not in contents]
    written = [
        label
        for label in sorted(contents)
        if label not in before or items.sha256_of(contents[label]) != before[label].sha256
    ]

    def based_on(label: str) -> int | None:
        row = before.get(label)
        return None if base is None else row.version if row is not None else 0

    def at(label: str) -> ItemAddress:
        return ItemAddress(space, agent, WORKING, label, argument="text")

    events = [
        *(changes.event(at(label), "deleted", base=based_on(label)) for label in deleted),
        *(changes.event(at(label), "put", value=contents[label], base=based_on(label)) for label in written),
    ]
    if not events:
        return DocumentChange(written=(), deleted=(), position=None)
    await _check(access, events, await changes.JUDGE.foresee(access, events))
    verdict = await changes.JUDGE.publish(access, events)
    await _check(access, events, verdict.reasons)
    return DocumentChange(written=tuple(written), deleted=tuple(deleted), position=verdict.position)


async def drain(access: MemoryAccess, space: str, agent: str, session: str, key: str) -> Drained:
    """Take all elements of a queue. Each element is taken once, by the reader that is first in the ledger."""
    queue = ItemAddress(space, agent, items.session_namespace(session), key)
    for _ in range(_TRIES):
        found = await access.of_agent(space, agent, At(), queries.get, queue.namespace, key)
        if found.item is None or found.item.value == []:
            return Drained(values=(), position=None)
        event = changes.event(queue, "drained", upto=found.item.version)
        if not isinstance(found.item.value, list):
            raise await changes.refusal(access, queue, event, items.NOT_QUEUE)
        verdict = await changes.JUDGE.publish(access, [event])
        if not verdict.reasons[0]:
            return Drained(values=tuple(found.item.value), position=verdict.position)
    raise Refused(f"other callers keep taking the values of {queue.path}; try again later", reason=items.CONFLICT)


def _contents(text: str) -> dict[str, object]:
    if items.CUT_MARK in text:
        raise InvalidArgument(
            f"text: contains {items.CUT_MARK}: it was cut, and writing it would lose the rest. Write single blocks "
            "with set, or raise max_bytes",
            path="text",
            rule="cut",
        )
    try:
        contents = json_of(text)
    except ValueError as error:
        raise InvalidArgument(f"text: must be JSON: {error}", path="text", rule="json_invalid") from None
    if not isinstance(contents, dict):
        raise InvalidArgument("text: should be a JSON object of labels and contents", path="text", rule="dict_type")
    return in_nfc(contents)


async def _check(access: MemoryAccess, events: Sequence[Event], reasons: Sequence[Reasons]) -> None:
    """Raise the error of the first change that was refused. Deleting a block that does not exist is not an error."""
    for event, why in zip(events, reasons, strict=True):
        reason = why.get("")
        if reason is None or (reason == items.UNKNOWN and event.kind == "item.deleted"):
            continue
        if reason == items.CONFLICT:
            raise _moved_on(event.agent)
        raise await changes.refusal(
            access, ItemAddress(event.space, event.agent, WORKING, event.payload["key"]), event, reason
        )


def _moved_on(agent: str) -> Conflict:
    return Conflict(
        f"the working memory of {agent} has changed since it was read. Read the document again, and change that",
        version=0,
    )
