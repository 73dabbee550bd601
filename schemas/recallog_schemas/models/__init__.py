"""The memory models, one package each. CONTRIBUTING.md has the map."""

BUILT_IN = (
    "beliefs",
    "consensus",
    "items",
    "conversations",
    "long_term",
    "facts",
    "working",
    "workspace",
    "tiers",
    "stream",
    "prompt",
)
"""The names of the built-in models, each after those that it is built on. All layers find them by this list."""
