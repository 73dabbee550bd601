"""The console: pages for people who run agents, in the server of the HTTP door.

A page calls operations as the routes of the API do, and has no logic of its own. `page` declares pages and panels,
`visit` is what a page knows of its request, `app` serves all pages. Memory models bring panels and pages in a module
`panels`, with templates in a folder beside it. docs/console.md is for users.
"""
