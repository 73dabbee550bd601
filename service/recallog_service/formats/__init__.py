"""Ingest formats: pure readers from the content of a file to events. They do not use the ledger; `recallog ingest`
appends.

`format` is the port, `registry` lists the formats and recognises the one of a file, and each format is a module with a
`FORMAT`. Formats of conversations turn their file into messages as the APIs of models have them, which
`recallog.messages.mapping` maps to events; `conversation_file` gives those their ids, times, turns and
sessions. A format in another package imports from here only.

Every reader yields one `Item` per event (the event, or the error in its place) and one for each record that does not
become an event. The same input always gives the same events with the same ids and times, so ingesting a file twice adds
nothing.
"""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
