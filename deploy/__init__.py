"""How Recallog runs outside of a test: a local cluster for development, the image, the compose file."""
