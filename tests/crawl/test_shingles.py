import random

from embedding.crawl.shingles import NearDuplicates, signature


def text(seed: int, words: int = 120) -> list[str]:
    rng = random.Random(seed)
    return [f"낱말{rng.randrange(5000)}" for _ in range(words)]


def test_small_changes_are_near_duplicates_and_other_texts_are_not() -> None:
    seen = NearDuplicates(0.8, 100)
    base = text(1)
    assert seen.seen("a", signature(" ".join(base))) is None
    assert seen.seen("b", signature(" ".join([*base, "(끝)", "기자"]))) == "a"
    assert seen.seen("c", signature(" ".join(text(2)))) is None
    half = base[:60] + text(3, 60)
    assert seen.seen("d", signature(" ".join(half))) is None


def test_a_second_reading_of_the_same_page_is_no_duplicate() -> None:
    seen = NearDuplicates(0.8, 10)
    sketch = signature(" ".join(text(1)))
    assert seen.seen("a", sketch) is None
    assert seen.seen("a", sketch) is None


def test_memory_is_bounded_by_the_window() -> None:
    seen = NearDuplicates(0.8, 5)
    first = signature(" ".join(text(0)))
    assert seen.seen("0", first) is None
    for n in range(1, 40):
        assert seen.seen(str(n), signature(" ".join(text(n)))) is None
        assert len(seen) <= 5
    assert seen.seen("again", first) is None


def test_no_signature_and_no_window_compare_nothing() -> None:
    assert signature("두 낱말") == b""
    assert NearDuplicates(0.8, 5).seen("a", b"") is None
    off = NearDuplicates(0.8, 0)
    sketch = signature(" ".join(text(1)))
    assert off.seen("a", sketch) is None
    assert off.seen("b", sketch) is None


def test_signatures_are_the_same_in_every_process() -> None:
    assert signature("여론은 글에서 움직인다 그리고 또") == signature(
        "여론은 글에서 움직인다 그리고 또"
    )
    assert len(signature("하나 둘 셋")) == 64 * 4
