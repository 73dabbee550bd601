"""Views depend on the records alone: not on where batches end, and not on who folds them."""

import random

import pytest

from recallog_projections import episodic
from support.folding import all_rows, finish, folded, ledger_of, remembered
from support.oracle import expect
from support.random_events import AGENTS, SPACES, bytes_of_an_event, poison


def recorded(seed: int) -> tuple[list[bytes], bool]:
    """A ledger with repeats, conflicts and poison in it, and whether its ids are unique."""
    dice = random.Random(seed)
    unique_ids = dice.random() < 0.5
    values: list[bytes] = []
    for _ in range(dice.randrange(5, 60)):
        values.append(bytes_of_an_event(dice))
        if dice.random() < 0.15:
            values.append(poison(dice))
        if not unique_ids and dice.random() < 0.2:
            values.append(dice.choice(values))
    return values, unique_ids


@pytest.mark.parametrize("seed", range(60))
def test_the_rows_are_the_same_wherever_batches_end(seed: int) -> None:
    values, unique_ids = recorded(seed)
    folds = [
        all_rows(*folded(ledger_of(values, unique_ids=unique_ids, batch_records=records)))
        for records in (1, 2, 3, 7, 1000)
    ]
    assert all(rows == folds[0] for rows in folds)


@pytest.mark.parametrize("seed", range(60))
def test_at_every_position_an_agent_sees_exactly_what_it_may(seed: int) -> None:
    values, unique_ids = recorded(seed)
    for until in random.Random(seed).sample(range(len(values) + 1), 5):
        projector, generation = folded(ledger_of(values, unique_ids=unique_ids), until=until)
        expected = expect(values[:until], unique_ids=unique_ids)
        for space in SPACES:
            for agent in AGENTS:
                snapshot = finish(
                    projector.store.read(0, logs=episodic.logs(space, agent, 10_000), generation=generation)
                )
                assert remembered(snapshot) == expected.visible(space, agent)
