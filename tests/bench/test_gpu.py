"""`yeoron bench gpu`: a sentence without a GPU; its parts measure on any device."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

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
        "yeoron: device cuda: this machine has no usable GPU; use cpu or auto.\n"
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
    report = {
        "when": "2026-01-01T00:00:00",
        "hardware": {"gpu": "G", "cpu": "C"},
        "versions": {"torch": "t"},
        "rows": 500,
        "dim": 8,
        "bound_rows_per_s": 1.0,
        "asked_share": bench.ASKED,
        "copy_bytes_per_s": bench.memory_bandwidth(device, 1),
        "resident": {"torch": {"kind": "TorchSteps", **alone}},
        "wire": [found],
    }
    assert found["binds"] in bench.table(report)
