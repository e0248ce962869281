"""`yeoron bench gpu`: a sentence without a GPU; its parts measure on any device."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from embedding.server.rows.torchdevice import TorchDevice
from gpukernel import DEVICE, gpu_kernel
from yeoron_bench.corpora import encode

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from yeoron_bench import gpu

    return gpu


def test_without_a_gpu_it_is_refused_in_a_sentence():
    if torch.cuda.is_available():
        pytest.skip("a GPU is here")
    done = subprocess.run(
        [sys.executable, "-m", "embedding.cli", "bench", "gpu"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "yeoron: device cuda: this machine has no usable GPU; use cpu or auto, or a newer driver.\n"
    )


def test_its_parts_add_up(bench):
    device = bench.TorchDevice(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    found = bench.over_the_wire(device, 200, 8, 3)
    assert found["binds"] in found["parts_ms"]
    assert min(found["parts_ms"].values()) >= 0
    assert found["pull_rows_per_s"] > 0
    alone = bench.resident(device, device.steps(8), 500, 8, 3)
    both = 500 / (500 / alone["pull_rows_per_s"] + 500 / alone["push_rows_per_s"])
    assert alone["share"] == pytest.approx(both / (bench.BOUND * 100 / 8))


def test_the_training_kernel_learns_a_text_and_is_judged_beside_the_cpu(bench, tmp_path):
    kernel = gpu_kernel()
    from yeoron_bench import gpukernel

    device = bench.TorchDevice(torch.device(DEVICE))
    corpus = encode([[f"말{n % 100}" for n in range(first, first + 100)] for first in range(12)])
    gold = tmp_path / "near.tsv"
    gold.write_text("말1\t말2\t9\n말1\t말50\t2\n말7\t말9\t8\n말3\t말70\t1\n", "utf-8")
    found = gpukernel.kernels(corpus, "sgns", [gold], [1], device, kernel.GpuTrainer)
    assert {way: len(runs) for way, runs in found.items()} == {"gpu": 1, "cpu": 1}
    for (run,) in found.values():
        assert run["words_per_s"] > 0
        assert -1 <= run["similarity"]["mean"] == run["similarity"]["near"] <= 1
    moved = found["gpu"][0]["bytes_per_s"]
    card = {"copy_bytes_per_s": 4 * moved, "l2_bytes_per_s": 0.0}
    ours, cpu = gpukernel.kernel_rows({"sgns": found}, card)
    assert ours["share of copy_bytes_per_s"] == pytest.approx(0.25)
    assert ours["share of l2_bytes_per_s"] is None
    assert {"near", "mean"} < set(ours)
    assert set(ours) - set(cpu) == {"share of copy_bytes_per_s", "share of l2_bytes_per_s"}


def test_evaluations_on_a_device_agree_with_those_of_the_cpu():
    from benchmarks.gpuevaluation import evaluations

    device = TorchDevice(torch.device(DEVICE))
    found = evaluations(device, words=1_000, dim=16, frequent_words=40)
    assert list(found) == [
        "PIP loss",
        "similarity",
        "analogy",
        "neighbours of all words",
        "permutations",
    ]
    for one in found.values():
        assert min(one["cpu_s"], one["device_s"]) > 0
    apart = [one["difference"] for one in found.values()]
    assert max(apart[0], apart[1], apart[4]) < 1e-4
    assert max(apart[2], apart[3]) <= 0.02, "equal but for ties"
