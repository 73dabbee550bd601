"""The pages of the kernel. `PAGES` lists them in the order of the navigation."""

from recallog_service.console.pages import agent, erasing, space, start, why

PAGES = (*start.PAGES, *space.PAGES, *agent.PAGES, *why.PAGES, *erasing.PAGES)
