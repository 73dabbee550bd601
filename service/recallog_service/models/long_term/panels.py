"""The panel of entries: what an agent keeps on purpose."""

from recallog_service.console.page import Panel, Place

PANELS = (Panel("Entries", Place.KNOWLEDGE, "long_term.list", "long_term/entries.html"),)
