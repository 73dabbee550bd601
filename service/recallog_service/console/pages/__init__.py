"""The pages of the kernel. `PAGES` lists them in the order of the navigation."""

from recallog_service.console.pages import knowledge, operations, space, start

PAGES = (*start.PAGES, *operations.PAGES, *space.PAGES, *knowledge.PAGES)
