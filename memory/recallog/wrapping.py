"""`wrap`: clients of OpenAI and Anthropic that remember, by the package recallog-wrap."""

from typing import Any, TypeVar

from recallog_projections import plugins
from recallog_schemas.errors import SettingsError

Client = TypeVar("Client")


def wrap(client: Client, **options: Any) -> Client:
    """A copy of a client of OpenAI or Anthropic that remembers what is said and recalls it.

    ```python
    client = recallog.wrap(OpenAI(), space="home", agent="assistant")
    ```

    The package recallog-wrap does so, and describes the options. Raises `SettingsError` without it.
    """
    wrapped = plugins.load(plugins.WRAPPERS, "clients")
    if wrapped is None:
        raise SettingsError(
            "recallog.wrap is in a package of its own. Install it: pip install ./adapters/recallog-wrap in a clone of "
            "Recallog"
        )
    remembering: Client = wrapped(client, **options)
    return remembering
