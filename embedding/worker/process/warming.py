"""Kernels loaded before the first document, or the first push, waits for them."""

from __future__ import annotations

import numpy as np

from embedding.exchange.compression.base import unpacked
from embedding.exchange.compression.sending import sending
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Push
from embedding.exchange.rows import keeping
from embedding.kernel.records import Table
from embedding.kernel.spared import spare_blas
from embedding.models.base import LocalBlock, make_trainer
from embedding.models.config import ModelConfig


def warm(model: ModelConfig) -> None:
    """Train once on two words with rows that are thrown away, by a trainer that is thrown away.

    Loading a kernel takes a part of a second, compiling it many; the first block of a stream would
    wait for that, after each start of a node.
    """
    spare_blas()
    words, noise = 2, 2
    spelt = model.traits.has_subwords
    block = LocalBlock(
        tokens=np.asarray([0, 1, 0, 1], dtype=np.int32),
        sentences=np.asarray([0, 4], dtype=np.int32),
        keep=np.ones(words, dtype=np.float32),
        pool=np.arange(words, words + noise, dtype=np.int32),
        ids=np.arange(words + noise, dtype=np.int64),
        subwords=np.arange(words, 2 * words, dtype=np.int32) if spelt else None,
        subword_offsets=np.arange(words + 1, dtype=np.int32) if spelt else None,
        subword_ids=np.arange(words, dtype=np.int64) if spelt else None,
    )
    vectors = np.zeros((2 * words if spelt else words, model.width), dtype=np.float32)
    contexts = np.zeros((words + noise, model.width), dtype=np.float32)
    make_trainer(model).train(block, vectors, contexts, learning_rate=0.01, seed=1)


def warm_exchange(config: ExchangeConfig, dim: int) -> None:
    """Write and read pushes, and pulls of changes, of two rows as the settings say.

    Compiling what compresses takes seconds as well. What a server on this machine reads pushes with
    is then compiled, too.
    """
    kinds = {config.compression}
    if (kept := keeping(config)) is not None and kept.compression:
        kinds.add(kept.compression)
    for kind in sorted(kinds):
        feedback = sending(config.model_copy(update={"compression": kind}))
        for sequence in (1, 2):  # the second finds what the first has left
            values = np.full((2, dim), 0.01, dtype=np.float32)
            values[1] *= -3.0
            delta = RowDelta(Table.IN, np.arange(2, dtype=np.int64), values)
            _read(feedback.encode(Push("warm", sequence, 0, (delta,))))
        while (left := feedback.rest(config.residual_bytes)) is not None:
            _read(feedback.encode(Push("warm", 3, 0, (left,)), rest=True))


def _read(push: Push) -> None:
    """From bytes of one's own, and from those of a message, which cannot be written to."""
    unpacked(push)
    for packed in push.packed:
        packed.data.flags.writeable = False
    unpacked(push)
