"""Commands: one handler each, which makes events from validated arguments and returns the verdict of the views on
them."""
