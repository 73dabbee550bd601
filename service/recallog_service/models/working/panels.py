"""The console panels of working memory."""

from recallog_service.console.page import Panel, Place

PANELS = (Panel("Working memory", Place.AGENT, "working.get", "working/blocks.html"),)
