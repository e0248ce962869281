from __future__ import annotations

import tracemalloc
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from embedding.text.config import TextConfig
from embedding.text.eojeols import EojeolCache, EojeolReading
from embedding.text.generations import Generations
from embedding.text.kiwi import Analysed, EojeolComposer, Readings
from embedding.text.morphemes import Piece


def kept(cache: EojeolCache, eojeol: str, before: str | None) -> tuple[str, ...] | None:
    cache.get(eojeol, before)  # the second occurrence, which is checked
    found = cache.get(eojeol, before)
    return None if found is None else tuple(piece.word for piece in found.pieces)


def read(ending: str, *words: str) -> EojeolReading:
    return EojeolReading(tuple(map(Piece, words)), ending)


def test_a_known_eojeol_is_checked_now_and_then() -> None:
    cache = EojeolCache(1_000_000)
    assert cache.get("학교에", "") is None
    cache.learn("학교에", "", read("에JKB", "학교"))
    answers = [cache.get("학교에", "NP") for _ in range(70)]
    assert [at for at, answer in enumerate(answers, start=2) if answer is None] == [2, 8, 32]
    assert (cache.hits, cache.misses) == (67, 4)


def test_an_eojeol_of_two_readings_is_kept_by_the_ending_before_it() -> None:
    cache = EojeolCache(1_000_000)
    cache.learn("있는", "고EC", read("는ETM"))
    cache.learn("있는", "이JKS", read("는ETM", "있다"))
    assert kept(cache, "있는", "이JKS") == ("있다",)
    assert kept(cache, "있는", "고EC") == ()
    assert kept(cache, "있는", "NNG") is None
    assert kept(cache, "있는", None) is None
    cache.learn("있는", "NNG", read("는ETM", "있다"))
    assert kept(cache, "있는", "NNG") == ("있다",)


def test_the_majority_of_the_analyser_stays() -> None:
    cache = EojeolCache(1_000_000)
    for word in ["전", "전", "저", "전"]:
        cache.learn("전", "", read("NNG", word))
    assert kept(cache, "전", "") == ("전",)
    for _ in range(4):
        cache.learn("전", "", read("NP", "저"))
    assert kept(cache, "전", "") == ("저",)


class Morph(NamedTuple):
    form: str
    tag: str
    start: int
    len: int


def analysed(eojeol: str, *morphs: Morph, base: int = 0) -> Analysed:
    placed = [morph._replace(start=morph.start + base) for morph in morphs]
    words = [(Piece(m.form),) if m.tag.startswith("N") else () for m in morphs]
    return Analysed(placed, words, base)


def met(composer: EojeolComposer, head: str, tail: str, tag: str) -> None:
    morphs = (Morph(head, "NNG", 0, len(head)), Morph(tail, tag, len(head), len(tail)))
    composer.learn(head + tail, head + tail, analysed(head + tail, *morphs, base=7))


def test_an_unknown_eojeol_is_read_from_a_head_and_a_tail_that_were_met() -> None:
    composer = EojeolComposer(1_000_000)
    for _ in range(6):
        met(composer, "학교", "에서는", "JKB")
        met(composer, "의사", "가", "JKS")
    assert composer.read("의사에서는") == read("에서는JKB", "의사")
    assert composer.read("병원에서는") is None
    assert composer.read("학교") is None


def test_a_tail_needs_a_head_of_the_same_final_sound() -> None:
    composer = EojeolComposer(1_000_000)
    for _ in range(6):
        met(composer, "의사", "가", "JKS")
        met(composer, "병원", "이", "JKS")
    assert composer.read("병원가") is None
    assert composer.read("의사이") is None


def test_what_can_be_read_in_two_ways_is_left_to_the_analyser() -> None:
    composer = EojeolComposer(1_000_000)
    for _ in range(6):
        met(composer, "가", "로서", "JKB")
        met(composer, "바", "가로서", "JKB")
        met(composer, "바가", "나", "JX")
    assert composer.read("바가로서") is None


def test_rare_parts_are_not_trusted() -> None:
    composer = EojeolComposer(1_000_000)
    met(composer, "의사", "가", "JKS")
    met(composer, "학교", "는", "JX")
    assert composer.read("의사는") is None


def test_marks_and_figures_do_not_make_another_eojeol() -> None:
    readings = Readings(TextConfig())
    readings.learn("3일간", "", analysed("3일간", Morph("일간", "NNG", 1, 2)))
    _, found = readings.look_up(["4일간", "(12일간),"])  # the first is checked
    assert found is not None
    assert [piece.word for piece in found.pieces] == ["일간"]
    strict = Readings(TextConfig(keep_tags=("NNG", "SN")))
    strict.learn("3일간", "", analysed("3일간", Morph("일간", "NNG", 1, 2)))
    assert strict.look_up(["12일간", "12일간"]) == [None, None]


def filled(cache_mb: int, eojeols: int) -> tuple[Readings, int]:
    """Readings that met so many eojeols, half of them in two readings; the bytes really taken."""
    readings = Readings(TextConfig(cache_mb=cache_mb))
    tracemalloc.start()
    try:
        for at in range(eojeols):
            head = "".join(chr(0xAC00 + at // 11_000**place % 11_000) for place in (0, 1))
            part = head + "에서는"
            morphs = (Morph(head, "NNG", 0, 2), Morph("에서는", "JKB", 2, 3))
            readings.learn(part, "", analysed(part, *morphs))
            if at % 2:
                other = (Morph(part, "NNP", 0, 5),)
                readings.learn(part, "이JKS", analysed(part, *other))
        return readings, tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_memory_is_bounded_in_bytes_and_reckoned_as_it_is() -> None:
    readings, taken = filled(200, 4_000)
    told = readings.figures()
    assert told["cached_words"] == 4_000
    assert told["forgotten_words"] == 0
    assert 0.7 * taken < told["cache_bytes"] < 1.6 * taken
    readings, taken = filled(2, 12_000)
    told = readings.figures()
    assert told["cache_bytes"] <= 2.05e6
    assert taken <= 2.75e6
    assert told["forgotten_words"] > 5_000


@given(st.lists(st.tuples(st.text("가나", max_size=4), st.integers(0, 40)), max_size=200))
def test_what_weighs_is_bounded_by_weight(steps: list[tuple[str, int]]) -> None:
    cache: Generations[str, int] = Generations(200, lambda key, value: len(key) + value)
    for key, value in steps:
        if cache.get(key) is None:
            cache.put(key, value)
        assert cache.get(key) is not None
        assert cache.weight <= 200
    held = dict(cache._old) | cache._young
    assert len({key for key, _ in steps}) - len(held) <= cache.forgotten
    cache.drop(lambda key: key.startswith("가"))
    assert not any(key.startswith("가") for key in (*cache._young, *cache._old))
    rest = {**cache._old, **cache._young}
    assert cache.weight >= sum(len(key) + value for key, value in rest.items())


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
