"""Following a ledger: its records as events, and when the reflections of a space fall due and are answered."""
