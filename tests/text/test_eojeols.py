from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from embedding.text.eojeols import EojeolCache
from embedding.text.generations import Generations
from embedding.text.kiwi import _gaps


def test_a_known_eojeol_is_checked_now_and_then() -> None:
    cache = EojeolCache(100)
    assert cache.get("학교에", "") is None
    cache.learn("학교에", "", ("학교",))
    answers = [cache.get("학교에", "우리") for _ in range(70)]
    assert [at for at, answer in enumerate(answers, start=2) if answer is None] == [4, 16, 64]
    assert (cache.hits, cache.misses) == (67, 4)


def test_an_eojeol_of_two_readings_is_kept_by_context() -> None:
    cache = EojeolCache(100)
    cache.learn("있는", "살고", ())
    cache.learn("있는", "집이", ("있다",))
    assert cache.get("있는", "돈이.") == ("있다",)
    assert cache.get("있는", "먹고") is None
    cache.learn("있는", "먹고", ())
    assert cache.get("있는", "하고") == ()
    cache.clear()
    assert len(cache) == 0


@given(st.lists(st.integers(0, 60), max_size=300), st.integers(1, 30))
def test_generations_are_bounded_and_keep_what_is_used(keys: list[int], capacity: int) -> None:
    cache: Generations[int, str] = Generations(capacity)
    half = max(1, capacity // 2)
    for at, key in enumerate(keys):
        if cache.get(key) is None:
            cache.put(key, str(key))
        assert cache.get(key) == str(key)
        assert len(cache) <= 2 * half
        recent = list(dict.fromkeys(reversed(keys[: at + 1])))[:half]
        assert all(k in cache._young or k in cache._old for k in recent)


def test_gaps_are_widened_and_joined() -> None:
    known = ["a", None, "b", "c", "d", None, None, "e", None, "f", "g"]
    assert list(_gaps(known, 0, 0)) == [(1, 2), (5, 7), (8, 9)]
    assert list(_gaps(known, 1, 0)) == [(0, 2), (4, 9)]
    assert list(_gaps(known, 1, 1)) == [(0, 3), (4, 10)]
    assert list(_gaps(known, 2, 2)) == [(0, 11)]
    assert list(_gaps(["a", "b"], 5, 5)) == []
