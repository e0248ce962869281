"""A node that trains on the server's own tables, in memory that they share, without a lock.

Recht, Re, Wright and Niu 2011, "Hogwild!": where updates are sparse, processes may write to the
same rows at once; what is lost now and then costs less than waiting. Words, counts and progress
go over the wire as for every other policy; rows do not.
"""

from __future__ import annotations

import json
import math
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from embedding.exchange.protocol import SharedTables
from embedding.kernel.devices import DeviceArray, to_host
from embedding.kernel.errors import ConfigError, YeoronError
from embedding.kernel.records import FloatArray, IntArray, Table, TimeArray
from embedding.kernel.registry import NoTraits
from embedding.models.base import LocalBlock, Trainer
from embedding.models.config import ModelConfig, Optimiser
from embedding.models.traits import GPU_MODEL
from embedding.worker.learning.planning import BlockPlan, CodedText, offsets
from embedding.worker.learning.ticks import Tick, check_loss
from embedding.worker.learning.training import IN_PLACE, MakeTraining, Training


def borrow(handle: str, shape: Sequence[int]) -> DeviceArray:
    """A float32 tensor that another process has lent; ConfigError where it cannot be reached."""
    import torch

    parts = [bytes.fromhex(part) if isinstance(part, str) else part for part in json.loads(handle)]
    try:
        # CUDA IPC, as torch.multiprocessing.reductions.rebuild_cuda_tensor has it.
        storage = torch.UntypedStorage._new_shared_cuda(*parts)  # noqa: SLF001
    except (AttributeError, RuntimeError, TypeError) as error:
        raise ConfigError(
            "policy hogwild on a GPU: the server's tables cannot be reached from this process "
            f"({str(error).splitlines()[0]}); start nodes on the server's own host, with the same "
            "CUDA_VISIBLE_DEVICES and in the same container, or use ssp or asp."
        ) from error
    flat = torch.empty(0, dtype=torch.float32, device=storage.device).set_(storage)
    return flat[: math.prod(shape)].view(*shape)


@dataclass(frozen=True)
class MappedTables:
    """The server's tables as they are at any moment, numpy arrays or tensors on a GPU.

    vectors   float32 [rows + buckets, dim]: `in`, and behind it fastText's n-gram rows
    contexts  float32 [rows, dim]: `out`
    """

    vectors: DeviceArray
    contexts: DeviceArray

    @classmethod
    def attach(cls, shared: SharedTables, dim: int) -> MappedTables:
        """Map the memory that the server named; ConfigError when this host does not have it."""
        rows = 2 * shared.rows + shared.buckets
        if shared.on_gpu:
            lent = borrow(shared.path, (rows, dim))
            return cls(lent[shared.rows :], lent[: shared.rows])
        try:
            file = os.open(shared.path, os.O_RDWR)
        except OSError as error:
            raise ConfigError(
                f"policy hogwild: the server's tables ({shared.path}) are not on this host; use "
                "ssp or asp for nodes on other machines."
            ) from error
        try:
            memory = mmap.mmap(file, 4 * rows * dim)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"policy hogwild: {shared.path} does not hold {rows:,} rows of {dim} columns."
            ) from error
        finally:
            os.close(file)
        tables = np.frombuffer(memory, dtype=np.float32).reshape(rows, dim)
        return cls(tables[shared.rows :], tables[: shared.rows])


@dataclass(kw_only=True)
class HogwildTraining(Training):
    """Trains in place on rows that are the server's: ids are places in the shared `tables`."""

    tables: MappedTables
    sees_itself = True

    def train(self, tick: Tick) -> None:
        """Train in place."""
        self.remember(tick)
        self.pulled(tick)
        tables = {Table.IN: self.tables.vectors, Table.OUT: self.tables.contexts}
        if tick.close is not None:
            tick.uses = self.closed(tick, self._vectors)
            return
        if (held_out := tick.held) is not None:
            of_held = {table: to_host(rows[held_out.ids]) for table, rows in tables.items()}
            tick.held_loss = held_out.loss(held_out.ids, of_held)
        # What a block that diverges did is taken back where a copy is quick: on a GPU.
        on_gpu = [rows for rows in tables.values() if not isinstance(rows, np.ndarray)]
        try:
            before = [rows[: len(tick.planned.block.keep)].clone() for rows in on_gpu]
            tick.loss = self.trainer.train(
                tick.planned.block,
                self.tables.vectors,
                self.tables.contexts,
                learning_rate=tick.rate,
                seed=tick.seed,
            )
        except RuntimeError as error:  # of torch: no memory left, or the GPU is gone
            raise ConfigError(
                f"{self.setup.node}: the GPU could not learn a block "
                f"({str(error).splitlines()[0].rstrip('.')}); end what else runs on it, set a "
                "smaller max_words or block_tokens, or use --device cpu. Blocks before it are kept."
            ) from error
        try:
            check_loss(self.setup.node, self.setup.model, tick.loss)
        except YeoronError:
            for rows, copy in zip(on_gpu, before, strict=True):
                rows[: len(copy)] = copy
            raise
        tick.rare = self.rare_contexts(tick)

    def _vectors(self, ids: IntArray) -> FloatArray:
        """Rows of the shared tables."""
        rows: FloatArray = to_host(self.tables.vectors[ids])
        return rows

    def _ids(self) -> IntArray | None:
        """A row's id is its place; needed where the trainer keeps state between blocks."""
        model = self.setup.model
        needed = model.traits.keeps_state or model.optimiser is Optimiser.ADAGRAD
        return np.arange(len(self.tables.contexts), dtype=np.int64) if needed else None

    def row_counts(self, planned: BlockPlan) -> tuple[IntArray, TimeArray]:
        """Of every word: a row's id is its place."""
        lexicon = self.words.lexicon
        counts = np.zeros(int(lexicon.ids[-1]) + 1 if len(lexicon.ids) else 0)
        counts[lexicon.ids] = lexicon.counts
        return np.arange(len(counts), dtype=np.int64), counts

    def plan(self, parts: Sequence[CodedText], noise: IntArray) -> BlockPlan:
        """Local rows are the rows of the whole tables, so that none is pulled."""
        none = np.empty(0, dtype=np.int64)
        tokens = [part.table.astype(np.int32)[part.codes] for part in parts]
        ids = self.words.lexicon.ids
        keep = np.zeros(int(ids[-1]) + 1 if len(ids) else 0, dtype=np.float32)
        keep[ids] = self.words.keep(ids)
        block = LocalBlock(
            tokens=np.concatenate(tokens) if tokens else np.empty(0, np.int32),
            sentences=offsets(parts),
            keep=keep,
            pool=noise.astype(np.int32),
            ids=self._ids(),
            noise=self.words.noise_table,
        )
        if self.words.grams is not None:
            words = np.unique(block.tokens)
            known = words[words >= 0].astype(np.int64)
            rows, buckets = len(self.tables.contexts), self.words.grams.buckets
            flat, ends = self.words.grams.of(known, self.words.lexicon.names)
            sizes = np.zeros(rows + 1, dtype=np.int32)
            sizes[known + 1] = np.diff(ends)
            # In the rows of the shared tables bucket b lies in row `rows` + b.
            block = replace(
                block,
                subwords=flat + np.int32(rows),
                subword_offsets=np.cumsum(sizes, dtype=np.int32),
                subword_ids=None if block.ids is None else np.arange(buckets),
            )
        return BlockPlan(words=none, extras=none, block=block)


@IN_PLACE.register("hogwild", NoTraits())
class HogwildInPlace:
    """See TrainingInPlace."""

    @staticmethod
    def check_model(config: ModelConfig) -> None:
        """Raises ConfigError for what the kernel for GPUs does not learn."""
        GPU_MODEL.check(config.model)
        if config.optimiser is not Optimiser.SGD:
            raise ConfigError(
                f"optimiser {config.optimiser} with {GPU_MODEL.feature}: the kernel for GPUs keeps "
                "no sums of squares; sgd is accepted."
            )

    @staticmethod
    def trainer(config: ModelConfig) -> Trainer:
        """The kernel for GPUs, compiled; ConfigError without Triton too."""
        HogwildInPlace.check_model(config)
        try:
            from yeoron_lab.hogwild.gpu import GpuTrainer  # torch takes a second
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"{GPU_MODEL.feature}: {error.name} is not installed; `make setup TORCH=cuda` "
                "installs it, or leave out --device cuda."
            ) from error
        trainer = GpuTrainer(config)
        trainer.warm("cuda")
        return trainer

    @staticmethod
    def training(shared: SharedTables, dim: int) -> MakeTraining:
        return partial(HogwildTraining, tables=MappedTables.attach(shared, dim))
