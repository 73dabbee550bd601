"""The URL of a request to an OpenAI-compatible endpoint, from the URL in a setting."""

import httpx


def endpoint_url(url: str, path: str) -> httpx.URL:
    """`url` with `path` ("/embeddings") appended unless it ends in it. A URL without a path gets /v1 in front.

    Raises `ValueError` for an invalid URL or one with user or password; the message never shows a part of the URL.
    """
    try:
        address = httpx.URL(url.strip())
    except httpx.InvalidURL:
        # The text of this error may show a password.
        address = httpx.URL()
    if address.scheme not in ("http", "https") or not address.host:
        raise ValueError("must be the URL of an endpoint, for example http://localhost:8000/v1")
    if address.userinfo:
        raise ValueError("contains a user or a password; give the API key separately")
    full_path = address.path.rstrip("/")
    if not full_path.endswith(path):
        full_path = (full_path or "/v1") + path
    return address.copy_with(path=full_path, fragment=None)
