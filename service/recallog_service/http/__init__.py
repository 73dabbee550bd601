"""The HTTP door: an ASGI application with routes derived from the operations of a memory."""
