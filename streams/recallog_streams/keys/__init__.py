"""The keys of sealed records: the port, and its adapters named by technology."""
