"""Seeded simulations: after any failures, the views equal a fold of the ledger.

    PYTHONPATH=tests python -m simulation --seeds 10000

Each seed is a world in virtual time, with failing storage, dying processes and readers throughout (`worlds`). Every
answer meanwhile is the oracle's fold of the ledger up to a checkpoint, or a named error that a fault explains; when the
faults end everything converges, and nothing is lost or counted twice. `make test` runs the first seeds.
"""
