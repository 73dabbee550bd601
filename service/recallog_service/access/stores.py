"""Chooses the store of a memory's keys."""

from recallog import Settings
from recallog.composition import database_of
from recallog_service.access.keys import KeyStore


def store_of(settings: Settings) -> KeyStore:
    """The store of keys for these settings: in the database of the views, or in the folder of the memory.

    Raises `SettingsError` if the client of the database is not installed.
    """
    if settings.views is not None and (documents := database_of(settings).documents("keys")) is not None:
        from recallog_service.access.keys_in_database import KeysInDatabase

        return KeysInDatabase(documents)
    from recallog_service.access.key_file import KeyFile

    return KeyFile(settings.home)
