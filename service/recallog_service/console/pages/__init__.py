"""The pages of the kernel. `PAGES` lists them in the order of the navigation."""

from recallog_service.console.pages import space, start

PAGES = (*start.PAGES, *space.PAGES)
