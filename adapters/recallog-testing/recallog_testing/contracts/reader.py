"""The contract of readers of files. A format's test class inherits the suite and implements `format` and `files`."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress

from recallog import Event, Memory
from recallog_schemas import codec
from recallog_schemas.errors import InvalidEvent
from recallog_service.formats.format import Format, Options
from recallog_service.formats.item import Item
from recallog_service.formats.source import Source
from recallog_testing.running import run

_OTHERS = (b"\xff\xfe\x00", b"{", b"[]", b'{"unrelated": 1}\n', b"1\n2\n")
"""Files that do not belong to any format of records."""


class ReaderContract(ABC):
    """A file is recognised and read the same way each time, and nothing of it is lost silently."""

    @abstractmethod
    def format(self) -> Format:
        """The format."""

    @abstractmethod
    def files(self) -> Mapping[str, bytes]:
        """Files in the format by name, each with at least one event."""

    def _source(self, data: bytes) -> Source:
        return Source(data.splitlines(keepends=True))

    def _items(self, data: bytes, options: Options | None = None) -> list[Item]:
        return list(self.format().read(self._source(data), options or Options()))

    def _events(self, data: bytes) -> list[Event]:
        return [item.event for item in self._items(data) if item.event is not None]

    def test_its_files_have_its_structure(self) -> None:
        unrecognised = [
            name for name, data in self.files().items() if not self.format().structure.fits(self._source(data).sample)
        ]
        assert unrecognised == []

    def test_files_of_others_have_not(self) -> None:
        assert not [data for data in _OTHERS if self.format().structure.fits(self._source(data).sample)]

    def test_each_item_is_an_event_an_error_or_something_left_out(self) -> None:
        for data in self.files().values():
            assert [
                [item.event, item.error, item.left_out].count(None) for item in self._items(data) if item.number >= 1
            ] == [2] * len(self._items(data))

    def test_a_second_reading_gives_the_same_events_with_the_same_ids_and_times(self) -> None:
        for data in self.files().values():
            first, second = self._events(data), self._events(data)
            assert first
            assert list(map(codec.encode, first)) == list(map(codec.encode, second))

    def test_two_events_of_a_file_have_two_ids(self) -> None:
        for data in self.files().values():
            names = [(event.space, event.id) for event in self._events(data)]
            assert len(names) == len(set(names))

    def test_the_space_of_the_caller_is_the_space_of_all_events_or_their_prefix(self) -> None:
        for data in self.files().values():
            events = [item.event for item in self._items(data, Options(space="chosen")) if item.event is not None]
            assert all(event.space.startswith("chosen") for event in events)

    def test_a_file_that_ends_early_gives_the_same_beginning_or_an_error(self) -> None:
        for data in self.files().values():
            whole = [event.id for event in self._events(data)]
            try:
                cut = [event.id for event in self._events(data[: len(data) // 2])]
            except InvalidEvent:
                continue
            assert set(cut) <= set(whole)

    def test_a_file_in_another_format_is_refused_or_gives_no_events(self) -> None:
        for data in _OTHERS:
            with suppress(InvalidEvent):
                assert self._events(data) == []

    def test_a_second_ingest_adds_nothing(self) -> None:
        async def work() -> None:
            async with Memory.in_memory() as memory:
                for data in self.files().values():
                    first = await memory.publish_many(self._events(data))
                    assert await memory.publish_many(self._events(data)) == first
                assert (await memory.admin.verify()).clean

        run(work())
