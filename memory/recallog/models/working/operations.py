"""Working memory: the blocks that prompts of an agent show, and the scratchpads of its sessions."""

from typing import TYPE_CHECKING, Unpack

from recallog.access import FacadePart
from recallog.models import items, working
from recallog.models.items import parameters as items_parameters
from recallog.models.working import parameters as working_parameters
from recallog.operations import parameters
from recallog.operations.facade import operation
from recallog.operations.operation import GenAi, Scope
from recallog.operations.parameters import At

if TYPE_CHECKING:
    from recallog_schemas.models.items.views import ItemChange
    from recallog_schemas.models.working.views import BlocksView, DocumentChange, Drained, WorkingDocument, WorkingText


class Working(FacadePart):
    """Blocks that an agent keeps in sight, and scratchpads of its sessions: `memory.working`.

    An agent has at most 64 blocks, which are the items of its namespace `working`. Its prompts show them, unless its
    setting `working` is off. A session has a scratchpad of at most 50 keys, the items of the namespace
    `session/<id>`: a text of more than 10,000 characters is cut there, and a list is a queue of its newest 50 elements.
    """

    attribute = "working"

    @operation(
        example='recallog working set village baker Goals "Close 3 deals"',
        scope=Scope.PUBLISH,
        tool="set_working_memory",
        gen_ai=GenAi.UPSERT,
        records="id",
    )
    async def set(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        label: working_parameters.Label,
        content: working_parameters.Content,
        *,
        session: working_parameters.OnePadSession = None,
        json_text: items_parameters.JsonText = False,
        base: items_parameters.Base = None,
        event_id: parameters.NewEventId = None,
    ) -> "ItemChange":
        """Set the content of a block, or with `session` of a key of its scratchpad.

        Some keys of scratchpads are reserved for the system.

        Raises `Conflict`, and `Refused` for one block or key too many; nothing has changed then.
        """
        address = working.commands.address(space, agent, label, session)
        given = items.commands.value_of(address, content, json_text=json_text)
        return await items.commands.change(self._access, address, "put", event_id, value=given, base=base)

    @operation(
        example='recallog working append village baker Goals " and rest on Sunday"',
        scope=Scope.PUBLISH,
        tool="append_working_memory",
        gen_ai=GenAi.UPSERT,
        records="id",
    )
    async def append(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        label: working_parameters.Label,
        text: items_parameters.AppendedText,
        *,
        session: working_parameters.OnePadSession = None,
        base: items_parameters.Base = None,
        event_id: parameters.NewEventId = None,
    ) -> "ItemChange":
        """Add a text to the end of a block, or with `session` of a key of its scratchpad. It is created if it does not
        exist.

        Raises `Conflict`, and `Refused` if the content is not a text or there are too many blocks or keys; nothing
        has changed then.
        """
        address = working.commands.address(space, agent, label, session)
        return await items.commands.change(self._access, address, "appended", event_id, text=text, base=base)

    @operation(
        example="recallog working get village baker Goals",
        tool="read_working_memory",
        gen_ai=GenAi.SEARCH,
        records="blocks",
    )
    async def get(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        labels: working_parameters.Labels = None,
        **at: Unpack[At],
    ) -> "BlocksView":
        """The blocks of an agent with their versions, by label."""
        return await self._access.of_agent(space, agent, at, working.queries.blocks, labels, None)

    @operation(
        example="recallog working delete village baker Goals",
        scope=Scope.PUBLISH,
        idempotent=True,
        tool="delete_working_memory",
        gen_ai=GenAi.DELETE,
        records="id",
    )
    async def delete(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        label: working_parameters.Label,
        *,
        session: working_parameters.OnePadSession = None,
        base: items_parameters.Base = None,
        event_id: parameters.NewEventId = None,
    ) -> "ItemChange":
        """Delete a block, or with `session` a key of its scratchpad; `changed` is false if there is none.

        Raises `Conflict`; nothing has changed then.
        """
        address = working.commands.address(space, agent, label, session)
        return await items.commands.change(self._access, address, "deleted", event_id, base=base)

    @operation(example="recallog working render village baker", gen_ai=GenAi.SEARCH, records=None)
    async def render(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        labels: working_parameters.Labels = None,
        **at: Unpack[At],
    ) -> "WorkingText":
        """The blocks of an agent as one text for a prompt, by label, each with the first 2,000 characters of its
        content.

        Contents are indented, so that none of their lines looks like a heading.
        """
        return await self._access.of_agent(space, agent, at, working.queries.render, labels)

    @operation(example="recallog working document village baker", gen_ai=GenAi.SEARCH, records=None)
    async def document(self, space: parameters.Space, agent: parameters.Agent, **at: Unpack[At]) -> "WorkingDocument":
        """The blocks of an agent as one JSON document, which an agent reads and writes as a whole.

        A document of more than 4,000 bytes (the agent's `max_bytes`) is cut.
        """
        return await self._access.of_agent(space, agent, at, working.queries.document)

    @operation(
        example="""recallog working write-document village baker '{"Goals": "Close 4 deals"}'""",
        scope=Scope.PUBLISH,
        idempotent=True,
        gen_ai=GenAi.UPSERT,
        records="written",
    )
    async def write_document(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        text: working_parameters.DocumentText,
        *,
        base: working_parameters.DocumentBase = None,
    ) -> "DocumentChange":
        """Replace the blocks of an agent by a document. Only the differences are written, all of them or none.

        A text that was cut is refused.

        Raises `Refused` for too many blocks, and with `base` `Conflict` if the document has changed since.
        """
        return await working.commands.write_document(self._access, space, agent, text, base)

    @operation(
        example="recallog working scratchpad village baker s-1",
        gen_ai=GenAi.SEARCH,
        records="blocks",
    )
    async def scratchpad(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        session: working_parameters.PadSession,
        keys: working_parameters.Keys = None,
        **at: Unpack[At],
    ) -> "BlocksView":
        """The keys of an agent's scratchpad of a session, with their contents. `set` and `delete` change it."""
        return await self._access.of_agent(space, agent, at, working.queries.blocks, keys, session)

    @operation(
        example="recallog working drain village baker s-1 todo",
        scope=Scope.PUBLISH,
        gen_ai=GenAi.DELETE,
        records="values",
    )
    async def drain(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        session: working_parameters.PadSession,
        key: items_parameters.ItemKey,
    ) -> "Drained":
        """Take all elements out of a queue of a scratchpad. Each element is taken once, even by several readers.

        An element that is added meanwhile stays.
        """
        return await working.commands.drain(self._access, space, agent, session, key)
