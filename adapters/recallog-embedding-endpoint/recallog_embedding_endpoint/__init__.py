"""An OpenAI-compatible embeddings endpoint as an embedder: `https://<host>/v1#<model>`."""
