"""The embedder of models that the library sentence-transformers runs with torch."""
