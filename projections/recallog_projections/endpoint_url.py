"""Where endpoints that speak OpenAI's API are, as people write it down."""

import httpx


def endpoint_url(url: str, path: str) -> httpx.URL:
    """Where to post to: `url` with `path` ("/embeddings"), which it may end in already, under /v1 where it names none.

    Raises `ValueError`, whose words never show what stands in the URL.
    """
    try:
        address = httpx.URL(url.strip())
    except httpx.InvalidURL:
        # Its words may show a password.
        address = httpx.URL()
    if address.scheme not in ("http", "https") or not address.host:
        raise ValueError("must be that of an endpoint, for example http://localhost:8000/v1")
    if address.userinfo:
        raise ValueError("holds a user or a password; give the API key apart from it")
    place = address.path.rstrip("/")
    if not place.endswith(path):
        place = (place or "/v1") + path
    return address.copy_with(path=place, fragment=None)
