"""How events move: the ledgers, the fold, the one projector loop for live and rebuild, and verification."""
