"""The catalogue of kinds: for each known kind its payload, its text, its importance, its role, and who sees it.

Kinds are an open set. An unknown kind carries any JSON object, has importance 0.5, is private to its agent, and its
text is the first of `text`, `belief`, `summary`, `goal` that its payload has. A space declares otherwise for kinds of
its own with `space.configured`. A memory model of a program, or of an installed package, registers its kinds with
`register`.
"""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

# The catalogue imports the kinds of the models, whose modules import modules of this package.
if TYPE_CHECKING:
    from recallog_schemas.kinds.catalogue import *
    from recallog_schemas.kinds.catalogue import BUILT_IN_KINDS as BUILT_IN_KINDS
    from recallog_schemas.kinds.catalogue import CATALOGUE as CATALOGUE
    from recallog_schemas.kinds.kind import *
    from recallog_schemas.kinds.kind import ACTION as ACTION
    from recallog_schemas.kinds.kind import BOOKKEEPING as BOOKKEEPING
    from recallog_schemas.kinds.kind import DEFAULT_IMPORTANCE as DEFAULT_IMPORTANCE
    from recallog_schemas.kinds.kind import ENTRY as ENTRY
    from recallog_schemas.kinds.kind import MEMORY as MEMORY
    from recallog_schemas.kinds.kind import NO_TEXT as NO_TEXT
    from recallog_schemas.kinds.kind import VISITOR as VISITOR
    from recallog_schemas.kinds.kind import EpisodeRole as EpisodeRole
    from recallog_schemas.kinds.kind import Role as Role
    from recallog_schemas.kinds.payload import *
    from recallog_schemas.kinds.payload import Base as Base
    from recallog_schemas.kinds.payload import EntryType as EntryType
    from recallog_schemas.kinds.payload import ItemName as ItemName
    from recallog_schemas.kinds.payload import Namespace as Namespace
    from recallog_schemas.kinds.payload import Priority as Priority
    from recallog_schemas.kinds.payload import Tier as Tier
    from recallog_schemas.kinds.settings import *
    from recallog_schemas.kinds.settings import ALWAYS as ALWAYS
    from recallog_schemas.kinds.settings import AUTOMATIC as AUTOMATIC
    from recallog_schemas.kinds.settings import Dates as Dates
else:
    __getattr__, __dir__ = lazy_exports(__name__)
