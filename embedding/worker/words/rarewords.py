"""Words that were read only a few times: what stood around them.

A gradient step sees each mention once, at a learning rate that suits words with thousands of them;
a word with thirty mentions would hardly have left its random start. So a node adds up which words
stood around its young words (see `models/contextbags.py`) and tells of them beside its deltas; the
server infers vectors from them for those who read (see `server/words/inferred.py`). Of known
words it tells a sample, from which the server learns how vectors follow from contexts. What is
trained is not touched (docs/adr/0008-young-words.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.exchange.payload import WordContexts, summed
from embedding.kernel.records import CodeArray, IntArray, TimeArray, TokenBlock
from embedding.models.base import LocalBlock
from embedding.models.config import ModelConfig
from embedding.models.contextbags import ContextBag, ContextBags, added_up

Flags = npt.NDArray[np.bool_]

_LEAST_TOKENS_READ = 1_000_000
"""Tokens that must have been read before: until then the known words are not at rest themselves."""
HELD = 50_000
"""Words without a row whose contexts a node holds; each takes 12 bytes a context and some 250."""
KNOWN_EXAMPLES = 4096
"""Known words, at most, of which a sample of mentions is sent."""
LEAST_EXAMPLES = 16
"""Blocks whose known words go in one push: the same words again and again."""


@dataclass(frozen=True)
class RareContexts:
    """Words of one block that are reported, and their contexts.

    words  str [w], distinct; ids int64 [w], -1 for one without a row
    known  bool [w], those that are reported as examples
    bags   row ids of the neighbours and their weights, of each word
    """

    words: Sequence[str]
    ids: IntArray
    known: Flags
    bags: ContextBag


class RareWords:
    """Reads what stands around young words, and holds the contexts of those without a row.

    window    words on each side; nearer ones weigh more, as word2vec's random windows make them
    mentions  a word is young until it was read so often
    """

    def __init__(self, *, window: int, mentions: int, limit: int = HELD) -> None:
        self.window = window
        self.mentions = mentions
        self.limit = limit
        self._held: ContextBags[str] = ContextBags(limit)
        self._examples: list[WordContexts] = []
        self._sighted = 0

    @classmethod
    def of(cls, model: ModelConfig, mentions: int) -> RareWords | None:
        if not model.traits.rare_words or not mentions:
            return None
        return cls(window=model.window, mentions=mentions)

    def __len__(self) -> int:
        return len(self._held)

    def sight(
        self,
        blocks: Sequence[TokenBlock],
        planned: LocalBlock,
        ids: IntArray,
        counts: TimeArray,
        whole: TimeArray,
    ) -> list[RareContexts]:
        """The words of each block of a tick to tell of; the plan's text begins with these blocks.

        ids     int64 [U], of the words that may be in the tick, by local row
        counts  float64 [U], their running counts; whole  float64 [V], of all words with a row

        Of a young word every mention; of a known one, read n times, each with chance mentions/n, so
        that all known words are reported as often.
        """
        if float(whole.sum()) < _LEAST_TOKENS_READ:
            return []
        known = int((whole >= self.mentions).sum())
        # Powers of two, so that fewer words sent are some of those sent before.
        step = 1 << max(0, -(-known // KNOWN_EXAMPLES) - 1).bit_length()
        chance = np.where(ids % step == 0, self.mentions, 0.0)
        grown = counts >= self.mentions
        chance = np.where(grown, chance / np.maximum(counts, 1.0), 1.0)
        tokens, seen = planned.tokens, []
        for block in blocks:
            rows = np.full(len(block.words), -1, dtype=np.int32)
            n = len(block.codes)
            rows[block.codes], tokens = tokens[:n], tokens[n:]
            seen.append(self._sight(block, rows, ids, grown, chance))
        return seen

    def _sight(
        self,
        block: TokenBlock,
        rows: CodeArray,
        known: IntArray,
        grown: Flags,
        chances: TimeArray,
    ) -> RareContexts:
        """rows  int32 [W], local row of each word of the block, -1 for one without."""
        named, example = rows >= 0, np.zeros(len(rows), dtype=np.bool_)
        chance, ids = np.ones(len(rows)), np.full(len(rows), -1, dtype=np.int64)
        chance[named], ids[named] = chances[rows[named]], known[rows[named]]
        example[named] = grown[rows[named]]
        codes, sentences = block.codes, block.sentences
        drawn = np.random.default_rng(self._sighted).random(len(codes))
        self._sighted += 1
        at = np.flatnonzero(drawn < chance[codes])
        own, code = np.unique(codes[at], return_inverse=True)
        steps = np.concatenate([np.arange(-self.window, 0), np.arange(1, self.window + 1)])
        near = at[:, None] + steps
        sentence = np.repeat(np.arange(len(sentences) - 1), np.diff(sentences))
        inside = (near >= 0) & (near < len(codes))
        near = np.where(inside, near, 0)
        neighbour = rows[codes[near]] if len(at) else np.empty(near.shape, np.int32)
        inside &= (sentence[near] == sentence[at][:, None]) & (neighbour >= 0)
        distance = np.broadcast_to((self.window + 1 - np.abs(steps)) / self.window, near.shape)
        owners = np.broadcast_to(code[:, None], near.shape)[inside].astype(np.int64)
        return RareContexts(
            words=[block.words[i] for i in own.tolist()],
            ids=ids[own],
            known=example[own],
            bags=added_up(
                owners,
                known[neighbour[inside]],
                distance[inside].astype(np.float32),
                np.bincount(code, minlength=len(own)).astype(np.int64),
            ),
        )

    def learn_all(self, sightings: Sequence[RareContexts]) -> WordContexts | None:
        """What all blocks of a tick say (see `learn`), and the known words of the last blocks when
        these are enough to be worth their bytes."""
        parts = [part for seen in sightings if (part := self.learn(seen)) is not None]
        if len(self._examples) >= LEAST_EXAMPLES:
            examples, self._examples = summed(self._examples), []
            parts += [] if examples is None else [examples]
        return summed(parts)

    def learn(self, seen: RareContexts) -> WordContexts | None:
        """What a block says of young words with a row, with what was held of them until now.

        Known words are held until `learn_all` tells of them.
        """
        if not len(seen.words):
            return None
        bare = seen.ids < 0
        rowed = ~bare & ~seen.known
        self._held.add([seen.words[i] for i in np.flatnonzero(bare).tolist()], seen.bags.of(bare))
        self._examples.append(WordContexts.of_bags(seen.ids[seen.known], seen.bags.of(seen.known)))
        contexts = WordContexts.of_bags(seen.ids[rowed], seen.bags.of(rowed))
        before = [i for i in np.flatnonzero(rowed).tolist() if seen.words[i] in self._held]
        if not before:
            return contexts
        names = [seen.words[i] for i in before]
        earlier = WordContexts.of_bags(seen.ids[before], self._held.of(names))
        self._held.forget(names)
        return summed([contexts, earlier])
