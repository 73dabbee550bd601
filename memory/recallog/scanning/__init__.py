"""The scan of everything that a memory stores for given words: it proves that nothing of them is left."""
