"""`wrap`: clients of OpenAI and Anthropic that remember, by the package recallog-wrap."""

from typing import Any, TypeVar

from recallog_projections import plugins
from recallog_schemas.errors import SettingsError
from recallog_schemas.extras import how_to_install

Client = TypeVar("Client")


def wrap(client: Client, **options: Any) -> Client:
    """A copy of a client of OpenAI or Anthropic that stores the messages of its conversations and recalls them.

    ```python
    client = recallog.wrap(OpenAI(), space="home", agent="assistant")
    ```

    The package recallog-wrap implements it, and describes the options. Raises `SettingsError` without it.
    """
    wrapped = plugins.load(plugins.WRAPPERS, "clients")
    if wrapped is None:
        raise SettingsError(f"recallog.wrap is in the package recallog-wrap. {how_to_install('recallog-wrap')}")
    remembering: Client = wrapped(client, **options)
    return remembering
