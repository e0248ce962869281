"""`yeoron train --dated` finds words that Kiwi takes to pieces, as a crawl does."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from embedding.commands.training import request_of
from embedding.kernel.records import WindowUnit
from embedding.snapshots.store import SnapshotStore
from embedding.training import train_corpus

WORD, PARTS = "김밥맛", ("김밥", "맛")
TAILS = ("", "이", "은", "을", "에", "의", "도", "만", "으로", "과", "까지", "보다")
FRAMES = ("오늘 {} 좋다", "우리는 {} 안다", "그 {} 처음 보다", "요즘 {} 많다")
OTHERS = ("학교", "대통령", "마스크", "국민")


def test_a_word_found_in_a_file_is_read_as_one_and_told_with_its_parts(
    tmp_path: Path,
) -> None:
    lines = [
        {"date": f"2020-0{month}-03", "text": frame.format(noun + tail)}
        for month in (1, 2)
        for frame, noun, tail in itertools.product(FRAMES, (WORD, *OTHERS), TAILS)
    ]
    corpus = tmp_path / "c.jsonl"
    corpus.write_text("".join(map("{}\n".format, map(json.dumps, lines))), encoding="utf-8")
    options = {"tokenizer": "kiwi", "dim": 8, "min_count": 1}
    # Small blocks: words are looked for between two.
    options |= {"block_tokens": 100, "out": tmp_path / "store"}
    text = {"text": {"new_words_every": 100}}
    train_corpus(request_of(corpus, options, text, dated=WindowUnit.MONTH))
    store = SnapshotStore(str(tmp_path / "store"))
    first, last = (store.open(ref.id) for ref in store.list())
    assert WORD in last.words
    assert last.phrases[WORD].parts == PARTS
    assert first.manifest.tokenizer_digest == last.manifest.tokenizer_digest
