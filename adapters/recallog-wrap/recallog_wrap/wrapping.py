"""`wrap`: a client of OpenAI or Anthropic with a memory."""

import os
from collections.abc import Callable
from typing import TypeVar
from uuid import uuid4

from recallog import InvalidArgument
from recallog.sync import Memory, Remote
from recallog_wrap.clients import remembering_http
from recallog_wrap.remembering import AnyMemory, Remembering

Client = TypeVar("Client")

RECALLED = 5
RECALL_SECONDS = 1.0


def wrap(
    client: Client,
    *,
    space: str,
    agent: str,
    session: str | Callable[[], str] | None = None,
    memory: AnyMemory | None = None,
    home: str | os.PathLike[str] | None = None,
    recalled: int = RECALLED,
    recall_seconds: float = RECALL_SECONDS,
) -> Client:
    """A copy of a client, synchronous or asynchronous, that remembers.

    Messages of the user and answers of the model are stored in the conversation `session`. By default, it is a new one
    for each call of `wrap`. A function can name the session of each request. Before a question is sent, up to
    `recalled` memories of other sessions precede it in the last message, if they are found within `recall_seconds`. An
    answer that ends early, or is not read to its end, is stored as far as it has arrived.

    `memory` is a memory of `recallog.sync`, even in asynchronous programs. By default, the folder `home` is opened, or
    the folder that the environment names. A failure of the memory is logged, and the client answers without it.
    """
    http = getattr(client, "_client", None)
    if not hasattr(http, "send") or not hasattr(client, "copy"):
        raise InvalidArgument(
            f"client: {type(client).__name__} is not a client of OpenAI or Anthropic", path="client", rule="client"
        )
    if memory is not None and not isinstance(memory, Memory | Remote):
        raise InvalidArgument("memory: should be a memory of recallog.sync", path="memory", rule="memory")
    named = session if session is not None else f"chat-{uuid4().hex}"
    remembering = Remembering(
        memory if memory is not None else Memory.open(home),
        space,
        agent,
        named if callable(named) else lambda: str(named),
        recalled,
        recall_seconds,
    )
    wrapped: Client = client.copy(http_client=remembering_http(http, remembering))
    return wrapped
