"""`yeoron bench text` runs from end to end; what it measures is a matter of the machine."""

import gc
import json

import pytest

from yeoron_bench.text import bench_text

pytestmark = pytest.mark.slow


def test_text_is_prepared_beside_plain_kiwi(tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    lines = [json.dumps({"text": f"시장에서 마스크를 {n} 개 샀다."}) for n in range(16)]
    corpus.write_text("\n".join(lines), encoding="utf-8")
    given = {"documents": None, "every": 2, "new_words": 10, "tokenizer": "kiwi"}
    try:
        report = bench_text([corpus], **given, results=tmp_path)
    finally:  # it takes over the collector
        gc.unfreeze()
        gc.enable()
    (slices,) = report["runs"].values()
    assert sum(each["documents"] for each in slices) == 16
    assert all(each["identical"] > 0 for each in slices)
    assert "corpus.jsonl, kiwi" in next(tmp_path.glob("*.md")).read_text(encoding="utf-8")
