"""The built-in views, one module each: its rows, its fold, and the functions with which readers query it."""
