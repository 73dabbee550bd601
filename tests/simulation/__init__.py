"""Seeded simulations: after any failures, the views equal a fold of the ledger."""
