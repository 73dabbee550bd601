"""The parameters of the operations of this model alone; see `recallog.operations.parameters`."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from recallog.models.items.parameters import SHA256_PATTERN, item_name
from recallog.operations.parameters import identified
from recallog_schemas import limits

Label = Annotated[str, item_name("Name of the block or key.")]
Labels = Annotated[Sequence[str] | None, Field(description="Only these blocks; default: all.")]
Keys = Annotated[Sequence[str] | None, Field(description="Only these keys; default: all.")]
Content = Annotated[
    Any, Field(description=f"The content: any JSON of at most {limits.ITEM_VALUE_BYTES_MAX:,} bytes, usually a text.")
]
PadSession = Annotated[str, identified("Session that the scratchpad is of.")]
OnePadSession = Annotated[str | None, identified("Session whose scratchpad is meant; default: working memory.")]
DocumentText = Annotated[str, Field(description="The document: a JSON object of labels and contents.")]
DocumentBase = Annotated[
    str | None,
    Field(pattern=SHA256_PATTERN, description="Only if the document has this SHA-256: the `sha256` of `document`."),
]
