"""The pages of the kernel. `PAGES` lists them in the order of the navigation."""

from recallog_service.console.pages import agent, erasing, knowledge, operations, space, start, why

PAGES = (
    *start.PAGES,
    *operations.PAGES,
    *space.PAGES,
    *agent.PAGES,
    *knowledge.PAGES,
    *why.PAGES,
    *erasing.PAGES,
)
