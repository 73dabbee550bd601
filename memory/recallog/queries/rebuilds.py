"""Rebuilds of the views and of the index: planning, running and cancelling them."""

from dataclasses import dataclass
from functools import partial

from recallog.components import Components
from recallog.index.semantic_index import IndexInProcess
from recallog.reading.projection_group import INDEX, ProjectionGroup
from recallog_projections.concurrency import gather_limited
from recallog_projections.stores.store import Generation
from recallog_schemas.errors import InvariantViolation
from recallog_schemas.views import RebuildPlan, RebuildReport
from recallog_streams import generations
from recallog_streams import rebuild as rebuilding
from recallog_streams.progress import Progress


async def plan_rebuild(components: Components, what: str) -> list[RebuildPlan]:
    """The plan of a rebuild now. Changes nothing."""
    ends = await components.ledger.ends()
    plans = []
    for views in await groups(components, what):
        concerned = await rebuilding.find_concerned(views.builder, range(len(ends)))
        plans += [
            RebuildPlan(
                views=views.name,
                partition=partition,
                records=ends[partition],
                replaces=pointer.active.id if pointer.active else None,
                joins=pointer.building.id
                if pointer.building and rebuilding.is_joined(views.builder, pointer)
                else None,
            )
            for partition, pointer in concerned.items()
        ]
    return plans


@dataclass(frozen=True, slots=True)
class RebuildOptions:
    """Options of a rebuild."""

    accept: bool
    """Whether the new generation may lack records that the live one has."""
    drop: bool
    """Whether the present views or index are deleted first, even if they belong to another ledger."""
    workers: int | None
    """As in `ProjectionGroup.catching_up`; so is `throttle`."""
    throttle: float


async def rebuild(
    components: Components, what: str, options: RebuildOptions, progress: Progress | None
) -> list[RebuildReport]:
    """Rebuild all views, or the index. Processes that rebuild at the same time share the partitions."""
    concerned = await groups(components, what)
    if options.drop:
        await components.ledger.ends()  # the views must not be lost if the ledger cannot be read
        for views in concerned:
            await views.store.clear()
    reports = []
    for views in concerned:
        async with views.catching_up(options.workers, options.throttle) as catch_up:
            reports += await rebuilding.rebuild(
                views.name,
                views.builder,
                progress,
                accept=options.accept,
                catch_up=catch_up,
                at_once=catch_up.partitions_at_once,
            )
    return reports


async def reindex(components: Components, model: str, progress: Progress | None) -> list[RebuildReport]:
    """Build the index with another embedder beside the live index, then cut over."""
    moved = await (await _index(components)).indexer.group_for_move(model)
    return await rebuilding.rebuild(moved.name, moved.builder, progress, accept=False)


async def abort_rebuild(components: Components, what: str) -> list[str]:
    """Cancel all rebuilds in progress, of the views or of the index, and return the ids of the cancelled
    generations."""
    partitions = range(len(await components.ledger.ends()))
    aborted: list[Generation | None] = []
    for views in await groups(components, what):
        aborted += await gather_limited(partial(generations.abort, views.builder), partitions)
    return [generation.id for generation in aborted if generation is not None]


async def groups(components: Components, what: str) -> list[ProjectionGroup]:
    """The groups of the views, or the group of the index. Raises `SettingsError` if the index is off, and
    `IndexUnavailable`."""
    return [await (await _index(components)).indexer.views()] if what == INDEX else components.groups()


async def _index(components: Components) -> IndexInProcess:
    index = components.require_index()
    if not isinstance(index, IndexInProcess):
        raise InvariantViolation("the process that serves the index executes this operation")
    await index.begin()  # one process opens the engine of a folder
    return index
