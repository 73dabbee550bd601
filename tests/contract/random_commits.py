"""Random commits and everything a store returns for them: two stores that meet the contract return the same."""

from collections.abc import Sequence

from hypothesis import strategies as st

from recallog_projections.rows import Changes
from recallog_projections.stores.store import Chunk, Store
from recallog_projections.tables import LogName, RowKey
from recallog_testing.contracts.store import A, at

NAMES = ("", "a", "b", "B", "ä", "a.b", "a/b", "10", "9")
"""Of spaces, owners and keys."""


def changes(names: Sequence[str] = NAMES) -> st.SearchStrategy[Changes]:
    """Rows of the tables t and u, entries of the logs l and m."""
    name = st.sampled_from(names)
    needs = st.builds(RowKey, st.sampled_from(["t", "u"]), name, name, name)
    logs = st.builds(LogName, st.sampled_from(["l", "m"]), name, name)
    entries = st.builds(
        lambda entries, times: entries * times,
        st.lists(st.binary(max_size=4), min_size=1, max_size=9),
        st.sampled_from([1, 1, 1, 12]),  # more entries than the log holds, in many segments
    )
    return st.builds(
        lambda rows, logs: Changes(rows, logs, {"l": 3, "m": 70}),
        st.dictionaries(needs, st.none() | st.binary(max_size=4), max_size=8),
        st.dictionaries(logs, entries, max_size=4),
    )


async def answers(
    store: Store, commits: Sequence[Changes], *, limit: int, space: str | None, newest: int
) -> list[object]:
    """Outcomes, the reads after each commit, and finally all pages of all scans."""
    found: list[object] = [await store.create(A)]
    for offset, changes in enumerate(commits):
        found.append(await store.commit(A, at(offset - 1), at(offset), changes))
        snapshot = await store.read(0, list(changes.rows), [(name, newest) for name in changes.logs], generation=A)
        found += [list(snapshot.rows), [(list(tail.entries), tail.total) for tail in snapshot.logs]]
    for table in ("t", "u", "l", "m"):
        found += await pages(store, table, limit=limit, space=space)
    for owner, prefix in ((None, ""), *((owner, prefix) for owner in ("", "a") for prefix in ("", "a", "1"))):
        found += await pages(store, "t", limit=limit, space="a", owner=owner, prefix=prefix, newest_first=True)
        found += await pages(store, "t", limit=limit, space="a", owner=owner, prefix=prefix)
    return found


async def pages(
    store: Store,
    table: str,
    *,
    limit: int,
    space: str | None = None,
    owner: str | None = None,
    prefix: str = "",
    newest_first: bool = False,
) -> list[Chunk]:
    """A whole scan of generation A."""
    chunks: list[Chunk] = []
    while not chunks or not chunks[-1].last:
        after = chunks[-1].items[-1].row_key if chunks else None
        chunks.append(
            await store.scan(
                A,
                table,
                space=space,
                owner=owner,
                prefix=prefix,
                newest_first=newest_first,
                after=after,
                limit=limit,
            )
        )
    return chunks
