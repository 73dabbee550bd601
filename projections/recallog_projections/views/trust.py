"""Source classes under the settings of a space: see `recallog_schemas.kinds.trust`."""

from recallog_projections.views.settings import SpaceSettings, kind_of
from recallog_schemas import Event
from recallog_schemas.kinds.trust import (
    Purpose,
    SourceClass,
    TrustSettings,
    class_of_kind,
    find_least,
    is_untrusted,
    rank_of,
    read_stated,
)

_DEFAULTS = TrustSettings()


def settings_of(space: SpaceSettings | None) -> TrustSettings:
    """What a space with these settings trusts."""
    return _DEFAULTS if space is None or space.trust is None else TrustSettings.model_validate(space.trust)


class SourceClasses:
    """The source classes of the events of one space: a pure function of the event and of the space's settings."""

    def __init__(self, space: SpaceSettings | None = None) -> None:
        self._space = space
        self._settings = settings_of(space)

    def class_of(self, event: Event) -> SourceClass:
        """The class of an event: the one that the space sets for its kind and its author, or that of its kind; or a
        less trusted one that the event states."""
        own = self._settings
        said = [of[name] for of, name in ((own.kinds, event.kind), (own.agents, event.agent)) if name in of]
        given = find_least(said) if said else class_of_kind(kind_of(self._space, event.kind))
        return find_least((given, read_stated(event.payload)))

    def allows(self, purpose: Purpose, event: Event) -> bool:
        """Whether the space makes facts, beliefs or summaries from the event."""
        least = getattr(self._settings, purpose)
        return (rank_of(self.class_of(event)) or 0) >= (rank_of(least) or 0)

    def takes_untrusted(self, purpose: Purpose) -> bool:
        """Whether the space makes facts, beliefs or summaries from a source that is less trusted than agents."""
        return is_untrusted(getattr(self._settings, purpose))
