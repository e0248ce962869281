"""Sentences that a site repeats are left out; what people repeat stays."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from embedding.kernel.records import Document
from embedding.text.config import TextConfig
from embedding.text.pipeline import (
    MAX_SENTENCES,
    MIN_REPEATS,
    MIN_SENTENCE_WORDS,
    Boilerplate,
    TextPipeline,
)

FOOTER = "본 게시물은 운영 원칙에 따라 관리자가 일부 수정하였습니다"
SHORT = "긴 글 읽어 주셔서"


def own(n: int) -> list[str]:
    """Two sentences that nobody else writes."""
    return [f"{n}번 버스가 {at}분마다 오면 참 좋겠다고 생각합니다" for at in (n, n + 1_000_000)]


def test_what_stands_on_page_after_page_is_left_out_once_it_is_known():
    found = Boilerplate(0.01)
    kept = [found.without("가", [*own(n), FOOTER, SHORT]) for n in range(40)]
    assert [FOOTER in one for one in kept] == [True] * (MIN_REPEATS - 1) + [False] * (
        41 - MIN_REPEATS
    )
    assert all([*own(n), SHORT] == [s for s in one if s != FOOTER] for n, one in enumerate(kept))
    assert found.left_out == 41 - MIN_REPEATS


def test_it_is_cut_off_a_sentence_that_it_follows_or_begins():
    found = Boilerplate(0.01)
    for n in range(20):
        found.without("가", [*own(n), FOOTER])
    assert found.without("가", [f"도와주세요 {FOOTER}", *own(30)]) == ["도와주세요", *own(30)]
    assert found.without("가", [f"{FOOTER} 도와주세요", *own(31)]) == ["도와주세요", *own(31)]
    assert found.without("가", [f"그{FOOTER}도", *own(32)]) == [f"그{FOOTER}도", *own(32)]
    bare = Boilerplate(0.01)
    text = [f"도와주세요 {FOOTER}", *own(30)]
    assert bare.without("가", text) == text


def test_texts_that_people_copy_as_a_whole_stay():
    found = Boilerplate(0.01)
    text = [*own(7), FOOTER]
    assert all(found.without("가", text) == text for _ in range(500))


def test_a_sentence_of_one_source_is_none_of_another():
    found = Boilerplate(0.01)
    for n in range(40):
        found.without("가", [*own(n), FOOTER])
    assert found.without("나", [*own(50), FOOTER]) == [*own(50), FOOTER]


def test_what_is_rare_among_the_documents_stays():
    found = Boilerplate(0.05)
    for n in range(3_000):
        text = [*own(n), FOOTER] if n % 50 == 0 else own(n)
        assert found.without("가", text) == text


def test_what_a_site_no_longer_repeats_is_text_again():
    found = Boilerplate(0.1)
    for n in range(20):
        found.without("가", [*own(n), FOOTER])
    for n in range(20, 400):
        found.without("가", own(n))
    assert found.without("가", [*own(999), FOOTER]) == [*own(999), FOOTER]


def test_memory_is_bounded():
    found = Boilerplate(0.01)
    for n in range(MAX_SENTENCES):
        found.without("가", own(n))
    assert len(found._seen) <= MAX_SENTENCES


@given(st.lists(st.lists(st.sampled_from([FOOTER, SHORT, *own(1), *own(2)]), max_size=6)))
def test_what_is_kept_is_what_was_written_in_order_and_short_sentences_always(texts):
    found = Boilerplate(0.01)
    for text in texts:
        kept = found.without("가", text)
        rest = iter(text)
        assert all(any(one == other for other in rest) for one in kept)
        assert kept.count(SHORT) == text.count(SHORT)
    assert len(SHORT.split()) < MIN_SENTENCE_WORDS


def test_a_pipeline_learns_nothing_of_it_and_says_so(document: Callable[..., Document]):
    def block(pipeline: TextPipeline):
        texts = ["\n".join([*own(n), FOOTER]) for n in range(30)]
        documents = [document(text, url=f"http://x.example/{n}") for n, text in enumerate(texts)]
        return pipeline.block(documents, [0.0] * len(documents))

    leaves = TextPipeline(TextConfig(tokenizer="whitespace"))
    keeps = TextPipeline(TextConfig(tokenizer="whitespace", boilerplate=0.0))
    times = {}
    for pipeline in (leaves, keeps):
        found = block(pipeline)
        words = [found.words[code] for code in found.codes]
        times[pipeline] = words.count("관리자가")
        assert words.count("버스가") == 60
        assert found.n_documents == 30
    assert times == {leaves: MIN_REPEATS - 1, keeps: 30}
    assert (leaves.report()["boilerplate"], keeps.report()["boilerplate"]) == (31 - MIN_REPEATS, 0)
    assert leaves.digest != keeps.digest
    assert FOOTER.split() in leaves.words(FOOTER), "a question is read as it is"
