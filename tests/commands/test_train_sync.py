"""`yeoron train --sync …`: nodes of their own processes, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calling import sentences

WORDS = 60_000


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sync") / "corpus.txt"
    path.write_text(sentences(WORDS), encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "options",
    [
        ("averaging", "tau=2"),
        ("asp", "n_push=3", "n_fetch=2"),
        ("sandblaster", "lbfgs_every=3", "lbfgs_batch_tokens=4000", "lbfgs_iterations=3"),
    ],
    ids=lambda options: options[0],
)
def test_every_token_is_learnt_once(process, corpus: Path, options: tuple[str, ...]) -> None:
    policy, *settings = options
    given = [word for each in settings for word in ("--sync-setting", each)]
    fixed = ("--dim", "16", "--sample", "0", "--min-count", "1", "--nodes", "2", "--json")
    fixed += ("--learning-rate", "0.1", "--epochs", "6")
    done = process("train", corpus, *fixed, "--sync", policy, *given)
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["tokens_trained"] == 6 * WORDS
    assert told["loss"] < 4.1, "untrained: 4.16"


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ("--sync none", ["policy 'none'", "backup, bsp, easgd"]),
        ("--sync sandblaster --model glove", ["sandblaster", "glove", "cbow, sgns"]),
        ("--sync sandblaster --shards 2", ["2 shards", "sandblaster", "1 shard"]),
        ("--sync sandblaster --compression topk", ["sandblaster", "topk", "fp16, none"]),
        ("--sync sandblaster --topology allreduce", ["allreduce", "sandblaster", "asp, bsp, ssp"]),
        ("--sync sandblaster --nodes 2 --aggregators 1", ["aggregators 1", "sandblaster"]),
        ("--sync-setting tau", ["--sync-setting tau", "NAME=VALUE"]),
        ("--sync-setting policy=bsp", ["policy=bsp", "--sync"]),
        ("--sync-setting tau=0", ["tau", "0"]),
        ("--sync-setting tau=many", ["tau", "many"]),
        ("--sync-setting speed=3", ["speed"]),
        ("--sync-setting auto_apart=0.1", ["'auto_apart' is no setting any more", "0.4"]),
    ],
)
def test_what_cannot_work_is_one_sentence(
    yeoron, corpus: Path, options: str, parts: list[str]
) -> None:
    done = yeoron("train", corpus, *options.split())
    assert done.code == 2
    for part in parts:
        assert part in done.err
    assert "Traceback" not in done.err
