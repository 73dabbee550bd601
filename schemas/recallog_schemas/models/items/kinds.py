"""The kinds of changes of items."""

from recallog_schemas.kinds.kind import NO_TEXT, entry
from recallog_schemas.models.items.payloads import ItemAppended, ItemDeleted, ItemDrained, ItemMoved, ItemPut

KINDS = (
    entry("item.put", "An item got a value.", ItemPut, NO_TEXT, "value", recalled=False, owned=True),
    entry("item.appended", "A text was added to an item.", ItemAppended, NO_TEXT, "text", recalled=False, owned=True),
    entry("item.deleted", "An item was deleted.", ItemDeleted, NO_TEXT, "", recalled=False, owned=True),
    entry("item.moved", "An item got another key.", ItemMoved, NO_TEXT, "", recalled=False, owned=True),
    entry("item.drained", "The values of a queue were taken.", ItemDrained, NO_TEXT, "", recalled=False, owned=True),
)
