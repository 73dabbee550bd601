"""Servers of the folders of `browser.worlds`: a folder is filled, and its server started, when a test needs it."""

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from browser import worlds
from recallog import Settings
from recallog_service.access import Grant, Verb, keys
from recallog_service.access.stores import store_of
from recallog_tools import browsing
from support import guarded_world

READER = Grant(spaces=(guarded_world.SPACE,), agent="*", verbs=frozenset({Verb.READ}))
AGENT = Grant(spaces=(guarded_world.SPACE,), agent=guarded_world.ANNA, verbs=frozenset({Verb.READ}))
OPERATOR = Grant.everything()


@dataclass
class World:
    """A folder with a server."""

    home: Path
    url: str

    def make_key(self, grant: Grant) -> str:
        token, stored = keys.make("test", grant)
        worlds.in_thread(lambda: store_of(Settings(home=self.home)).put(stored))
        return token


@dataclass
class Worlds:
    """All folders, each filled and served once."""

    folder: Path
    running: ExitStack
    _served: dict[str, World] = field(default_factory=dict)

    def world(self, fill: Callable[[Path], Awaitable[None]]) -> World:
        """The server of a folder that a function of `browser.worlds` fills."""
        name = fill.__name__
        if name not in self._served:
            home = self.folder / name
            home.mkdir()
            worlds.in_thread(lambda: fill(home))
            url = self.running.enter_context(browsing.serve(home, "--index", "off"))
            self._served[name] = World(home, url)
        return self._served[name]
