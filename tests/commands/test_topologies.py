"""`yeoron train` with each topology: the same tokens, learnt once; refused where it cannot work."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from calling import ENTRY, sentences

from embedding.exchange.topology import TopologyConfig
from embedding.kernel.errors import ConfigError
from embedding.snapshots.store import SnapshotStore
from embedding.training import TrainRequest, checks
from waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
QUICK = ("--dim", "16", "--sample", "0", "--min-count", "1", "--learning-rate", "0.05")
UNTRAINED = 6 * np.log(2)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """120,000 words, which three nodes cannot share out evenly: a stretch is 64 KiB."""
    path = tmp_path_factory.mktemp("topologies") / "plain.txt"
    path.write_text(sentences(120_000), encoding="utf-8")
    return path


def train(process, text: Path, out: Path, *options: object) -> dict:
    done = process("train", text, "--out", out, "--json", *QUICK, *options)
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.mark.parametrize(
    ("options", "nodes"),
    [
        (("--topology", "allreduce"), 3),
        (("--topology", "hybrid", "--sync", "bsp"), 2),
        (("--aggregators", "1", "--sync", "asp"), 3),
    ],
    ids=["allreduce", "hybrid", "groups"],
)
def test_every_token_is_learnt_once_and_the_snapshot_knows_its_topics(
    process, text: Path, tmp_path: Path, options: tuple[str, ...], nodes: int
) -> None:
    told = train(process, text, tmp_path / "store", *options, "--nodes", nodes, "--epochs", 4)
    words = text.read_text(encoding="utf-8").split()
    assert told["tokens_trained"] == 4 * len(words)
    assert told["vocabulary"] == len(set(words))
    assert 0 < told["loss"] < 0.97 * UNTRAINED
    transports = told["transports"]
    assert transports["kind"] == (options[1] if options[0] == "--topology" else "ps")
    assert transports["bytes"]["server"] > 0
    assert transports["rows"]["server"] > 0
    assert all(0 < share <= 1 for share in transports["density"].values())
    if transports["kind"] == "ps":
        assert transports["groups"] == 1
        assert transports["rows"]["host"] > 0
        assert transports["bytes"]["host"] > 0
    else:
        assert transports["bytes"]["allreduce"] > 0
        assert transports["rows"]["allreduce"] > 0
    if transports["kind"] == "allreduce":
        assert transports["dense_rows"] == {"in": len(set(words)), "out": len(set(words))}
    found = SnapshotStore(str(tmp_path / "store")).open("latest")
    assert int(np.asarray(found.counts).sum()) == len(words), "a counted vocabulary"
    near = [word for word, _ in found.neighbours("t3w0", 5)]
    assert sum(word.startswith("t3w") for word in near) >= 3, near


@pytest.mark.laboratory
def test_nodes_that_are_killed_come_again_and_every_token_is_learnt_once(
    text: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", ENTRY, "train", str(text), "--out", str(tmp_path / "store")]
    options = ["--nodes", "2", "--topology", "allreduce", "--epochs", "100", "--json", *QUICK]
    with subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            for _ in range(2):  # the second time the one that was left: the other has its rows
                kill_oldest_of_two(running.pid)
            out, said = running.communicate(timeout=300)
        finally:
            running.kill()
    assert running.returncode == 0, said
    told, words = json.loads(out), text.read_text(encoding="utf-8").split()
    assert told["tokens_trained"] == 100 * len(words)
    assert told["transports"]["regrouped"] >= 1
    assert (told["transports"]["lost_tokens"], told["transports"]["from_server"]) == (0, 0)
    assert told["loss"] < 0.97 * UNTRAINED
    found = SnapshotStore(str(tmp_path / "store")).open("latest")
    assert int(np.asarray(found.by_source.counts).sum()) == 100 * len(words)


def kill_oldest_of_two(pid: int) -> None:
    """Kill that of two processes in a ring of all-reduce that began first."""

    def met() -> dict[int, float]:
        found = {}
        for child in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if any("/ring-" in str(c.laddr) for c in child.net_connections("unix")):
                    found[child.pid] = child.create_time()
        return found

    def killed() -> bool:
        if len(found := met()) != 2:
            return False
        time.sleep(0.2)  # some blocks
        with contextlib.suppress(ProcessLookupError):  # it was about to end: look again
            os.kill(min(found, key=found.__getitem__), signal.SIGKILL)
            return True
        return False

    until(killed, lambda: f"the nodes have not met: {met()}")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--topology", "allreduce", "--sync", "hogwild"), "asp, bsp, ssp are accepted"),
        (("--topology", "hybrid", "--sync", "easgd"), "asp, bsp, ssp are accepted"),
        (("--topology", "allreduce", "--aggregators", "1"), "they are accepted with topology ps"),
        (("--topology", "allreduce", "--compression", "topk"), "fp16, none are accepted"),
        (("--aggregators", "3"), "there are 2 nodes"),
        (("--aggregators", "1", "--sync", "hogwild"), "asp, bsp, ssp are accepted"),
        (("--aggregators", "1", "--compression", "onebit"), "fp16, none are accepted"),
        (("--topology", "mesh"), "one of allreduce, hybrid, ps is accepted"),
    ],
)
def test_what_cannot_work_is_refused_in_a_sentence(
    yeoron, text: Path, options: tuple[str, ...], said: str
) -> None:
    done = yeoron("train", text, "--nodes", 2, *options)
    assert done.code == 2
    assert said in done.err.replace("\n", " ")


def test_replicas_are_counted_before_they_are_made(
    text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, dim = 1_000, 10
    by_server = TrainRequest(corpus=text, nodes=4, model={"dim": dim})
    monkeypatch.setattr(checks, "free_memory", lambda: 4 * dim * (4 * words + 4 * 4 * words))
    checks.check_memory(by_server, words)
    reduced = by_server.model_copy(update={"topology": TopologyConfig(kind="allreduce")})
    with pytest.raises(ConfigError, match="choose a smaller dim"):
        checks.check_memory(reduced, words)
