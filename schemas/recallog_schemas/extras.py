"""Packages that only some users need: the errors if one of them is not installed."""

from collections.abc import Iterator
from contextlib import contextmanager

from recallog_schemas.errors import SettingsError


@contextmanager
def import_extra(extra: str) -> Iterator[None]:
    """Import packages of an extra. Raises `SettingsError` if one is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing(error, extra) from None


def missing(error: ModuleNotFoundError, extra: str) -> SettingsError:
    """The error of a package that is not installed, with the extra that installs it."""
    package = str(error.name).partition(".")[0]
    install = how_to_install(f"'.[{extra}]'")
    return SettingsError(f"{package} is not installed. {install}")


def how_to_install(what: str) -> str:
    """How to install a package of the repository, or an extra such as `'.[server]'`."""
    place = f"./adapters/{what}" if what.startswith("recallog-") else what
    return f"Install it: pip install {place} in a clone of Recallog"
