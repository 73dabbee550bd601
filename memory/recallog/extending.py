"""What a user implements or builds to extend Recallog: ports, their messages, and adapters to build on.

See docs/extending.md. What tests a projection, a reactor or an adapter is in the package `recallog-testing`.
"""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.access import FacadePart as FacadePart
    from recallog.access import MemoryAccess as MemoryAccess
    from recallog.commands.command import Judge as Judge
    from recallog.commands.command import Verdict as Verdict
    from recallog.components import Components as Components
    from recallog.composition import assemble as assemble
    from recallog.models.extending import *
    from recallog.operations import parameters as parameters
    from recallog.operations.facade import operation as operation
    from recallog.operations.operation import Scope as Scope
    from recallog.operations.parameters import At as At
    from recallog.reactors.chat_model import ChatModel as ChatModel
    from recallog.reactors.reactor import DueTrigger as DueTrigger
    from recallog.reactors.reactor import Reactor as Reactor
    from recallog.reading.read_session import ReadSession as ReadSession
    from recallog.reading.readings import AgentReading as AgentReading
    from recallog.reading.readings import SpaceReading as SpaceReading
    from recallog.retrieval.memory_index import MemoryIndex as MemoryIndex
    from recallog.retrieval.reranker import Reranker as Reranker
    from recallog.retrieval.sources import CandidateSource as CandidateSource
    from recallog.retrieval.text_candidates import TextCandidates as TextCandidates
    from recallog_projections.index.documents import DocumentMaker as DocumentMaker
    from recallog_projections.index.embedders.embedder import Embedder as Embedder
    from recallog_projections.index.embedders.embedder import Embedding as Embedding
    from recallog_projections.index.embedders.embedder import Passage as Passage
    from recallog_projections.index.embedders.embedder import Vectors as Vectors
    from recallog_projections.index.engines.engine import Engine as Engine
    from recallog_projections.index.engines.engine import Filter as Filter
    from recallog_projections.index.engines.engine import Hit as Hit
    from recallog_projections.index.engines.engine import Point as Point
    from recallog_projections.index.engines.engine import Search as Search
    from recallog_projections.index.engines.engine import Sparse as Sparse
    from recallog_projections.index.engines.engine import StoredPoint as StoredPoint
    from recallog_projections.index.kept_text import KeptText as KeptText
    from recallog_projections.index.kept_text import KeptTexts as KeptTexts
    from recallog_projections.index.text_documents import TextDocuments as TextDocuments
    from recallog_projections.plugins import AdapterSettings as AdapterSettings
    from recallog_projections.projection import Projection as Projection
    from recallog_projections.refusals import Refusal as Refusal
    from recallog_projections.refusals import log_of_refusals as log_of_refusals
    from recallog_projections.rows import Changes as Changes
    from recallog_projections.rows import Rows as Rows
    from recallog_projections.stores.memory import MemoryStore as MemoryStore
    from recallog_projections.stores.sqlite import SqliteStore as SqliteStore
    from recallog_projections.stores.store import Checkpoint as Checkpoint
    from recallog_projections.stores.store import Chunk as Chunk
    from recallog_projections.stores.store import Generation as Generation
    from recallog_projections.stores.store import Outcome as Outcome
    from recallog_projections.stores.store import Pointer as Pointer
    from recallog_projections.stores.store import ReadResult as ReadResult
    from recallog_projections.stores.store import Scan as Scan
    from recallog_projections.stores.store import Store as Store
    from recallog_projections.stores.store import StoredRow as StoredRow
    from recallog_projections.stores.store import is_beyond as is_beyond
    from recallog_projections.stores.store import ordinal_key as ordinal_key
    from recallog_projections.stores.store import outcome_of as outcome_of
    from recallog_projections.tables import Log as Log
    from recallog_projections.tables import LogName as LogName
    from recallog_projections.tables import RowKey as RowKey
    from recallog_projections.tables import Table as Table
    from recallog_projections.tables import Tail as Tail
    from recallog_projections.views.due import Due as Due
    from recallog_schemas.event import Record as Record
    from recallog_schemas.kinds import Kind as Kind
    from recallog_schemas.kinds import Payload as Payload
    from recallog_schemas.kinds.kind import bookkeeping as bookkeeping
    from recallog_schemas.kinds.kind import entry as entry
    from recallog_schemas.kinds.kind import episode as episode
    from recallog_schemas.sealing import DESTROYED as DESTROYED
    from recallog_schemas.sealing import Unit as Unit
    from recallog_schemas.views import View as View
    from recallog_streams.databases.database import Database as Database
    from recallog_streams.databases.database import Documents as Documents
    from recallog_streams.databases.database import Lock as Lock
    from recallog_streams.keys.sealing_keys import MARKS as MARKS
    from recallog_streams.keys.sealing_keys import KeysState as KeysState
    from recallog_streams.keys.sealing_keys import SealingKey as SealingKey
    from recallog_streams.keys.sealing_keys import SealingKeys as SealingKeys
    from recallog_streams.keys.sealing_keys import mark_of as mark_of
    from recallog_streams.keys.sealing_keys import name_of as name_of
    from recallog_streams.ledgers.ledger import Batch as Batch
    from recallog_streams.ledgers.ledger import Ledger as Ledger
    from recallog_streams.ledgers.ledger import Manifest as Manifest
    from recallog_streams.ledgers.ledger import RecordSource as RecordSource
    from recallog_streams.ledgers.ledger import Times as Times
    from recallog_streams.ledgers.ledger import check_repeat as check_repeat
    from recallog_streams.ledgers.ledger import parts_of as parts_of
    from recallog_streams.ledgers.memory import MemoryLedger as MemoryLedger
    from recallog_streams.ledgers.sqlite import SqliteLedger as SqliteLedger
    from recallog_streams.ledgers.trigger_queue import Doorbell as Doorbell
    from recallog_streams.ledgers.trigger_queue import QueueFailed as QueueFailed
    from recallog_streams.ledgers.trigger_queue import TriggerQueue as TriggerQueue
    from recallog_streams.locks.folder import FolderLock as FolderLock
    from recallog_streams.sealing import Opener as Opener
    from recallog_streams.sealing import may_be_sealed as may_be_sealed
else:
    __getattr__, __dir__ = lazy_exports(__name__)
