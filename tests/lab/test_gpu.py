"""The kernel for GPUs against autograd, and what it refuses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from embedding.kernel.errors import ConfigError
from embedding.models.base import LocalBlock, Track
from embedding.models.config import ModelConfig
from embedding.models.sampling import NoiseTable
from gpukernel import DEVICE, gpu_kernel
from torchreference import negative_sampling_loss
from yeoron_lab.hogwild.training import HogwildInPlace

RATE = 0.05


def mixed(seed: int, at: np.ndarray) -> np.ndarray:
    """32 random bits as the kernel has them."""
    with np.errstate(over="ignore"):
        x = (at.astype(np.uint32) * np.uint32(0x9E3779B9)) ^ np.uint32(seed)
        x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        x = (x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        return x ^ (x >> np.uint32(16))


class Drawn:
    """What the kernel draws for each centre, from a pool in which a place is its row."""

    def __init__(self, config: ModelConfig, size: int, seed: int) -> None:
        self.config, self.size, self.seed = config, size, seed

    def reach(self, centre: int) -> int:
        return (
            self.config.window - int(mixed(self.seed, np.array([centre]))[0]) % self.config.window
        )

    def noise(self, centre: int, side: int) -> list[int]:
        many = 1 << (self.config.negative - 1).bit_length()
        at = centre * many + np.arange(self.config.negative)
        return (mixed(self.seed + 1 + side, 2 * at) % self.size).tolist()

    def repeats(self, words: int) -> bool:
        """Whether both sides of a window have a word: the second sees what the first added."""
        sides = (0, 1)
        return any(
            set(self.noise(centre, 0)) & {*self.noise(centre, 1), centre} for centre in range(words)
        ) or any(centre in self.noise(centre, side) for centre in range(words) for side in sides)


def step_by_autograd(drawn: Drawn, n: int, centre: int, rows: list[torch.Tensor]) -> Any:
    """Summed loss of the window of a centre, its pairs, and both tables after a step on it."""
    config, reach = drawn.config, drawn.reach(centre)
    tables = [table.clone().requires_grad_() for table in rows]
    around = [at for at in range(n) if 0 < abs(at - centre) <= reach]
    sides = [[int(at > centre) for at in around], [0]][config.traits.bag]
    inputs = tables[0][around]
    if config.traits.bag:
        inputs = inputs.mean(0, keepdim=True)
    drawn_rows = [[centre, *drawn.noise(centre, side)] for side in sides]
    outputs = tables[1][torch.tensor(drawn_rows)]
    known = torch.ones(outputs.shape[:2], dtype=torch.bool)
    loss = negative_sampling_loss(inputs, outputs, known).sum()
    slopes = list(torch.autograd.grad(loss, tables))
    if config.traits.bag:  # each row of a bag gets the whole step of the mean
        slopes[0] = slopes[0] * len(around)
    after = [t.detach() - RATE * s for t, s in zip(tables, slopes, strict=True)]
    return float(loss.detach()), len(sides), after


@pytest.mark.parametrize("model", ["sgns", "cbow"])
@pytest.mark.parametrize(("dim", "negative"), [(1, 1), (7, 5), (33, 2), (100, 8)])
def test_one_window_after_the_other_is_learnt_as_by_autograd(
    model: str, dim: int, negative: int
) -> None:
    gpu = gpu_kernel()
    config = ModelConfig(model=model, dim=dim, negative=negative, window=3)
    n, size = 6, 500
    seed = next(s for s in range(1000) if not Drawn(config, size, s).repeats(n))
    random, drawn = np.random.default_rng(5), Drawn(config, size, seed)
    rows = [torch.tensor(random.normal(0, 0.4, (size, dim)).astype(np.float32)) for _ in "ab"]
    loss, pairs, wanted = 0.0, 0, rows
    for centre in range(n):
        more, some, wanted = step_by_autograd(drawn, n, centre, wanted)
        loss, pairs = loss + more, pairs + some
    tokens, none = np.arange(n, dtype=np.int32), np.empty(0, np.float32)
    pool = np.arange(size, dtype=np.int32)
    block = LocalBlock(tokens, np.array([0, n], np.int32), none, pool)
    found = [table.clone().to(DEVICE) for table in rows]
    assert gpu.windows_in_flight(size, RATE) <= 12
    told = gpu.GpuTrainer(config).train(block, *found, learning_rate=RATE, seed=seed)
    assert (told.words, told.pairs) == (n, pairs)
    assert told.loss_sum == pytest.approx(loss, rel=1e-5)
    for ours, theirs in zip(found, wanted, strict=True):
        assert float((ours.cpu() - theirs).abs().max()) < 1e-5


def test_noise_that_is_the_target_is_passed_over() -> None:
    gpu = gpu_kernel()
    ends, none = np.array([0, 2], np.int32), np.empty(0, np.float32)
    moved = []
    for noise in (0, 2):
        block = LocalBlock(np.arange(2, dtype=np.int32), ends, none, np.full(1, noise, np.int32))
        rows = [torch.ones((3, 4), device=DEVICE) for _ in "ab"]
        config = ModelConfig(dim=4, negative=2, window=1, shrink=False)
        gpu.GpuTrainer(config).train(block, *rows, learning_rate=RATE, seed=1)
        moved.append((rows[1] - 1).cpu())
    assert float(moved[0][2].abs().max()) == 0.0
    # Word 0 is a target once and noise of word 1 twice; in the second block a target alone.
    assert float(moved[0][0, 0]) < 0 < float(moved[1][0, 0])


def test_contexts_before_and_behind_a_centre_have_noise_of_their_own() -> None:
    gpu = gpu_kernel()
    config = ModelConfig(dim=4, negative=1, window=1, shrink=False)
    pool = np.arange(3, 12, dtype=np.int32)
    block = LocalBlock(
        np.arange(3, dtype=np.int32), np.array([0, 3], np.int32), np.empty(0, np.float32), pool
    )
    drawn = set()
    for seed in range(12):
        rows = [torch.ones((12, 4), device=DEVICE) for _ in "ab"]
        gpu.GpuTrainer(config).train(block, *rows, learning_rate=RATE, seed=seed)
        moved = (rows[1][3:] != 1).any(1).cpu()
        drawn |= set(torch.nonzero(moved)[:, 0].tolist())
        assert 1 <= int(moved.sum()) <= 4, "two windows with one side, one with two"
    assert drawn == set(range(9)), "each noise word comes"


def test_noise_is_drawn_as_often_as_the_table_says() -> None:
    gpu = gpu_kernel()
    counts, ids = np.array([1.0, 0.0, 16.0, 81.0]), np.array([5, 6, 7, 9])
    table = NoiseTable.build(counts, 0.5)
    config = ModelConfig(dim=1, negative=64, window=1, shrink=False, sample=0)
    block = LocalBlock(
        np.arange(4, dtype=np.int32),
        np.array([0, 4], np.int32),
        np.empty(0, np.float32),
        np.zeros(1, np.int32),
        noise=(table, ids),
    )
    trainer, pushed = gpu.GpuTrainer(config), np.zeros(10)
    for seed in range(4):
        rows = [torch.ones((10, 1)).to(DEVICE), torch.zeros((10, 1)).to(DEVICE)]
        trainer.train(block, *rows, learning_rate=1e-3, seed=seed)
        pushed -= rows[1][:, 0].cpu().numpy()
    shares = pushed[ids] / pushed[ids].sum()
    assert shares[1] == 0.0
    np.testing.assert_allclose(shares, [1 / 14, 0, 4 / 14, 9 / 14], atol=0.05)


def test_weights_and_losses_are_those_of_each_sentence() -> None:
    gpu = gpu_kernel()
    config = ModelConfig(dim=3, negative=1, window=1, shrink=False)
    block = LocalBlock(
        np.array([0, 1, 2, 3, 4], np.int32),
        np.array([0, 2, 2, 4, 5], np.int32),
        np.empty(0, np.float32),
        np.full(1, 9, np.int32),
        weights=np.array([1.0, 1.0, 3.0, 1.0], np.float32),
        track=Track.LOSS,
    )
    rows = [torch.full((12, 3), 0.5, device=DEVICE) for _ in "ab"]
    told = gpu.GpuTrainer(config).train(block, *rows, learning_rate=1e-3, seed=1)
    assert told.sentence_pairs.tolist() == [2, 0, 2, 0]
    assert told.sentence_loss[0] == pytest.approx(told.sentence_loss[2], rel=1e-2)
    assert told.sentence_loss[[1, 3]].tolist() == [0.0, 0.0]
    assert float(told.sentence_loss @ told.sentence_pairs) == pytest.approx(told.loss_sum, rel=1e-5)
    moved = (rows[0] - 0.5).abs().sum(1)
    assert float(moved[2] / moved[0]) == pytest.approx(3.0, rel=0.02)
    with pytest.raises(ConfigError, match="replay gradient with device cuda and sync hogwild"):
        gpu.GpuTrainer(config).train(
            replace(block, track=Track.GRADIENT), *rows, learning_rate=1e-3, seed=1
        )


def test_fewer_windows_are_in_flight_where_words_are_few_or_steps_are_long() -> None:
    gpu = gpu_kernel()
    assert gpu.windows_in_flight(56_000, 0.025) == 2688
    assert gpu.windows_in_flight(56_000, 0.05) == 672
    assert gpu.windows_in_flight(10, 0.5) == 1


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"model": "glove"}, "model glove with device cuda and sync hogwild: there is no kernel"),
        ({"optimiser": "adagrad"}, "optimiser adagrad with device cuda and sync hogwild"),
        ({"dim": 60_000}, "dim 60000 and negative 5 with device cuda"),
    ],
)
def test_what_it_does_not_learn_is_refused(asked: dict[str, Any], message: str) -> None:
    gpu_kernel()
    with pytest.raises(ConfigError, match=message):
        HogwildInPlace.trainer(ModelConfig(**asked))


@pytest.mark.parametrize(
    ("error", "mend"),
    [
        (RuntimeError("device kernel image is invalid\nmore of it"), "bring the driver"),
        (torch.OutOfMemoryError("CUDA out of memory.\nmore of it"), "end what else runs on it"),
        (RuntimeError("CUDA-capable device(s) is/are busy or unavailable"), "end what else runs"),
    ],
)
def test_what_keeps_triton_from_running_is_named_with_what_mends_it(
    error: Exception, mend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that is too old, and another process on the card."""
    gpu = gpu_kernel()

    class Unable:
        def __getitem__(self, grid: object) -> Any:
            raise error

    monkeypatch.setattr(gpu, "learn", Unable())
    said = re.escape(str(error).splitlines()[0].rstrip("."))
    with pytest.raises(ConfigError, match=rf"cannot run on this GPU \({said}\); {mend}"):
        gpu.GpuTrainer(ModelConfig(dim=4)).warm(DEVICE)


def test_without_triton_it_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.delitem(sys.modules, "yeoron_lab.hogwild.gpu", raising=False)
    with pytest.raises(ConfigError, match="triton is not installed; `make setup TORCH=cuda`"):
        HogwildInPlace.trainer(ModelConfig())


COMPILE = """
import sys, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from yeoron_lab.hogwild import gpu
from embedding.models.config import ModelConfig
for model in ("sgns", "cbow"):
    constants = dict(gpu.GpuTrainer(ModelConfig(model=model))._constants)
    options = {"num_warps": constants.pop("num_warps")}
    names = gpu.learn.arg_names
    floats = ("rates", "vectors", "contexts", "accept", "losses")
    types = {name: "*fp32" if name in floats else "*i32" for name in names[:11]}
    types |= {"size": "i32", "n": "i32", "stretch": "i32", "seed": "i64"}
    aligned = {(at,): [["tt.divisibility", 16]] for at in range(11)}
    source = ASTSource(
        gpu.learn,
        types | dict.fromkeys(constants, "constexpr"),
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs=aligned,
    )
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    assert made.asm["cubin"]
    assert "add.v4.f32" in made.asm["ptx"], "four columns are added at once"
"""


@pytest.mark.laboratory
def test_it_compiles_for_an_h100_without_one() -> None:
    gpu_kernel()
    from triton import knobs

    try:
        knobs.nvidia.ptxas.path  # noqa: B018 - looks for it
    except RuntimeError as error:
        pytest.skip(f"no assembler of NVIDIA's here: {error}")
    # In a process of its own: here kernels may be interpreted.
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", COMPILE],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
