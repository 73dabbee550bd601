"""The demo: a recorded simulation of a village, and what the ledger and its rebuildable views do with it."""
