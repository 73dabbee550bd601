"""What the console shows of beliefs."""

from recallog_service.console.page import Panel, Place

PANELS = (Panel("Beliefs", Place.AGENT, "beliefs", "beliefs/beliefs.html"),)
