"""The scan of what a memory stores for given words: it proves that nothing of them is left."""
