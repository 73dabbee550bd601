"""Benchmarks of the embedded form: one module per subject. `python -m benchmarks` runs them."""
