"""The items of agents: values under a namespace and a key."""

from typing import TYPE_CHECKING, Unpack

from recallog.access import FacadePart
from recallog.models import items
from recallog.models.items import parameters as items_parameters
from recallog.operations import parameters
from recallog.operations.facade import operation
from recallog.operations.operation import GenAi, Scope
from recallog.operations.parameters import At
from recallog_schemas import limits

if TYPE_CHECKING:
    from recallog_schemas.models.items.views import ItemChange, ItemFound, ItemsPage


class Items(FacadePart):
    """Values that agents keep under a namespace and a key: `memory.items`.

    An item belongs to one agent, and only events of this agent change it. Each change makes a version. With `base` a
    change is made only if the item still has the version, or the SHA-256, that the caller has read. If two writers
    change an item, the first one in the ledger succeeds, and the other gets `Conflict`.
    """

    attribute = "items"

    @operation(
        example='recallog items put village baker notes miller "owes nine sacks"',
        scope=Scope.PUBLISH,
        gen_ai=GenAi.UPSERT,
        records="id",
    )
    async def put(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        namespace: items_parameters.ItemNamespace,
        key: items_parameters.ItemKey,
        value: items_parameters.ItemValue,
        *,
        json_text: items_parameters.JsonText = False,
        base: items_parameters.Base = None,
        event_id: parameters.NewEventId = None,
    ) -> "ItemChange":
        """Set the value of an item, whether it exists or not, and return the item once the views have it.

        Raises `Conflict` and `Refused`; nothing has changed then.
        """
        address = items.commands.ItemAddress(space, agent, items_parameters.names(namespace), key)
        given = items.commands.value_of(address, value, json_text=json_text)
        return await items.commands.change(self._access, address, "put", event_id, value=given, base=base)

    @operation(
        example="recallog items get village baker notes miller",
        gen_ai=GenAi.SEARCH,
        records="item",
    )
    async def get(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        namespace: items_parameters.ItemNamespace,
        key: items_parameters.ItemKey,
        **at: Unpack[At],
    ) -> "ItemFound":
        """The item under a key, with its version."""
        names = items_parameters.names(namespace)
        return await self._access.of_agent(space, agent, at, items.queries.get, names, key)

    @operation(
        example='recallog items append village baker notes diary "The miller came."',
        scope=Scope.PUBLISH,
        gen_ai=GenAi.UPSERT,
        records="id",
    )
    async def append(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        namespace: items_parameters.ItemNamespace,
        key: items_parameters.ItemKey,
        text: items_parameters.AppendedText,
        *,
        base: items_parameters.Base = None,
        event_id: parameters.NewEventId = None,
    ) -> "ItemChange":
        """Add a text to the end of an item's text, or to a queue; creates the item if there is none.

        Raises `Conflict` and `Refused`; nothing has changed then.
        """
        address = items.commands.ItemAddress(space, agent, items_parameters.names(namespace), key)
        return await items.commands.change(self._access, address, "appended", event_id, text=text, base=base)

    @operation(
        example="recallog items move village baker notes miller miller-paid",
        scope=Scope.PUBLISH,
        gen_ai=GenAi.UPDATE,
        records="id",
    )
    async def move(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        namespace: items_parameters.ItemNamespace,
        key: items_parameters.ItemKey,
        to: items_parameters.NewKey,
        *,
        base: items_parameters.Base = None,
        event_id: parameters.NewEventId = None,
    ) -> "ItemChange":
        """Give an item another key in its namespace. An item that already has this key is replaced.

        Raises `Conflict` and `Refused`; nothing has changed then.
        """
        address = items.commands.ItemAddress(space, agent, items_parameters.names(namespace), key)
        return await items.commands.change(self._access, address, "moved", event_id, to=to, base=base)

    @operation(
        example="recallog items delete village baker notes miller",
        scope=Scope.PUBLISH,
        idempotent=True,
        gen_ai=GenAi.DELETE,
        records="id",
    )
    async def delete(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        namespace: items_parameters.ItemNamespace,
        key: items_parameters.ItemKey,
        *,
        base: items_parameters.Base = None,
        event_id: parameters.NewEventId = None,
        erase: parameters.ErasesToo = False,
    ) -> "ItemChange":
        """Delete an item. If there is none, nothing is written, and `changed` of the answer is false.

        The ledger and past views keep its values. With `erase`, they become unreadable everywhere,
        see `Memory.erase`.

        Raises `Conflict`; nothing has changed then.
        """
        address = items.commands.ItemAddress(space, agent, items_parameters.names(namespace), key)
        changed = await items.commands.change(self._access, address, "deleted", event_id, base=base)
        return await items.commands.erase(self._access, address, changed) if erase else changed

    @operation(
        example="recallog items list village baker notes --newest-first",
        gen_ai=GenAi.SEARCH,
        records="items",
    )
    async def list(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        namespace: items_parameters.BelowNamespace = None,
        *,
        newest_first: items_parameters.NewestFirst = False,
        limit: parameters.ListLimit = limits.PAGE_ITEMS,
        cursor: parameters.Cursor = None,
        **at: Unpack[At],
    ) -> "ItemsPage":
        """A page of the items of an agent: all of them, or those in a namespace and below it.

        `cursor` takes the `next` of a page and selects the page after it.
        """
        below = () if namespace is None else items_parameters.names(namespace)
        return await self._access.of_agent(
            space, agent, at, items.queries.page, below, limit, cursor, newest_first=newest_first
        )
