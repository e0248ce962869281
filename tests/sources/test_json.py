"""JSON of answers is read as `json.loads` reads it, and stops no other thread."""

import json
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.sources.dotted import parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(value=VALUES, encoding=st.sampled_from(["utf-8", "utf-16", "utf-8-sig"]), large=...)
def test_in_steps_it_is_the_same_value(value: Any, encoding: str, large: bool) -> None:
    """What is large is read in steps."""
    value = ["긴 글 " * 50_000, value] if large else value
    text = json.dumps(value)
    assert parse_json(text) == value
    assert parse_json(text.encode(encoding)) == value


@pytest.mark.parametrize("text", ["", "{", '{"a": 1} x', "[1,]", "[" * 300_000])
def test_what_is_no_json_raises_as_it_always_does(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        parse_json(text)


def test_other_threads_go_on_while_a_large_answer_is_read() -> None:
    """`json.loads` lets none run before its end."""
    text = json.dumps({f"key {at}": at for at in range(300_000)})
    ticks, done = [], threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(1)
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    before = len(ticks)
    parse_json(text)
    after = len(ticks)
    done.set()
    thread.join()
    assert after - before > 3
