"""The parameters of the operations of this model; see `recallog.operations.parameters`."""

from os import PathLike
from typing import Annotated

from pydantic import Field

DocumentSearch = Annotated[
    str,
    Field(
        description="How documents are compared: hybrid (words and meaning), fts (words) or semantic (meaning); any "
        "other text means hybrid."
    ),
]
WorkspaceFolder = Annotated[
    str | PathLike[str] | None, Field(description="A folder; default: that of the setting `workspace`.")
]
Overwrite = Annotated[bool, Field(description="Overwrite the other side even if it has changed since the last time.")]
