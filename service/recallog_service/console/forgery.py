"""Tokens of forms: another site can make a browser send a form, but does not know the required token."""

import hmac
import secrets

from recallog_service.http.problems import RequestError

FIELD = "csrf"
"""The field of a form with the token."""

_OF_PROCESS = secrets.token_bytes(32)
"""The secret for callers without a key. After a restart, pages must be reloaded before their forms can be sent."""


def token_for(key: str | None) -> str:
    """The token of one caller's forms. It is derived from the key and does not reveal it, so that servers that share
    keys accept each other's forms. It becomes invalid with the key."""
    secret = key.encode(errors="surrogateescape") if key else _OF_PROCESS
    return hmac.digest(secret, b"a form of the console of Recallog", "sha256").hex()


def check(given: str | None, key: str | None) -> None:
    """Raise `RequestError` unless the token of a form belongs to its caller."""
    if not hmac.compare_digest((given or "").encode(errors="replace"), token_for(key).encode()):
        message = "the form is not from a page of this server, or the server has restarted since: load the page again"
        raise RequestError(403, message, rule="csrf")
