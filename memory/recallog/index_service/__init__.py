"""The process that serves the embedded indexes of a user's folders, and executes the operations that need them."""
