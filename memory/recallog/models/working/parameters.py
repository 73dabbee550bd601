"""The parameters of the operations of this model; see `recallog.operations.parameters`."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from recallog.models.items.parameters import SHA256_PATTERN, item_name
from recallog.operations.parameters import identifier_of
from recallog_schemas import limits
from recallog_schemas.names import IN_NFC

Label = Annotated[str, item_name("Name of the block or key."), IN_NFC]
Labels = Annotated[Sequence[str] | None, Field(description="Only these blocks; default: all."), IN_NFC]
Keys = Annotated[Sequence[str] | None, Field(description="Only these keys; default: all."), IN_NFC]
Content = Annotated[
    Any, Field(description=f"The content: any JSON of at most {limits.ITEM_VALUE_BYTES_MAX:,} bytes, usually a text.")
]
PadSession = Annotated[str, identifier_of("Session of the scratchpad."), IN_NFC]
OnePadSession = Annotated[str | None, identifier_of("Session of the scratchpad; default: working memory."), IN_NFC]
DocumentText = Annotated[str, Field(description="The document: a JSON object of labels and contents.")]
DocumentBase = Annotated[
    str | None,
    Field(pattern=SHA256_PATTERN, description="Only if the document has this SHA-256: the `sha256` of `document`."),
]
