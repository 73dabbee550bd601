"""The contract of memory models. A model's test class inherits the suite and implements `model` and `events`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

import recallog
from recallog import Event, Memory, Model
from recallog_testing.drivers import ProjectionDriver
from recallog_testing.running import run


class ModelContract(ABC):
    """The views and answers of a model depend only on the events."""

    @abstractmethod
    def model(self) -> Model:
        """The model."""

    @abstractmethod
    def events(self) -> Sequence[Event]:
        """Events with ids: at least one of each kind of the model. Projections can apply all of them."""

    def _in_memory(self, work: Callable[[Memory], Coroutine[Any, Any, None]]) -> None:
        """Call `work` with a memory that has the events."""
        model = self.model()

        async def with_events() -> None:
            others = [each for each in recallog.MODELS if each.name != model.name]
            async with Memory.in_memory(models=[*others, model]) as memory:
                await memory.publish_many(self.events())
                await work(memory)

        run(with_events())

    def test_it_has_a_name_and_kinds_of_which_there_are_events(self) -> None:
        model = self.model()
        assert model.name == model.name.lower().strip() != ""
        assert {kind.name for kind in model.kinds} <= {event.kind for event in self.events()}

    def test_events_are_folded_without_dead_letters_and_a_repeat_changes_nothing(self) -> None:
        async def work(memory: Memory) -> None:
            before = await memory.admin.status()
            await memory.publish_many(self.events())
            await memory.catch_up()
            assert (await memory.admin.dead_letters()).items == ()
            assert (await memory.admin.status()).records == before.records == len(self.events())

        self._in_memory(work)

    @pytest.mark.parametrize("unique_ids", [True, False], ids=["unique ids", "repeated ids"])
    def test_rows_do_not_depend_on_where_batches_end(self, unique_ids: bool) -> None:
        for number in range(len(self.model().projections())):
            driver = ProjectionDriver(self.model().projections()[number], unique_ids=unique_ids)
            for event in self.events():
                driver.given(event)
                driver.given(event)
            driver.check()

    def test_a_rebuild_gives_the_rows_of_before(self) -> None:
        async def work(memory: Memory) -> None:
            await memory.catch_up()
            assert (await memory.admin.verify()).clean
            assert (await memory.admin.rebuild()).ok
            assert (await memory.admin.verify()).clean

        self._in_memory(work)

    def test_what_is_due_is_answered_once(self) -> None:
        async def work(memory: Memory) -> None:
            answered = [reaction.trigger for reaction in (await memory.react()).items]
            assert len(answered) == len(set(answered))
            again = [reaction.trigger for reaction in (await memory.react()).items]
            assert not {*answered} & {*again}
            assert (await memory.admin.verify()).clean

        self._in_memory(work)

    def test_a_memory_has_its_facade_and_one_without_the_model_has_not(self) -> None:
        operations = self.model().operations
        if operations is None or not (name := operations.attribute):
            pytest.skip("its operations are those of the memory itself, or there are none")

        async def work(memory: Memory) -> None:
            assert isinstance(getattr(memory, name), operations)

        self._in_memory(work)
        without = [each for each in recallog.MODELS if each.name != self.model().name]
        assert name not in Memory.in_memory(models=without).facades
