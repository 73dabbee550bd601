"""The oracle, computed for one space at a time: its time is quadratic in the number of events it covers."""

from functools import cached_property
from typing import Any

from support.oracle import Expected, Owed, Said

_NOTHING = Expected()


class OfSpaces(Expected):
    """The same answers, each computed from the events of its space only, since spaces share nothing."""

    def __init__(self, whole: Expected) -> None:
        super().__init__(**vars(whole))

    @cached_property
    def _of(self) -> dict[str, Expected]:
        spaces: dict[str, Expected] = {}
        for memory in self.counted:
            spaces.setdefault(memory.space, Expected()).counted.append(memory)
        return spaces

    def _in(self, space: str) -> Expected:
        return self._of.get(space, _NOTHING)

    def memories(self, space: str, agent: str) -> list[Said]:
        return self._in(space).memories(space, agent)

    def agents(self, space: str) -> list[str]:
        return self._in(space).agents(space)

    def setting(self, space: str, agent: str, field: str) -> Any:
        return self._in(space).setting(space, agent, field)

    def scene_kinds(self, space: str) -> list[str]:
        return self._in(space).scene_kinds(space)

    def clock(self, space: str) -> int:
        return self._in(space).clock(space)

    def reflection(self, space: str, agent: str) -> Owed:
        return self._in(space).reflection(space, agent)
