"""The console panels of tiers."""

from recallog_service.console.page import Panel, Place

PANELS = (Panel("Tiers", Place.AGENT, "tiers.stats", "tiers/stats.html"),)
