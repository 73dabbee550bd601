"""What is remembered: pure folds, one module per view, and the stores that their rows are kept in."""
