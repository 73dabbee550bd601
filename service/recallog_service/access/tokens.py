"""JSON Web Tokens of an identity provider, whose claim `recallog` is a grant."""

from typing import Any, NamedTuple

import jwt
from pydantic import ValidationError

from recallog import Settings
from recallog_schemas.errors import SettingsError, Unauthorized
from recallog_service.access.grants import Grant

CLAIM = "recallog"
"""The claim that is a grant: `{"spaces": ["acme/*"], "agent": "baker", "verbs": ["read", "publish"]}`."""

_LEEWAY_SECONDS = 10.0
"""How far the clocks of the provider and of this machine may differ."""


class Claims(NamedTuple):
    """The content of a valid token."""

    subject: str
    grant: Grant


class Tokens:
    """Checks tokens by the key, the algorithm, the audience and the issuer that the settings name.

    Raises `SettingsError` if the key does not suit the algorithm.
    """

    def __init__(self, settings: Settings) -> None:
        key = "" if settings.jwt_key is None else settings.jwt_key.get_secret_value()
        self._key, self._settings = key, settings
        if settings.jwt_algorithm.startswith("HS"):
            least = int(settings.jwt_algorithm.removeprefix("HS")) // 8  # RFC 7518, 3.2: as many bytes as the hash
            if len(key.encode()) < least:
                raise SettingsError(
                    f"RECALLOG_JWT_KEY: should have at least {least} bytes for {settings.jwt_algorithm}"
                )
        try:
            jwt.get_algorithm_by_name(settings.jwt_algorithm).prepare_key(key)
        except (jwt.PyJWTError, NotImplementedError, ValueError, TypeError) as error:
            message = f"RECALLOG_JWT_KEY: is not a key of {settings.jwt_algorithm} ({type(error).__name__})"
            raise SettingsError(message) from None

    def claims(self, token: str) -> Claims:
        """The claims of a token. Raises `Unauthorized` if it is not valid or has no grant."""
        try:
            found: dict[str, Any] = jwt.decode(
                token,
                self._key,
                algorithms=[self._settings.jwt_algorithm],
                audience=self._settings.jwt_audience,
                issuer=self._settings.jwt_issuer,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "sub"]},
            )
            return Claims(str(found["sub"]), Grant.model_validate(found.get(CLAIM)))
        except (jwt.PyJWTError, ValidationError):
            raise Unauthorized("the token is invalid or expired, or its claim recallog is not a grant") from None
