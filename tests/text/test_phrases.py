"""Phrases are found in the stream, joined to one word, and named by nobody alone."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.kernel.records import Document, Phrase, TokenBlock
from embedding.text.config import TextConfig
from embedding.text.passages import APART, BLANK, TOUCHES, Passage
from embedding.text.phrases import Phrases
from embedding.text.pipeline import TextPipeline
from tests.generated import examples

DAY = 86_400.0
FEW = TextConfig(phrase_voices=3)


def passage(text: str) -> Passage:
    """Nouns by blanks, `+` where they touch, `|` where something stands between them."""
    words: list[str] = []
    links: list[int] = []
    for run in text.split("|"):
        for number, eojeol in enumerate(run.split()):
            for at, word in enumerate(eojeol.split("+")):
                words.append(word)
                links.append(TOUCHES if at else BLANK if number else APART)
    return Passage(words, list(words), links)


def read(
    phrases: Phrases, texts: Sequence[str], *, voices: Sequence[int] | None = None, day: int = 0
) -> tuple[list[str], tuple[Phrase, ...]]:
    """Documents of one sentence each, as sentences of words by blanks; and what was found."""
    whose = range(len(texts)) if voices is None else voices
    who = np.array([hash((voice, day)) for voice in whose], np.int64)
    when = [(day + at) * DAY for at in range(len(texts))]
    words, found = phrases.read([[passage(text)] for text in texts], who, when)
    return [" ".join(sentence) for (sentence,) in words], found


OTHERS = ["바다|나무|구름|바위"] * 48 + ["우한|폐렴"] * 2
"""Texts that use the nouns apart."""


def test_a_phrase_is_joined_in_the_documents_that_make_it_one():
    phrases = Phrases(FEW)
    read(phrases, OTHERS, day=1)
    words, found = read(phrases, ["우한+폐렴", "바다|우한 폐렴", "우한+폐렴|구름"], day=100)
    assert words == ["우한폐렴", "바다 우한폐렴", "우한폐렴 구름"]
    assert found == (Phrase("우한폐렴", ("우한", "폐렴"), 100 * DAY, 100 * DAY, 0),)
    assert read(phrases, ["우한 폐렴"], day=200) == (["우한폐렴"], ())


def test_documents_that_held_it_before_are_counted_and_dated():
    phrases = Phrases(FEW)
    read(phrases, OTHERS, day=1)
    assert read(phrases, ["우한+폐렴", "우한 폐렴|나무|우한 폐렴"], day=100)[1] == ()
    words, found = read(phrases, ["우한+폐렴"], day=200)
    assert words == ["우한폐렴"]
    assert found == (Phrase("우한폐렴", ("우한", "폐렴"), 100 * DAY, 200 * DAY, 2),)


@pytest.mark.parametrize(
    ("texts", "voices", "why"),
    [
        (["우한+폐렴"] * 200, [7] * 200, "one author"),
        (["우한+폐렴"] * 200, [7, 8] * 100, "two of the three authors that are asked for"),
        (["우한 폐렴"] * 200, None, "nobody writes it as one word"),
        (["우한+폐렴", *["우한 폐렴"] * 200], None, "one author writes it as one word"),
        (["우한+폐렴 환자"] * 200, None, "always within a longer one"),
        (["우한|폐렴"] * 200, None, "something stands between them"),
    ],
)
def test_what_is_no_phrase_stays_apart(texts, voices, why):
    whose = None if voices is None else [*range(100, 150), *voices]
    words, found = read(Phrases(FEW), [*OTHERS, *texts], voices=whose)
    assert "우한폐렴" not in [phrase.word for phrase in found], why
    assert not any("우한폐렴" in sentence.split() for sentence in words), why


def test_parts_that_meet_by_chance_are_no_phrase():
    chance = ["나무+바다", "바다+구름", "구름+나무", "나무|바다|구름"] * 30
    apart = ["나무|돌", "바다|돌", "구름|돌"] * 300
    assert read(Phrases(FEW), [*apart, *chance])[1] == ()
    close = read(Phrases(FEW), [*["돌|흙"] * 300, *chance])[1]
    assert {phrase.word for phrase in close} == {"나무바다", "바다구름", "구름나무"}


def test_the_longest_phrase_is_joined_first_and_has_at_most_four_parts():
    phrases = Phrases(FEW)
    long = ["사회+거리+두기"] * 5 + ["거리+두기"] * 5 + ["가+나+다+라"] * 5 + ["마+바+사+아+자"] * 5
    _, found = read(phrases, [*["돌|흙"] * 40, *long])
    assert {p.word: p.parts for p in found} == {
        "사회거리두기": ("사회", "거리", "두기"),
        "거리두기": ("거리", "두기"),
        "가나다라": ("가", "나", "다", "라"),
    }
    assert read(phrases, ["사회 거리 두기|거리 두기 가 나 다 라"])[0] == [
        "사회거리두기 거리두기 가나다라"
    ]


def test_a_phrase_unused_for_longest_is_forgotten_and_found_again():
    phrases = Phrases(FEW.model_copy(update={"phrases": 4}))
    read(phrases, [*["돌|흙"] * 40, *["우한+폐렴"] * 3])
    for name in "가나다라마바":
        read(phrases, [f"{name}갑+{name}을"] * 3, day=10)
    assert read(phrases, ["우한 폐렴"], day=20)[0] == ["우한 폐렴"]
    words, (found,) = read(phrases, ["우한+폐렴"] * 3, day=30)
    assert words == ["우한폐렴"] * 3
    assert found.earlier == 1


def test_what_one_author_wrote_before_counts_once():
    phrases = Phrases(FEW)
    read(phrases, OTHERS)
    for _ in range(20):
        read(phrases, ["우한+폐렴"] * 50, voices=[7] * 50, day=100)
    (found,) = read(phrases, ["우한+폐렴"] * 3, day=200)[1]
    assert found.earlier == 1


NOUN = st.sampled_from("가나다라마")
TEXT = st.builds(
    lambda first, rest: first + "".join(rest),
    NOUN,
    st.lists(st.builds(str.__add__, st.sampled_from("+ |"), NOUN), max_size=5),
)
TEXTS = st.lists(TEXT, min_size=1, max_size=40)


@settings(max_examples=examples(200), deadline=None)
@given(TEXTS, st.integers(1, 7), st.integers(1, 9))
def test_no_word_is_lost_and_the_same_stream_gives_the_same_words(texts, size, people):
    config = TextConfig(phrase_voices=2).model_copy(update={"phrase_npmi": 0.1})
    answers = []
    for _ in range(2):
        phrases = Phrases(config)
        parts: dict[str, tuple[str, ...]] = {}
        answer = []
        for at in range(0, len(texts), size):
            batch = texts[at : at + size]
            words, found = read(phrases, batch, voices=[n % people for n in range(len(batch))])
            parts |= {phrase.word: phrase.parts for phrase in found}
            for text, sentence in zip(batch, words, strict=True):
                taken_apart = [p for word in sentence.split() for p in parts.get(word, (word,))]
                assert taken_apart == passage(text).words
            answer.append((words, found))
        answers.append(answer)
    assert answers[0] == answers[1]
    if people == 1:
        assert not any(found for _, found in answers[0])


@settings(max_examples=examples(50), deadline=None)
@given(TEXTS)
def test_what_one_document_repeats_makes_no_phrase(texts):
    phrases = Phrases(TextConfig(phrase_voices=2).model_copy(update={"phrase_npmi": 0.0}))
    for _ in range(20):
        assert read(phrases, texts, voices=[1] * len(texts))[1] == ()


def test_memory_is_bounded_and_reckoned_as_it_is():
    phrases = Phrases(TextConfig().model_copy(update={"phrase_mb": 1}))
    tracemalloc.start()
    try:
        for at in range(0, 30_000, 100):
            names = [chr(0xAC00 + n // 200) + chr(0xAC00 + n % 200) for n in range(at, at + 100)]
            read(phrases, [f"{name}은+{name}는" for name in names], day=at)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert phrases.memory <= 1_000_000
    assert 0.6 * taken < phrases.memory < 1.6 * taken


@pytest.mark.parametrize(
    ("text", "surfaces", "links"),
    [
        ("우한폐렴이 퍼진다", "우한 폐렴 -", "020"),
        ("우한 폐렴으로 인해", "우한 폐렴 -", "010"),
        ("공적 마스크 판매", "공적 마스크 판매", "011"),
        ("사회적 거리두기를", "사회적 거리 두기", "012"),
        ("n번방 사건", "n번 방 사건", "021"),
        ("우한, 폐렴", "우한 폐렴", "00"),
        ("'온라인 개학'", "온라인 개학", "01"),
        ("가해자들 처벌", "가해자 처벌", "00"),
        ("마스크 구매하고", "마스크 -", "00"),
        ("1인 시위", "- 시위", "00"),
        ("5km 이상", "- 이상", "00"),
        ("환경 속 미생물", "환경 - 미생물", "000"),
    ],
)
def test_what_touches_in_a_text(kiwi, text, surfaces, links):
    for _ in range(3):  # analysed, out of the cache, and checked
        (found,) = kiwi.passages([text])
        assert " ".join(surface or "-" for surface in found.surfaces) == surfaces
        assert "".join(map(str, found.links)) == links
        assert [found.words] == kiwi.tokenize([text])


def test_a_pipeline_joins_phrases_and_names_their_parts(document: Callable[..., Document]):
    texts = [
        *["오늘 날씨가 좋다. 학교에 간다. 나무를 심고 물을 준다."] * 40,
        *["우한에 산다. 폐렴이 무섭다."] * 2,
        *["우한폐렴이 무섭다.", "우한 폐렴을 막자.", "이제 우한폐렴은 그만."] * 4,
    ]
    documents = [document(text, f"https://a.example/{at}") for at, text in enumerate(texts)]
    unknown = TextPipeline(TextConfig(tokenizer="kiwi")).block(documents, [0.0] * len(documents))
    assert unknown.phrases == (), "texts of unknown authors are those of one author"
    pipeline = TextPipeline(TextConfig(tokenizer="kiwi", unknown_authors="each"))
    digest = pipeline.digest
    block = pipeline.block(documents, [0.0] * len(documents))
    assert "우한폐렴" in block.words
    assert [phrase.parts for phrase in block.phrases] == [("우한", "폐렴")]
    assert TokenBlock.from_buffer(block.to_buffer()).phrases == block.phrases
    assert block.tokenizer_digest == digest  # the snapshot names phrases, the digest need not
    assert pipeline.report()["phrases"] == 1
    assert pipeline.block(documents[-1:], [0.0]).phrases == ()

    alone = [replace(each, author="a" * 16) for each in documents]
    for config, given_ in (
        (TextConfig(tokenizer="kiwi", phrases=0), documents),
        (TextConfig(tokenizer="kiwi"), alone),
        (TextConfig(tokenizer="whitespace"), documents),
    ):
        block = TextPipeline(config).block(given_, [0.0] * len(documents))
        assert block.phrases == ()
        assert "우한폐렴" not in block.words
    assert TextPipeline(TextConfig(tokenizer="kiwi", phrases=0)).digest != digest
