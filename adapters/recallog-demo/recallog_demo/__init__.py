"""The demo: a recorded simulation of a village, which shows the ledger and its rebuildable views."""
