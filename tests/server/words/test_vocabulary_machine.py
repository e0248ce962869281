"""Any order of offers, counts, restarts and refreshes keeps word, id and slot together."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from embedding.server.words.digests import WordDigests
from embedding.server.words.vocabulary import Vocabulary
from generated import examples

WORDS = st.integers(0, 12).map(lambda n: f"말{n}")
DIGESTS = WordDigests(b"k" * 32)
ROWS, CANDIDATES, HISTORY = 5, 6, 1


class Mirror:
    """A node's view: evicted ids go, what is not alive goes, new words come."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.version = 0

    def refresh(self, vocabulary: Vocabulary) -> None:
        delta = vocabulary.delta(self.version)
        gone = set(delta.evicted.tolist())
        alive = set(vocabulary.alive().tolist())
        kept = {word: i for word, i in self.ids.items() if i not in gone}
        kept.update(zip(delta.words, delta.ids.tolist(), strict=True))
        self.ids = {word: i for word, i in kept.items() if i in alive}
        if vocabulary.evictions.since <= self.version:
            assert self.ids == kept, "evictions within the history are all told"
        self.version = delta.version


class VocabularyMachine(RuleBasedStateMachine):
    """Plain dictionaries beside the vocabulary."""

    @initialize(half_life=st.sampled_from([None, 30.0]))
    def start(self, half_life):
        self.half_life, self.incarnation = half_life, 0
        self.given: dict[int, str] = {}
        self.row: dict[int, int] = {}
        self.expected: dict[int, float] = {}
        self.mirrors = [Mirror(), Mirror()]
        self.vocabulary = self.make()

    def make(self) -> Vocabulary:
        self.incarnation += 1
        made = Vocabulary(
            min_count=2,
            max_words=ROWS,
            max_candidates=CANDIDATES,
            half_life_tokens=self.half_life,
            version=self.incarnation << 20,
            digests=DIGESTS,
        )
        made.evictions.limit = HISTORY
        return made

    @rule(words=st.lists(WORDS, min_size=1, max_size=4), n=st.integers(1, 3))
    def offer(self, words, n):
        vocabulary = self.vocabulary
        fresh = vocabulary.plan(words, np.full(len(words), n))
        known = dict(vocabulary.candidates)
        admission = vocabulary.admit(fresh)
        for word, id_, slot in zip(
            admission.words, admission.ids.tolist(), admission.slots.tolist(), strict=True
        ):
            assert id_ not in self.given, "an id was given twice"
            self.given[id_], self.row[id_] = word, slot
            self.expected[id_] = known.get(DIGESTS.of(word), 0.0) / vocabulary.decay.weight
        for id_ in admission.evicted.tolist():
            del self.expected[id_]

    @rule(words=st.lists(WORDS, min_size=1, max_size=4), n=st.integers(1, 3))
    def read_by_name(self, words, n):
        self.count([], words, n)

    @rule(data=st.data(), n=st.integers(1, 3))
    def read_by_id(self, data, n):
        if self.given:
            ids = data.draw(st.lists(st.sampled_from(sorted(self.given)), max_size=4))
            self.count(ids, [], n)

    def count(self, ids, words, n):
        vocabulary = self.vocabulary
        gone = [i for i in ids if i not in self.expected]
        told = vocabulary.evictions.words(np.array(gone, dtype=np.int64))
        for id_, word in zip(gone, told, strict=True):
            assert word in {None, self.given[id_]}
        found = vocabulary.ids([*words, *(word for word in told if word)])
        for id_ in [*(i for i in ids if i in self.expected), *found.tolist()]:
            if id_ >= 0:
                self.expected[id_] += n
        before = sum(vocabulary.candidates.values())
        columns = [np.full(len(part), n) for part in (ids, words)]
        dropped = vocabulary.count(
            np.array(ids, dtype=np.int64),
            columns[0],
            np.ones(len(ids)),
            words,
            columns[1],
            np.ones(len(words)),
            10,
        )
        assert dropped == n * told.count(None)
        if self.half_life:
            for id_ in self.expected:
                self.expected[id_] *= 2.0 ** (-10 / self.half_life)
        elif before == 0 and not vocabulary.candidates.shortfall:
            strangers = int((found < 0).sum())
            assert sum(vocabulary.candidates.values()) == n * strangers

    @rule(which=st.integers(0, 1))
    def refresh(self, which):
        self.mirrors[which].refresh(self.vocabulary)

    @rule()
    def restart(self):
        old, fresh = self.vocabulary, self.make()
        ids = old.alive()
        slots = fresh.restore(
            words=old.names(ids),
            ids=ids,
            stored=old.stored(ids),
            last_seen=old.last_seen(ids),
            next_id=old.next_id,
            weight=old.decay.weight,
            candidates=dict(old.candidates),
        )
        self.row.update(zip(ids.tolist(), slots.tolist(), strict=True))
        self.vocabulary = fresh

    @invariant()
    def word_id_and_slot_are_one_to_one(self):
        vocabulary = self.vocabulary
        alive = vocabulary.alive().tolist()
        assert alive == sorted(self.expected)
        ids = np.arange(vocabulary.next_id)
        slots = vocabulary.slots(ids, "test").tolist()
        assert slots == [self.row[i] if i in self.expected else -1 for i in ids.tolist()]
        words = vocabulary.names(np.array(alive, dtype=np.int64))
        assert words == [self.given[i] for i in alive]
        assert vocabulary.ids(words).tolist() == alive
        used = [slot for slot in slots if slot >= 0]
        assert len(set(used)) == len(set(words)) == len(alive) == len(vocabulary)

    @invariant()
    def counts_are_those_of_the_word(self):
        alive = self.vocabulary.alive()
        expected = [self.expected[i] for i in alive.tolist()]
        np.testing.assert_allclose(self.vocabulary.counts(alive), expected, rtol=1e-9)

    @invariant()
    def everything_is_bounded(self):
        vocabulary = self.vocabulary
        assert len(vocabulary) <= vocabulary.rows <= ROWS
        assert len(vocabulary.candidates) <= CANDIDATES
        assert len(vocabulary.evictions) <= HISTORY
        assert not set(vocabulary.candidates) & {
            DIGESTS.of(word) for word in vocabulary.names(vocabulary.alive())
        }

    def teardown(self):
        for mirror in getattr(self, "mirrors", []):
            mirror.refresh(self.vocabulary)
            alive = self.vocabulary.alive()
            names = self.vocabulary.names(alive)
            assert mirror.ids == dict(zip(names, alive.tolist(), strict=True))


TestVocabulary = VocabularyMachine.TestCase
TestVocabulary.settings = settings(max_examples=examples(60), stateful_step_count=40)
