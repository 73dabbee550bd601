"""The memory models, one package each. CONTRIBUTING.md has the map."""
