"""The console panels of consensus: what agents agreed on, and who dissents on the topic of a question."""

from recallog_service.console.page import Panel, Place

PANELS = (
    Panel("Dissents on this topic", Place.WHY, "consensus.dissents", "consensus/dissenters.html"),
    Panel("Consensus on similar topics", Place.WHY, "consensus.find_similar", "consensus/similar.html"),
    Panel("Consensus", Place.KNOWLEDGE, "consensus.list", "consensus/consensuses.html", order=1),
    Panel("Dissents", Place.KNOWLEDGE, "consensus.dissents", "consensus/dissents.html", order=1),
)
