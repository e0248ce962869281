"""`yeoron bench wire` runs from end to end; what it measures is a matter of the machine."""

import pytest

from yeoron_bench.wire import measure

pytestmark = pytest.mark.slow


def test_a_batch_is_pulled_and_pushed_beside_a_plain_socket():
    found = measure("float16", rows=64, dim=8, rounds=2, threads=1)
    assert found["side"] == "float16"
    assert found["both_ways_rows_per_second"] > 0
    assert found["plain_both_ways"] > 0
    assert 2 < found["pushed_bytes_an_entry"] < 4
