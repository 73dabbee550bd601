"""SQLite files that several processes share, with errors of Recallog: the ledger and the views of a folder."""
