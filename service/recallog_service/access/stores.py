"""Which store has the keys of a memory."""

from recallog import Settings
from recallog_projections.plugins import scheme_of
from recallog_schemas import extras
from recallog_service.access.keys import KeyStore

_REDIS = frozenset({"redis", "rediss", "unix"})


def store_of(settings: Settings) -> KeyStore:
    """Where the keys of the memory with these settings are: beside its views in Redis, or in its folder.

    Raises `SettingsError` if the client of Redis is not installed.
    """
    if settings.views is not None and "://" in settings.views and scheme_of(settings.views) in _REDIS:
        with extras.needed("cluster"):
            from recallog_service.access.keys_in_redis import KeysInRedis

        return KeysInRedis(settings.views)
    from recallog_service.access.key_file import KeyFile

    return KeyFile(settings.home)
