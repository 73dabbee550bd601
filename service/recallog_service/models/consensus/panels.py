"""The panels of consensus: what agents agreed on, and the dissents on one topic."""

from recallog_service.console.page import Panel, Place

PANELS = (
    Panel("Consensus", Place.KNOWLEDGE, "consensus.list", "consensus/consensuses.html", order=1),
    Panel("Dissents", Place.KNOWLEDGE, "consensus.dissents", "consensus/dissents.html", order=1),
)
