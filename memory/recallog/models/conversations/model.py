"""The memory model of conversations: messages of sessions, compacted when they grow long."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recallog.model import Model
from recallog.models.conversations.operations import Conversation

if TYPE_CHECKING:
    from recallog.access import MemoryAccess
    from recallog.reactors.reactor import Reactor


def _reactors(access: "MemoryAccess") -> "Sequence[Reactor]":
    from recallog.models.conversations.askers import SUMMARIZER
    from recallog.models.conversations.reactor import Compaction
    from recallog.reactors.misconfigured import unless_misconfigured

    return [unless_misconfigured(Compaction.kinds, lambda: Compaction(access, access.asker(SUMMARIZER)))]


MODEL = Model(name="conversations", after=("items",), operations=Conversation, reactors=_reactors)
