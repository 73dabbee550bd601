"""The HTTP door: an ASGI application whose routes follow from the operations of a memory."""
