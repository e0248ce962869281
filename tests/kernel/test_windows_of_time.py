"""Starts of windows in Unix seconds are those of the calendar."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.kernel.records import WindowUnit

moments = st.integers(-(2**33), 2**34).map(lambda second: second + 0.25)


@pytest.mark.parametrize("unit", list(WindowUnit))
@given(st.lists(moments, min_size=1, max_size=20))
def test_a_window_starts_where_the_calendar_says(unit: WindowUnit, times: list[float]) -> None:
    wanted = [int(unit.floor(datetime.fromtimestamp(t, UTC)).timestamp()) for t in times]
    assert [unit.start(t) for t in times] == wanted
    assert unit.starts(np.array(times)).tolist() == wanted
    assert [unit.start(float(w)) for w in wanted] == wanted
