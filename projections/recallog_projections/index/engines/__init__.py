"""Vector engines of the semantic index: the port, and its adapters named by technology."""
