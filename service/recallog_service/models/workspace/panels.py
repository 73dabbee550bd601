"""The console panels of documents: the workspace of an agent, and one document."""

from recallog_service.console.page import Panel, Place

_WORKSPACE = {"namespace": "workspace"}
PANELS = (
    Panel("Documents", Place.KNOWLEDGE, "items.list", "workspace/documents.html", _WORKSPACE),
    Panel("Document", Place.KNOWLEDGE, "items.get", "workspace/document.html", _WORKSPACE),
)
