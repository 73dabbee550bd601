"""Seeded simulations: whatever fails and whenever, the views equal a fold of the ledger."""
