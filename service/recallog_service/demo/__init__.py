"""The demo: a recorded village run, and what a ledger with rebuildable views does with it."""
