"""What Recallog costs: one module per subject, measured side by side in one run of `python -m benchmarks`."""
