"""Which store has the keys of a memory."""

from recallog import Settings
from recallog.composition import database_of
from recallog_service.access.keys import KeyStore


def store_of(settings: Settings) -> KeyStore:
    """Where the keys of the memory with these settings are: in the database of its views, or in its folder.

    Raises `SettingsError` if the client of the database is not installed.
    """
    if settings.views is not None and (documents := database_of(settings).documents("keys")) is not None:
        from recallog_service.access.keys_in_database import KeysInDatabase

        return KeysInDatabase(documents)
    from recallog_service.access.key_file import KeyFile

    return KeyFile(settings.home)
