"""Commands: one handler each, from validated arguments to events, and to the verdict of the views on them."""
