"""`yeoron snapshot evaluate` on the store of a training."""

from __future__ import annotations

import hashlib
import json
import tomllib

import pytest

pytestmark = pytest.mark.slow


def test_floors_are_pinned_to_the_corpus_and_kept(tmp_path, corpus, process, yeoron):
    gold, floors = tmp_path / "pairs.tsv", tmp_path / "floors.toml"
    pairs = [
        f"t{a}w{i}\tt{b}w{i + 1}\t{9 if a == b else 1}"
        for a in (0, 1)
        for b in (0, 1)
        for i in range(5)
    ]
    gold.write_text("\n".join(pairs) + "\n", encoding="utf-8")
    store = tmp_path / "store"
    assert process("train", corpus, "--dim", "16", "--sample", "0", "--out", store).code == 0
    told = yeoron("snapshot", "evaluate", store, "--gold", gold, "--pin", floors, "--json")
    assert told.code == 0, told.err
    report = json.loads(told.out)
    digest = hashlib.sha256(corpus.read_bytes()).hexdigest()
    assert report["corpus"] == digest
    (floor,) = (f for f in tomllib.loads(floors.read_text())["floor"] if f["metric"] != "nll")
    assert floor["metric"] == "similarity/pairs"
    assert floor["corpus"] == digest
    assert floor["gold"] == hashlib.sha256(gold.read_bytes()).hexdigest()
    kept = yeoron("snapshot", "evaluate", store, "--gold", gold, "--floors", floors)
    assert (kept.code, "Gate: passed." in kept.out) == (0, True), kept.out + kept.err
    floors.write_text('[[floor]]\nmetric = "similarity/pairs"\nat_least = 1.01\n')
    broken = yeoron("snapshot", "evaluate", store, "--gold", gold, "--floors", floors)
    assert broken.code == 1
    assert "below the floor of 1.01" in broken.out
    missing = yeoron("snapshot", "evaluate", store, "--floors", tmp_path / "none.toml")
    assert missing.code == 2
    assert "there is no such file" in missing.err
