"""The definitions with which a generation has folded events of kinds that are not built in.

A program may register the kind of a model after events of it were folded as those of an unknown kind, or with another
definition. The row of the kind shows this: such a generation is built again. A kind of which no event was folded has no
row, and registering it rebuilds nothing. Built-in kinds have no rows, because the code of a generation covers them.
"""

from collections.abc import Sequence

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey, Table
from recallog_schemas import kinds
from recallog_schemas.errors import Rebuilding, ViewsTooNew


class KindRedefined(Rebuilding):
    """A generation has folded events of a kind with another definition than the one of this process."""


class Definition(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How a kind was defined when its first event was folded. Both fields are "" for an unknown kind."""

    model: str
    """The name of the model that has registered it."""
    digest: str
    """See `kinds.definition`."""


TABLE = Table("fold.kinds", Definition, apart=True)
"""At ("", "", name of the kind)."""


def key_of(kind: str) -> RowKey:
    return RowKey(TABLE.name, "", "", kind)


def note(rows: Rows, kind: str) -> None:
    """Note the definition with which an event is folded.

    Raises `KindRedefined`, or `ViewsTooNew` if another process knows the kind and this one does not: otherwise the two
    would replace each other's views for ever.
    """
    mine = Definition(kinds.model_of(kind), kinds.definition(kind))
    known = rows.get(TABLE, *key_of(kind)[1:])
    if known is None:
        rows.put(TABLE, mine, *key_of(kind)[1:])
    elif known.digest != mine.digest:
        if not mine.digest:
            raise ViewsTooNew(
                f"the views know {kind} as a kind of the model {known.model!r}, which this process does not have. "
                "Install the package of the model, or give the model to this process"
            )
        raise KindRedefined(f"the views were built with another definition of the kind {kind}")


def are_present(registered: Sequence[str], found: Sequence[bytes | None]) -> bool:
    """Whether all existing rows of the `registered` kinds have the definitions of this process."""
    rows = [None if data is None else TABLE.decode(data) for data in found]
    pairs = zip(registered, rows, strict=True)
    return all(row is None or row.digest == kinds.definition(kind) for kind, row in pairs)
