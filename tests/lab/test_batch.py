"""Messages of a round of L-BFGS: there and back, and what is malformed is refused."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.exchange.codec import check, from_message, to_message
from embedding.exchange.wire import decode, encode
from embedding.kernel.errors import RefusedError
from embedding.models.base import LocalBlock
from generated import examples
from yeoron_lab.lbfgs.batch import Offer, PortionInput, Result, Task, Work


def codes(*values: int) -> Any:
    return np.array(values, dtype=np.int32)


BLOCK = LocalBlock(
    tokens=codes(0, 1, -1, 1),
    sentences=codes(0, 2, 4),
    keep=np.ones(2, dtype=np.float32),
    pool=codes(0, 2, 1),
    weights=np.array([1.0, 0.5], dtype=np.float32),
)
MATERIAL = PortionInput.of(BLOCK, seed=7)
UNWEIGHTED = PortionInput.of(replace(BLOCK, weights=None), seed=8)
OFFER = Offer(
    number=3,
    words=np.array([5, 9]),
    extras=np.array([1]),
    inward=np.array([1, 2], dtype=np.float32),
    outward=np.array([1, 2, 3], dtype=np.float32),
    pairs=2,
    tokens=3,
    material=MATERIAL,
)


def received(record: Any) -> Any:
    """As it comes out of the wire, its arrays looked at."""
    batch, header = encode(to_message(record))
    found = from_message(type(record), decode(batch, pa.py_buffer(header)))
    check(found, "batch")
    return found


def same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if hasattr(one, "__dataclass_fields__"):
        names = [each.name for each in fields(one)]
        return all(same(getattr(one, name), getattr(other, name)) for name in names)
    return bool(np.array_equal(one, other))


@pytest.mark.parametrize("material", [MATERIAL, UNWEIGHTED, None])
def test_offers_tasks_and_answers_come_out_as_they_went_in(material: PortionInput | None) -> None:
    offer = replace(OFFER, material=material)
    assert same(received(offer), offer)
    rows = np.ones((2, 4), dtype=np.float32), np.zeros((3, 4), dtype=np.float32)
    task = Task(1, 2, "n0", 3, *rows, material)
    assert same(received(task), task)
    result = Result.of(task, 1.5, *rows)
    assert same(received(Work(result)).result, result)
    assert received(Work()).result is None


@pytest.mark.parametrize(
    "change",
    [
        {"tokens": codes(0, 2, 1, 1)},
        {"tokens": codes(0, -2, 1, 1)},
        {"pool": codes(0, 3)},
        {"pool": codes(-1)},
        {"sentences": codes(0, 3, 2, 4)},
        {"sentences": codes(0, 2, 5)},
        {"sentences": codes()},
        {"keep": np.ones(1, dtype=np.float32)},
        {"weights": np.array([1.0, np.nan], dtype=np.float32)},
    ],
)
def test_text_that_does_not_fit_its_rows_is_refused(change: dict[str, Any]) -> None:
    """Kernels look at what it names without a check of their own."""
    bad = replace(OFFER, material=PortionInput.of(replace(BLOCK, **change), seed=7))
    with pytest.raises(RefusedError, match=r"does not fit|accepted"):
        received(bad)


@pytest.mark.parametrize(
    "change",
    [
        {"inward": np.ones(3, dtype=np.float32)},
        {"outward": np.array([1, -1, 0], dtype=np.float32)},
        {"outward": np.array([1, np.inf, 0], dtype=np.float32)},
        {"number": -1},
        {"pairs": 1.5},
    ],
)
def test_an_offer_that_makes_no_sense_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(RefusedError, match="batch"):
        received(replace(OFFER, **change))


keys = st.sampled_from(["round", "evaluation", "node", "number", "loss"])
values = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3))


@settings(max_examples=examples(100))
@given(st.dictionaries(keys, values, min_size=1))
def test_an_answer_is_read_or_refused(change: dict[str, Any]) -> None:
    rows = np.ones((1, 2), dtype=np.float32)
    message = to_message(Work(Result(1, 2, "n0", 3, 0.5, rows, rows)))
    cells = ["round", "evaluation", "node", "number", "loss"]
    row = list(message.header["result"])
    for name, value in change.items():
        row[cells.index(name)] = value
    try:
        found = from_message(Work, replace(message, header={"result": row})).result
    except RefusedError:
        return
    assert found is not None
    assert np.isfinite(found.loss)
    assert min(found.round, found.evaluation, found.number) >= 0
