"""Ingest formats: pure readers from the content of a file to events. They know no ledger; `recallog ingest` appends.

`format` is the port, `registry` lists the formats and recognises the one of a file, and each format is a module with a
`FORMAT`. Formats of conversations turn their file into messages as the APIs of models have them, which
`recallog.messages.mapping` maps to events; `conversation_file` gives those their ids, times, turns and
sessions. A format of another package imports from here, and from here only.

Every reader yields one `Item` per event: the event, or the error that took its place; and one for each record that no
event holds. The same input always gives the same events with the same ids and times, so ingesting a file twice adds
nothing.
"""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.messages.blocks import LeftOut as LeftOut
    from recallog.messages.mapping import MESSAGE_TIMES as MESSAGE_TIMES
    from recallog.messages.mapping import Cast as Cast
    from recallog.messages.mapping import content_of as content_of
    from recallog_service.formats.conversation_file import ConversationFile as ConversationFile
    from recallog_service.formats.conversation_file import Found as Found
    from recallog_service.formats.conversation_file import file_of as file_of
    from recallog_service.formats.conversation_file import reader as reader
    from recallog_service.formats.conversation_file import reader_of_each as reader_of_each
    from recallog_service.formats.conversations import Conversation as Conversation
    from recallog_service.formats.conversations import digest as digest
    from recallog_service.formats.conversations import space_of_project as space_of_project
    from recallog_service.formats.declared import declared_in as declared_in
    from recallog_service.formats.elsewhere import structure_of as structure_of
    from recallog_service.formats.exchanges import Exchange as Exchange
    from recallog_service.formats.exchanges import conversations_of as conversations_of
    from recallog_service.formats.format import Format as Format
    from recallog_service.formats.format import Items as Items
    from recallog_service.formats.format import Options as Options
    from recallog_service.formats.format import Reading as Reading
    from recallog_service.formats.guess import objects as objects
    from recallog_service.formats.guess import wrong_format as wrong_format
    from recallog_service.formats.item import DEFAULT_START as DEFAULT_START
    from recallog_service.formats.item import Item as Item
    from recallog_service.formats.item import derived_id as derived_id
    from recallog_service.formats.item import made as made
    from recallog_service.formats.item import refused as refused
    from recallog_service.formats.response_items import left_out as left_out
    from recallog_service.formats.response_items import messages_of_item as messages_of_item
    from recallog_service.formats.source import Source as Source
    from recallog_service.formats.structure import Structure as Structure
else:
    __getattr__, __dir__ = lazy_exports(__name__)
