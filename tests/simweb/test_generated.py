from __future__ import annotations

import json
import math
from collections import Counter
from datetime import date, timedelta

import pytest

from embedding.kernel.errors import InputError
from embedding.text.config import TextConfig
from embedding.text.pipeline import TextPipeline
from yeoron_simweb.config import PARTS, SimwebConfig
from yeoron_simweb.corpus import PlaybackCorpus
from yeoron_simweb.generated import FIRST_DAY, LAST_DAY, generate, truth
from yeoron_simweb.grammar import conjugate, with_particles
from yeoron_simweb.lexicon import Predicate, lexicon
from yeoron_simweb.library import Library

PLANTED = [truth()[kind][0] for kind in ("born", "moved", "contrast")]


@pytest.fixture(scope="module")
def corpus() -> PlaybackCorpus:
    return generate(SimwebConfig())


@pytest.fixture(scope="module")
def read(corpus: PlaybackCorpus) -> Counter[str]:
    """Words that the text pipeline reads in the sample: every fifteenth document."""
    pipeline = TextPipeline(TextConfig(tokenizer="kiwi"))
    words: Counter[str] = Counter()
    for document in corpus.documents[::15]:
        for sentence in pipeline.words(document.text):
            words.update(sentence)
    assert not pipeline.masked, "nothing looks like personal data"
    return words


@pytest.fixture(scope="module")
def written(corpus: PlaybackCorpus) -> Counter[str]:
    """The sample's words as they stand between blanks and full stops."""
    texts = (document.text for document in corpus.documents[::15])
    return Counter(word for text in texts for word in text.replace(".", " ").split())


def categories(corpus: PlaybackCorpus, word: str, when=lambda d: True) -> Counter[str]:
    """Topics of the sentences' company: how often words of each topic stand beside `word`."""
    topics = truth()["topics"]
    of = {other: name for name, words in topics.items() for other in words[:40]}
    near: Counter[str] = Counter()
    for document in corpus.documents:
        if word in document.text and when(document):
            for sentence in document.text.replace("\n", " ").split("."):
                if word in sentence:
                    near.update(of[w] for w in of if w in sentence and w not in word)
    return near


def mentions(corpus: PlaybackCorpus, word: str, first: date, last: date) -> int:
    return sum(d.text.count(word) for d in corpus.documents if first <= d.when.date() <= last)


def test_it_is_the_same_for_a_seed_and_another_for_another(corpus: PlaybackCorpus) -> None:
    assert generate(SimwebConfig()).documents == corpus.documents
    assert generate(SimwebConfig(seed=1)).documents != corpus.documents


def test_every_part_has_documents_in_every_month(corpus: PlaybackCorpus) -> None:
    seen = {(d.part, d.when.month) for d in corpus.documents}
    assert seen == {(part, month) for part in PARTS for month in range(1, 6)}
    assert 2500 < len(corpus.documents) < 3000


def test_shares_decide_the_parts_and_the_library_keeps_them(corpus: PlaybackCorpus) -> None:
    only = generate(SimwebConfig(shares={"board": 1.0, "life": 1.0}))
    assert {d.part for d in only.documents} == {"board", "life"}
    library = Library.build(corpus.documents, {"life": 1.0})
    assert Counter(i.part for i in library.items) == Counter(d.part for d in corpus.documents)


def test_authors_write_again_and_only_in_their_part(corpus: PlaybackCorpus) -> None:
    library = Library.build(corpus.documents, {})
    authors = {(i.part, i.author) for i in library.items}
    assert authors == {(d.part, d.author) for d in corpus.documents}
    assert 100 < len(authors) < 150
    often = Counter((d.part, d.author) for d in corpus.documents)
    assert often.most_common()[0][1] > 50


def test_the_born_word_is_born_when_the_truth_says(corpus: PlaybackCorpus) -> None:
    [born] = truth()["born"]
    days = [d.when.date() for d in corpus.documents if born["word"] in d.text]
    assert len(days) > 50
    assert min(days) >= date.fromisoformat(born["date"])
    near = categories(corpus, born["word"])
    assert near[born["topic"]] > 0.8 * near.total()


def test_the_moved_word_changes_its_company_on_the_day(corpus: PlaybackCorpus) -> None:
    [moved] = truth()["moved"]
    day = date.fromisoformat(moved["date"])
    before = categories(corpus, moved["word"], lambda d: d.when.date() < day)
    after = categories(corpus, moved["word"], lambda d: d.when.date() >= day)
    assert before[moved["before"]] > 0.8 * before.total()
    assert after[moved["after"]] > 0.8 * after.total()
    days = (day - FIRST_DAY).days, (LAST_DAY - day).days + 1
    rates = (
        mentions(corpus, moved["word"], FIRST_DAY, day - timedelta(days=1)) / days[0],
        mentions(corpus, moved["word"], day, LAST_DAY) / days[1],
    )
    assert 0.7 < rates[0] / rates[1] < 1.4, "its frequency does not give it away"


def test_most_of_the_text_comes_before_anything_happens(corpus: PlaybackCorpus) -> None:
    first = min(truth()["born"][0]["date"], truth()["moved"][0]["date"])
    before = sum(len(d.text) for d in corpus.documents if d.when.date().isoformat() < first)
    assert before > 0.55 * sum(len(d.text) for d in corpus.documents)


def test_the_board_differs_as_the_truth_says(corpus: PlaybackCorpus) -> None:
    [contrast] = truth()["contrast"]
    there = categories(corpus, contrast["word"], lambda d: d.part == contrast["part"])
    elsewhere = categories(corpus, contrast["word"], lambda d: d.part != contrast["part"])
    assert there[contrast["topic_there"]] > 0.8 * there.total()
    assert elsewhere[contrast["topic_elsewhere"]] > 0.8 * elsewhere.total()
    for common, own in truth()["own_words"]["board"].items():
        # Another word may hold it: a word begins after a blank.
        board = [f" {d.title} {d.text}" for d in corpus.documents if d.part == "board"]
        others = [f" {d.title} {d.text}" for d in corpus.documents if d.part != "board"]
        assert not any(f" {common}" in text.replace("\n", " ") for text in board)
        assert not any(f" {own}" in text.replace("\n", " ") for text in others)
        assert sum(f" {own}" in text for text in board) > 30


def test_parts_write_about_other_things(corpus: PlaybackCorpus) -> None:
    usual = Counter(d.category for d in corpus.documents)
    [born], [moved] = truth()["born"], truth()["moved"]
    planted = born["topic"], moved["before"], moved["after"]
    assert len(usual) == len(truth()["topics"])
    leading = set()
    for part in PARTS:
        seen = Counter(d.category for d in corpus.documents if d.part == part)
        assert sum(seen[name] for name in planted) > 0.1 * seen.total()
        share = {name: seen[name] / seen.total() / usual[name] for name in usual}
        leading.add(max(share, key=share.__getitem__))
    assert len(leading) >= 4


def test_no_sentence_comes_twice(corpus: PlaybackCorpus) -> None:
    texts = (d.text.replace("\n", " ") for d in corpus.documents)
    sentences = [sentence for text in texts for sentence in text.split(". ")]
    assert len(set(sentences)) > 0.99 * len(sentences)


def test_a_page_of_news_is_long_enough_to_be_taken_for_the_article(corpus: PlaybackCorpus) -> None:
    news = [d for d in corpus.documents if d.part not in ("board", "comments")]
    assert min(len(d.text) for d in news) > 200


def test_the_truth_is_json() -> None:
    assert json.loads(json.dumps(truth())) == truth()


def test_a_noun_belongs_to_one_topic_and_stays_what_it_is() -> None:
    topics = [*lexicon().topics.values(), lexicon().general]
    nouns = [noun for topic in topics for noun in topic.nouns.values]
    assert len(nouns) == len(set(nouns)) > 2000
    assert not {each["word"] for each in PLANTED} & set(nouns)
    assert not set(truth()["own_words"]["board"].values()) & set(nouns)


def test_words_are_as_frequent_as_in_a_language(read: Counter[str]) -> None:
    """Zipf: the logarithm of the count falls with that of the rank, evenly."""
    counts = [count for _, count in read.most_common()]
    assert len(counts) > 1500
    slope = math.log(counts[999] / counts[9]) / math.log(1000 / 10)
    assert -1.1 < slope < -0.6


def test_the_pipeline_reads_the_words_that_were_written(
    read: Counter[str], written: Counter[str]
) -> None:
    def expected(noun: str) -> int:
        forms = [with_particles(f"{noun}[{each}]") for each in ("은", "이", "을", "과", "으로")]
        after = ("", "의", "에서", "에", "도", "부터", "까지")
        return sum(written[form] for form in {*forms, *(noun + each for each in after)})

    special = [each["word"] for each in PLANTED]
    for common, own in truth()["own_words"]["board"].items():
        special += [common, own]
    for word in special:
        assert read[word] >= 0.97 * expected(word) > 0, word
    topics = [*lexicon().topics.values(), lexicon().general]
    nouns = [noun for topic in topics for noun in topic.nouns.values]
    lost = sum(max(expected(noun) - read[noun], 0) for noun in nouns)
    assert lost < 0.02 * sum(map(expected, nouns))
    known = {word for topic in topics for word in topic.words} | set(special)
    known |= {each.word for each in lexicon().adjectives.values} | set(lexicon().adverbs.values)
    assert sum(count for word, count in read.items() if word in known) > 0.9 * read.total()


def test_days_outside_are_an_error_that_says_what_there_is() -> None:
    assert {d.when.date() for d in generate(SimwebConfig(first_day=LAST_DAY)).documents} == {
        LAST_DAY
    }
    with pytest.raises(InputError, match=f"{FIRST_DAY} to {LAST_DAY}"):
        generate(SimwebConfig(first_day=date(2022, 1, 1)))


def test_particles_follow_the_last_syllable() -> None:
    assert with_particles("병원[은] 버스[을] 철도[과]") == "병원은 버스를 철도와"
    assert with_particles("교실[으로] 병원[으로] 학교[이나]") == "교실로 병원으로 학교나"


@pytest.mark.parametrize(
    ("ending", "form"),
    [
        ("ㅆ다", "만들었다"),
        ("고", "만들고"),
        ("는", "만드는"),
        ("네", "만드네"),
        ("서", "만들어서"),
    ],
)
def test_a_verb_takes_its_endings(ending: str, form: str) -> None:
    assert conjugate(Predicate("만들다", "만들", "만들어"), ending) == form
    assert conjugate(Predicate("오르다", "오르", "올라"), "ㅆ다") == "올랐다"
