"""What the doors say of a text that was not retained."""

NOT_RETAINED = {
    "balance": "the agent has too few units; an event memory.metered grants some",
    "source_erased": "one of the entries that it is based on is erased",
    "dependents": "too many entries are based on one of its sources",
    "too_large": "keep it in parts",
    "action": "the quality gate of the agent lets no log of actions pass; say what follows from it",
    "min_terms": "the quality gate of the agent asks for more content words",
}
"""By the reason of the answer: what it means, or what to do."""
