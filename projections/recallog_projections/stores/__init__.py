"""Where views are kept: the store port and its adapters."""
