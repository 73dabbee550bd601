"""Who sees an event."""

from collections.abc import Collection

from recallog_schemas import Event


def is_shared(event: Event, shared_kinds: Collection[str]) -> bool:
    """Whether every agent of the space sees it: of a shared kind, and addressed to nobody in particular."""
    return event.audience is None and event.kind in shared_kinds


def readers(event: Event) -> tuple[str, ...]:
    """The agents that see an event which is not shared: who acted, and whom it is addressed to."""
    if event.audience is None or event.audience == (event.agent,):
        return (event.agent,)
    return tuple(dict.fromkeys((event.agent, *event.audience)))


def sees(agent: str, event: Event, shared_kinds: Collection[str]) -> bool:
    """Whether `agent` sees `event` in a space whose shared kinds were `shared_kinds` when it was said."""
    return is_shared(event, shared_kinds) or agent in readers(event)
