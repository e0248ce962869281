from __future__ import annotations

import json
from collections import Counter
from datetime import date

import pytest
from kiwipiepy import Kiwi

from embedding.errors import InputError
from embedding.simweb.config import PARTS, SimwebConfig
from embedding.simweb.corpus import Corpus
from embedding.simweb.generated import LAST_DAY, generate, truth
from embedding.simweb.grammar import with_particles
from embedding.simweb.library import Library


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return generate(SimwebConfig())


def categories(corpus: Corpus, word: str, when=lambda d: True) -> Counter[str]:
    return Counter(d.category for d in corpus.documents if word in d.text and when(d))


def test_it_is_the_same_for_a_seed_and_another_for_another(corpus: Corpus) -> None:
    assert generate(SimwebConfig()).documents == corpus.documents
    assert generate(SimwebConfig(seed=1)).documents != corpus.documents


def test_every_part_has_documents_in_every_month(corpus: Corpus) -> None:
    seen = {(d.part, d.when.month) for d in corpus.documents}
    assert seen == {(part, month) for part in PARTS for month in range(1, 9)}
    assert len(corpus.documents) > 4000


def test_shares_decide_the_parts_and_the_library_keeps_them(corpus: Corpus) -> None:
    only = generate(SimwebConfig(shares={"board": 1.0, "life": 1.0}))
    assert {d.part for d in only.documents} == {"board", "life"}
    library = Library.build(corpus.documents, {"life": 1.0})
    assert Counter(i.part for i in library.items) == Counter(d.part for d in corpus.documents)


def test_the_born_word_is_born_when_the_truth_says(corpus: Corpus) -> None:
    [born] = truth()["born"]
    days = [d.when.date() for d in corpus.documents if born["word"] in d.text]
    assert len(days) > 100
    assert min(days) >= date.fromisoformat(born["date"])
    assert set(categories(corpus, born["word"])) == {born["topic"]}


def test_the_moved_word_changes_its_company_on_the_day(corpus: Corpus) -> None:
    [moved] = truth()["moved"]
    day = date.fromisoformat(moved["date"])
    before = categories(corpus, moved["word"], lambda d: d.when.date() < day)
    after = categories(corpus, moved["word"], lambda d: d.when.date() >= day)
    assert set(before) == {moved["before"]}
    assert set(after) == {moved["after"]}
    assert 0.7 < before.total() / after.total() < 1.4, "its frequency does not give it away"


def test_the_board_differs_as_the_truth_says(corpus: Corpus) -> None:
    [contrast] = truth()["contrast"]
    there = categories(corpus, contrast["word"], lambda d: d.part == contrast["part"])
    elsewhere = categories(corpus, contrast["word"], lambda d: d.part != contrast["part"])
    assert set(there) == {contrast["topic_there"]}
    assert set(elsewhere) == {contrast["topic_elsewhere"]}
    for common, own in truth()["own_words"]["board"].items():
        assert not any(common in d.text for d in corpus.documents if d.part == "board")
        assert not any(own in d.text.split("\n") for d in corpus.documents if d.part != "board")


def test_the_truth_is_json() -> None:
    assert json.loads(json.dumps(truth())) == truth()


def test_the_truth_comes_with_the_corpus(corpus: Corpus) -> None:
    assert corpus.truth == truth(SimwebConfig())


def test_kiwi_keeps_the_planted_words_and_the_topics_whole(corpus: Corpus) -> None:
    kiwi = Kiwi()
    texts = [d.text for d in corpus.documents if d.when.date() >= date(2021, 5, 10)][:250]
    nouns: Counter[str] = Counter()
    for tokens in kiwi.tokenize(texts):
        nouns.update(t.form for t in tokens if t.tag in ("NNG", "NNP"))
    facts = truth()
    planted = [facts[kind][0]["word"] for kind in ("born", "moved", "contrast")]
    whole = Counter({w: sum(t.count(w) for t in texts) for w in planted})
    for words in facts["topics"].values():
        # 버스 stands also inside 메타버스.
        whole.update({w: sum(t.replace(planted[0], "").count(w) for t in texts) for w in words})
    lost = {w: (nouns[w], n) for w, n in whole.items() if nouns[w] < 0.95 * n}
    assert lost == {}


def test_days_outside_are_an_error_that_says_what_there_is() -> None:
    assert {d.when.date() for d in generate(SimwebConfig(first_day=LAST_DAY)).documents} == {
        LAST_DAY
    }
    with pytest.raises(InputError, match="2021-01-01 to 2021-08-31"):
        generate(SimwebConfig(first_day=date(2022, 1, 1)))


def test_particles_follow_the_last_syllable() -> None:
    assert with_particles("병원[은] 버스[을] 철도[과]") == "병원은 버스를 철도와"
