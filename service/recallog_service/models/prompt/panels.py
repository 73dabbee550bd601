"""The console panels of prompts, and of why an event is in one."""

from recallog_service.console.page import Panel, Place

PANELS = (
    Panel("Prompt", Place.AGENT, "context", "prompt/prompt.html"),
    Panel("Remembered?", Place.WHY, "explain", "prompt/explain.html"),
)
