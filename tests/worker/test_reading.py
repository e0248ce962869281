"""Reading a corpus file in shares."""

from __future__ import annotations

import json
import logging
import lzma
from pathlib import Path

import pytest

from embedding.errors import InputError
from embedding.text.config import TextConfig
from embedding.worker.reading import blocks, open_corpus, read_lines
from embedding.worker.spec import CorpusShare, NodeSpec


def share(path: Path, **options: object) -> CorpusShare:
    return CorpusShare(path=str(path), **options)


def test_shares_cover_the_corpus_without_overlap(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_text("".join(f"낱말{i} 문장\n" for i in range(101)), encoding="utf-8")
    parts = [[line.number for line in read_lines(share(path, index=i, count=3))] for i in range(3)]
    assert sorted(number for part in parts for number in part) == list(range(101))
    assert {len(part) for part in parts} == {33, 34}


def test_dated_lines_carry_their_time_and_bad_ones_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "c.jsonl"
    lines = [
        json.dumps({"date": "2020-02-01", "title": "제목", "content": "본문"}, ensure_ascii=False),
        "{broken",
        json.dumps({"date": "no date", "text": "x"}),
        json.dumps(["list"]),
        json.dumps({"date": "2020-02-02", "text": "둘째"}, ensure_ascii=False),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        found = list(read_lines(share(path)))
    assert [(line.number, line.text) for line in found] == [(0, "제목\n본문"), (4, "둘째")]
    assert found[1].when - found[0].when == 86_400
    assert [f"c.jsonl:{n}" in caplog.text for n in (2, 3, 4)] == [True, True, True]
    assert "broken" not in caplog.text


def test_xz_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "c.txt.xz"
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.write("하나 둘\n셋\n")
    assert [line.text.split() for line in read_lines(share(path))] == [["하나", "둘"], ["셋"]]


@pytest.mark.parametrize(
    ("content", "part"), [(None, "no such file"), (b"", "empty"), (b"a\0b", "binary")]
)
def test_a_file_that_is_no_corpus_is_one_sentence(
    tmp_path: Path, content: bytes | None, part: str
) -> None:
    path = tmp_path / "c.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=part):
        open_corpus(path)


def test_epochs_repeat_and_tokens_bound(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_text("하나 둘 셋\n" * 200, encoding="utf-8")
    text = TextConfig(tokenizer="whitespace", mask=False)

    def total(**options: object) -> int:
        spec = NodeSpec(name="n", server="grpc://x:1", corpus=share(path, **options), text=text)
        return sum(block.n_tokens for block in blocks(spec, share(path, **options)))

    assert total() == 600
    assert total(epochs=3) == 1800
    assert 300 <= total(tokens=300) < 600
