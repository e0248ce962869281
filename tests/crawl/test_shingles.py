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
        assert len(seen._known) <= 5
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


def planted(seed: int, length: int, changed: float) -> tuple[list[str], list[str], float]:
    """A text, the same with a share of its words replaced here and there, and how alike they are.

    Likeness is the Jaccard similarity of three-word shingles, counted exactly.
    """
    rng = random.Random(seed)
    base = [f"낱말{rng.randrange(5000)}" for _ in range(length)]
    other = list(base)
    for at in rng.sample(range(length), round(changed * length)):
        other[at] = f"다른{rng.randrange(5000)}"
    a, b = ({tuple(t[n : n + 3]) for n in range(length - 2)} for t in (base, other))
    return base, other, len(a & b) / len(a | b)


def test_planted_near_duplicates_are_found_and_others_are_not() -> None:
    """Of texts at least 0.93 alike 95 % are found, of those below 0.7 at most 1 % are taken."""
    seen = NearDuplicates(0.85, 20_000)
    found: dict[str, list[bool]] = {"alike": [], "apart": []}
    for seed in range(700):
        changed = (0.002, 0.005, 0.01, 0.02, 0.08, 0.2, 1.0)[seed % 7]
        base, other, likeness = planted(seed, 400, changed)
        assert seen.seen(f"{seed}", signature(" ".join(base))) is None
        hit = seen.seen(f"{seed}b", signature(" ".join(other)))
        assert hit in (None, f"{seed}")
        if likeness >= 0.93:
            found["alike"].append(hit is not None)
        elif likeness < 0.7:
            found["apart"].append(hit is not None)
    assert min(map(len, found.values())) >= 200
    assert sum(found["alike"]) / len(found["alike"]) >= 0.95
    assert sum(found["apart"]) / len(found["apart"]) <= 0.01


def test_a_document_in_the_window_costs_a_few_kilobytes() -> None:
    """Filled once and then rolled over: no more than 4 kB a document, whatever has passed by."""
    import tracemalloc

    n = 1500
    seen = NearDuplicates(0.85, n)
    rng = random.Random(1)
    tracemalloc.start()
    try:
        sizes = []
        for round_ in range(3):
            for at in range(n):
                seen.seen(f"http://news.example.org/{round_}/{at}", rng.randbytes(256))
            sizes.append(tracemalloc.get_traced_memory()[0] / n)
    finally:
        tracemalloc.stop()
    assert sizes[0] < 4096
    assert max(sizes) < 1.3 * sizes[0]
