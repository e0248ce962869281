"""`yeoron train --server-groups`: each token learnt once, also when a group is killed."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from calling import ENTRY, sentences

from embedding.snapshots.store import SnapshotStore
from waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
QUICK = ("--dim", "16", "--sample", "0", "--min-count", "1", "--learning-rate", "0.05")
UNTRAINED = 6 * np.log(2)
PAST = "its nodes change rows past the pushes that groups tell each other of;"
PUSHING = "asp, auto, averaging, backup, bsp, easgd, ssp are accepted"


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("groups") / "plain.txt"
    path.write_text(sentences(60_000), encoding="utf-8")
    return path


def test_two_groups_learn_every_token_once(process, text, tmp_path) -> None:
    options = ("--nodes", 2, "--server-groups", 2, "--exchange-every", 0.3, "--epochs", 4)
    store = tmp_path / "store"
    more = ("--vocabulary", "growing", "--out", store, "--json", *QUICK)
    done = process("train", text, *options, *more)
    assert done.code == 0, done.err
    told, words = json.loads(done.out), text.read_text(encoding="utf-8").split()
    assert told["tokens_trained"] == 4 * len(words)
    assert told["vocabulary"] == len(set(words))
    assert 0 < told["loss"] < 0.97 * UNTRAINED
    assert told["transports"]["bytes"]["groups"] > 0
    assert told["transports"]["rows"]["groups"] > 0
    assert told["transports"]["bytes"]["server"] > told["transports"]["bytes"]["groups"] / 100
    assert {name: node["topology"]["kind"] for name, node in told["nodes"].items()} == {
        "train-node-0": "ps",
        "train-node-1": "ps",
    }
    found = SnapshotStore(str(store)).open("latest")
    assert int(np.asarray(found.by_source.counts).sum()) == 4 * len(words)
    near = [word for word, _ in found.neighbours("t3w0", 5)]
    assert sum(word.startswith("t3w") for word in near) >= 3, near


@pytest.mark.laboratory
def test_a_group_that_is_killed_comes_again_and_nothing_is_lost(text, tmp_path) -> None:
    store = tmp_path / "store"
    options = ("--nodes", "2", "--server-groups", "2", "--epochs", "40", "--json", *QUICK)
    command = [sys.executable, "-c", ENTRY, "train", str(text), "--out", str(store), *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            killed = kill_group(running.pid)
            out, said = running.communicate(timeout=300)
        finally:
            running.kill()
    assert running.returncode == 0, said
    words = text.read_text(encoding="utf-8").split()
    assert json.loads(out)["tokens_trained"] == 40 * len(words)
    counts = SnapshotStore(str(store)).open("latest").by_source.counts
    assert int(np.asarray(counts).sum()) == 40 * len(words)
    assert not psutil.pid_exists(killed)


def kill_group(pid: int) -> int:
    """kill -9 the group that follows, once its node has opened its stream to it."""

    def reached() -> psutil.Process | None:
        for child in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if "yeoron_lab.groups.process" not in child.cmdline():
                    continue
                open_ = [c for c in child.net_connections() if c.status == psutil.CONN_ESTABLISHED]
                if len(open_) >= 3:  # to the leader, and from the node
                    return child
        return None

    group = until(reached, "no group was reached by its node")
    assert group is not None
    time.sleep(1.0)  # some blocks
    group.kill()
    return group.pid


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--server-groups", "3"), "there are 2 nodes"),
        (("--server-groups", "2", "--topology", "allreduce"), "topology allreduce"),
        (("--server-groups", "2", "--aggregators", "1"), "aggregators 1"),
        (("--server-groups", "2", "--split", "columns"), "split rows is accepted"),
        (("--server-groups", "2", "--shards", "2"), "server_groups 2 with shards 2: groups tell"),
        (("--aggregators", "1", "--shards", "2"), "aggregators 1 with shards 2: an aggregator"),
        (
            ("--server-groups", "2", "--sync", "hogwild"),
            f"hogwild with server_groups 2: {PAST} {PUSHING}",
        ),
        (
            ("--server-groups", "2", "--sync", "sandblaster"),
            f"sandblaster with server_groups 2: {PAST} {PUSHING}",
        ),
        (("--server-groups", "2", "--sync", "none"), "policy 'none': one of asp, auto, "),
        (("--shards", "2", "--sync", "hogwild"), f"tables of one process; {PUSHING}, or 1 shard."),
        (
            ("--shards", "2", "--sync", "sandblaster"),
            f"tables of one process; {PUSHING}, or 1 shard.",
        ),
        (("--server-groups", "0"), "server_groups"),
        (("--server-groups", "2", "--exchange-every", "0"), "exchange_every_s"),
        (("--server-groups", "2", "--exchange-every", "40"), "at most 30 s is accepted"),
    ],
)
def test_what_cannot_work_is_refused_in_a_sentence(yeoron, text, options, said: str) -> None:
    done = yeoron("train", text, "--nodes", 2, *options)
    assert done.code == 2
    assert said in " ".join(done.err.split())
    assert done.out == ""
