"""The overlay scans what the store below it would hold if its commits had been made there."""

from hypothesis import given, settings
from hypothesis import strategies as st

from contract.random_commits import changes, pages
from recallog_projections.rows import Changes
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.overlay import OverlayStore
from recallog_projections.stores.store import Outcome, Store, StoredRow
from recallog_testing.contracts.store import A, at
from support.events import run


@settings(max_examples=60)
@given(
    below=st.lists(changes(), max_size=5),
    above=st.lists(changes(), max_size=5),
    limit=st.integers(1, 5) | st.integers(20, 50),
    newest_first=st.booleans(),
)
def test_an_overlay_scans_like_one_store(
    below: list[Changes], above: list[Changes], limit: int, newest_first: bool
) -> None:
    async def both() -> tuple[list[object], list[object]]:
        base, whole = MemoryStore(), MemoryStore()
        for store in (base, whole):
            await store.create(A)
            await store.activate(A)
            await committed(store, below, 0)
        overlay = OverlayStore(base, A, at(len(below) - 1))
        # An overlay does not scan logs.
        rows = [Changes(each.rows) for each in above]
        for store in (overlay, whole):
            await committed(store, rows, len(below))
        return await scanned(overlay), await scanned(whole)

    async def scanned(store: Store) -> list[object]:
        of_owners = [(owner, prefix) for owner in ("", "a") for prefix in ("", "a", "1")]
        return [await items(store), *[await items(store, "a", *each) for each in ((None, ""), *of_owners)]]

    async def items(
        store: Store, space: str | None = None, owner: str | None = None, prefix: str = ""
    ) -> list[StoredRow]:
        chunks = await pages(
            store, "t", limit=limit, space=space, owner=owner, prefix=prefix, newest_first=newest_first
        )
        assert all(len(chunk.items) <= limit for chunk in chunks)
        assert {chunk.checkpoint.offset for chunk in chunks} == {len(below) + len(above) - 1}
        return [item for chunk in chunks for item in chunk.items]

    found, expected = run(both())
    assert found == expected


async def committed(store: Store, commits: list[Changes], first: int) -> None:
    for offset, each in enumerate(commits, first):
        assert await store.commit(A, at(offset - 1), at(offset), each) is Outcome.APPLIED
