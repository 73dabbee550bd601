"""Packages that only some users need: what is raised where one of them is not installed."""

from collections.abc import Iterator
from contextlib import contextmanager

from recallog_schemas.errors import SettingsError


@contextmanager
def needed(extra: str) -> Iterator[None]:
    """Import packages of an extra. Raises `SettingsError` if one is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing(error, extra) from None


def missing(error: ModuleNotFoundError, extra: str) -> SettingsError:
    """The error of a package that is not installed, with the extra that installs it."""
    package = str(error.name).partition(".")[0]
    return SettingsError(f"{package} is not installed. Install it: pip install '.[{extra}]' in a clone of Recallog")
