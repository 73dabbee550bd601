"""What the console shows of consensus: who dissents on the topic of a question, and what was agreed on similar ones."""

from recallog_service.console.page import Panel, Place

PANELS = (
    Panel("Dissents on this topic", Place.WHY, "consensus.dissents", "consensus/dissenters.html"),
    Panel("Consensus on similar topics", Place.WHY, "consensus.find_similar", "consensus/similar.html"),
)
