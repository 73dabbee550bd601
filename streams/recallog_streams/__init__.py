"""The stream processing of Recallog: ledgers, the fold, the projector for live views and rebuilds, and verification."""
