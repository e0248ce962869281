"""What the comparison of stream and file is made of; the runs themselves take minutes."""

from __future__ import annotations

import json

from benchmarks.paths import SHARES, in_common, write_file
from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.corpus import from_records
from yeoron_simweb.library import Library


def test_words_are_compared_by_window_and_ranking_and_whatever_the_ranking():
    one = {"2020-02": {"born": {"가"}, "risen": {"나"}}, "2020-03": {"moved": {"가"}}}
    other = {"2020-02": {"born": set(), "risen": {"가", "나"}}}
    found = in_common(one, other)
    assert found["born"] == (0, 1)
    assert found["risen"] == (1, 2)
    assert found["moved"] == (0, 1), "a window that one side lacks"
    assert found["any"] == (2, 3), "called by both, as new by one and as rising by the other"


def test_the_file_has_the_sources_and_authors_that_a_crawl_finds(tmp_path):
    records = [
        {"date": "2020-02-01", "title": f"제목 {at}", "text": f"글 {at}", "part": part}
        for at, part in enumerate(["politics", "comments", "comments"])
    ]
    corpus = from_records(records, SimwebConfig())
    write_file(corpus, tmp_path / "texts.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "texts.jsonl").read_text().splitlines()]
    assert [line["source"] for line in lines] == ["sim-feed", "sim-comments", "sim-comments"]
    assert [line["text"] for line in lines] == [f"제목 {at}\n글 {at}" for at in range(3)]
    assert [line["author"] for line in lines] == [
        item.author for item in Library.build(corpus.documents, SHARES).items
    ]
    assert len({line["date"] for line in lines}) == 3, "spread over the day, as the web plays them"
