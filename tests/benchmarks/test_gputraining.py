"""The script that measures training on a GPU, by Triton's interpreter on a small text."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from benchmarks import gputraining
from embedding.kernel.errors import ConfigError
from embedding.server.rows import torchdevice
from embedding.server.rows.torchdevice import TorchDevice
from gpukernel import DEVICE, gpu_kernel

WAYS = ("cpu, hogwild", "cpu, one node", "gpu, one node", "gpu, larger blocks", "gpu, four nodes")
BY_GENSIM = {"seconds": 60.0, "words_per_second": 2e6}


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Twelve sentences of words that are near each other by number."""
    path = tmp_path / "text.txt"
    lines = [" ".join(f"w{n % 100}" for n in range(first, first + 100)) for first in range(12)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_without_a_gpu_it_says_so_in_a_sentence(text: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("a GPU is here")
    with pytest.raises(ConfigError, match="There is no GPU here"):
        gputraining.bench_gpu_training(text, None, [], [1])


def test_all_rows_are_in_one_result(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole commands are counted, and not run: they need a card."""
    kernel = gpu_kernel()
    asked = []

    def commands(
        corpus: Path, options: list[str], repeats: int, alternatives: dict[str, list[str]]
    ):
        asked.append((corpus.name, options))
        run = {"seconds": 2.0, "words_per_second": 1e6, "loss": 2.5}
        return {way: [run] * repeats for way in alternatives}

    device = TorchDevice(torch.device(DEVICE))
    monkeypatch.setattr(gputraining, "on_gpu", lambda name: True)
    monkeypatch.setattr(torchdevice, "gpu", lambda: device)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a card")
    monkeypatch.setattr(gputraining, "in_place", lambda: SimpleNamespace(trainer=kernel.GpuTrainer))
    monkeypatch.setattr(gputraining, "commands", commands)
    monkeypatch.setattr(gputraining, "by_gensim", lambda *_: {"gensim": [BY_GENSIM]})
    small = partial(gputraining.evaluations, words=200, dim=8, frequent_words=20)
    monkeypatch.setattr(gputraining, "evaluations", small)
    gold = tmp_path / "near.tsv"
    gold.write_text("w1\tw2\t9\nw1\tw50\t2\nw7\tw9\t8\nw3\tw70\t1\n", "utf-8")
    report = gputraining.bench_gpu_training(text, text, [gold], [1], results=tmp_path)
    assert set(report["kernels"]) == {"sgns", "cbow"}
    assert asked[0] == ("text.txt", ["--epochs=20"])
    assert "--dated" in asked[1][1]
    shown = next(tmp_path.glob("gputraining-*.md")).read_text("utf-8")
    for row in ("sgns, gpu", "cbow, cpu", "PIP loss", "permutations", "gensim", *WAYS):
        assert f"| {row} |" in shown
    assert "near" in shown


def test_a_whole_command_is_measured(text: Path) -> None:
    (run,) = gputraining.commands(text, ["--dim=8", "--min-count=1"], 1, {"cpu": []})["cpu"]
    assert run["seconds"] > 0
    assert run["tokens_trained"] > 0
    assert run["loss"] > 0
