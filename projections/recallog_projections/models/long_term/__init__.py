"""The view of entries: what agents keep on purpose, the verdict on each event, and later changes.

Modules by concern: `tables` and `reading` for readers; `projection`, `retaining`, `capturing`, `changing` and
`accounts` for the fold; `linking` for the rows that follow from an entry; `texts` for equal texts.
"""
