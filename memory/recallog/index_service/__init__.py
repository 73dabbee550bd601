"""The process that serves the embedded index of a folder, and executes the operations that need it."""
