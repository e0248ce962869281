"""The map of ids and slots against a dictionary."""

import numpy as np
import pytest

from embedding.server.rows.rowmap import RowMap


@pytest.mark.parametrize("seed", range(3))
def test_it_answers_as_a_dictionary_would(seed):
    rng = np.random.default_rng(seed)
    mapped, slot_of = RowMap(), {}
    free, next_id, next_slot = [], 0, 0
    for _ in range(300):
        n = int(rng.integers(1, 200))
        reused = [free.pop() for _ in range(min(n, len(free)))]
        slots = [*reused, *range(next_slot, next_slot + n - len(reused))]
        next_slot += n - len(reused)
        ids = np.arange(next_id, next_id + n)
        next_id += n
        mapped.put(np.array(slots), ids)
        slot_of.update(zip(ids.tolist(), slots, strict=True))
        # Old survivors are left between runs of new ids, as frequent words are.
        gone = rng.choice(list(slot_of), size=int(len(slot_of) * rng.random() * 0.3), replace=False)
        at = np.array([slot_of.pop(i) for i in gone.tolist()], dtype=np.int64)
        mapped.free(at)
        free.extend(at.tolist())
        asked = rng.integers(0, next_id, 500)
        expected = [slot_of.get(i, -1) for i in asked.tolist()]
        assert mapped.slots(asked).tolist() == expected
    alive = sorted(slot_of)
    assert mapped.ids(mapped.used()).tolist() == alive
    assert mapped.slots(np.array(alive)).tolist() == [slot_of[i] for i in alive]


def test_its_memory_goes_with_the_slots_and_not_with_the_ids_given():
    mapped = RowMap()
    slots = np.arange(1000)
    sizes = []
    for round_ in range(200):
        mapped.put(slots, slots + 1000 * round_)
        mapped.used()
        sizes.append(mapped.nbytes)
        mapped.free(slots)
    assert max(sizes) == sizes[0]


def test_survivors_of_all_ages_do_not_pile_up():
    """An adversary's choice: survivors that all fall where the newest run of ids lies."""
    mapped, size = RowMap(), 4096
    old = np.arange(300) * size
    mapped.put(np.arange(300), old)
    run = np.arange(400 * size, 400 * size + 300)
    mapped.put(np.arange(300, 600), run)
    assert mapped.slots(old).tolist() == list(range(300))
    assert mapped.slots(run).tolist() == list(range(300, 600))
    assert mapped.slots(old + 1).tolist() == [-1] * 300


def test_slots_that_come_one_by_one_have_little_room_ahead_of_them():
    mapped = RowMap()
    for slot in range(0, 50_000, 500):
        slots = np.arange(slot, slot + 500)
        mapped.put(slots, slots)
        assert mapped.capacity <= max(1_024, 1.25 * (slot + 500))
