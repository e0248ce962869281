"""A dated corpus whose lines name their sources: a tick is a block of each."""

from __future__ import annotations

import json
import logging
import queue
import random
from collections import Counter
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from embedding.kernel.records import TokenBlock, WindowUnit
from embedding.stream.queue import QueueClosed
from embedding.text.config import TextConfig
from embedding.training import survey
from embedding.training.survey import SourceCounter
from embedding.worker.config import NodeConfig
from embedding.worker.corpus.corpus import Offset
from embedding.worker.corpus.datedlines import DatedLines
from embedding.worker.corpus.reading import blocks
from embedding.worker.process.pipeline import ticks
from embedding.worker.spec import CorpusShare, NodeSpec
from yeoron_bench.datedlines import dated_lines

NAMES = ("뉴스", "게시판")
LINES = 600


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dice, found = random.Random(4), tmp_path_factory.mktemp("sources") / "c.jsonl"
    with found.open("w", encoding="utf-8") as file:
        for at in range(LINES):
            text = f"말{at} " + " ".join(
                dice.choice("가나다라") for _ in range(dice.randint(1, 30))
            )
            line: dict[str, Any] = {"date": f"2020-{1 + at // 200:02d}-01", "text": text}
            source = dice.choice([*NAMES, " 뉴스 ", "드묾", "", None, "없음"])
            line |= {} if source == "없음" else {"source": source}
            file.write(json.dumps(line) + "\n")
    return found


def spec_of(path: Path, **options: Any) -> NodeSpec:
    return NodeSpec(
        name="n0",
        server="",
        corpus=CorpusShare(path=str(path), window=WindowUnit.MONTH, **options),
        text=TextConfig(tokenizer="whitespace", mask=False),
        node=NodeConfig(block_tokens=400),
    )


def read(spec: NodeSpec, start: Offset | None = None) -> list[TokenBlock]:
    assert spec.corpus is not None
    return list(blocks(spec, spec.corpus, start))


def texts(found: list[TokenBlock]) -> dict[str, dict[str, str]]:
    """By source and key, the words of each document."""
    told: dict[str, dict[str, str]] = {}
    for block in found:
        words = [block.words[code] for code in block.codes.tolist()]
        ends = block.document_tokens().tolist()
        for at, key in enumerate(block.keys):
            assert key not in told.setdefault(block.source, {}), "each document once"
            told[block.source][key] = " ".join(words[ends[at] : ends[at + 1]])
    return told


def expected(path: Path) -> dict[str, dict[str, str]]:
    told: dict[str, dict[str, str]] = {}
    for line in dated_lines(CorpusShare(path=str(path))):
        name = line.source
        source = name if name in NAMES else "other" if name else "corpus"
        told.setdefault(source, {})[f"corpus#{line.number + 1}"] = line.text
    return told


def test_every_document_is_counted_under_the_source_that_its_line_names(path: Path) -> None:
    found = read(spec_of(path, sources=NAMES))
    assert texts(found) == expected(path)
    assert set(expected(path)) == {*NAMES, "other", "corpus"}
    ticks = sum(bool(block.offset) for block in found)
    assert 6 < ticks < len(found) / 3
    assert found[-1].offset
    assert found[-1].progress == 1.0


def test_a_tick_has_one_block_of_a_source_and_one_window_and_its_last_block_its_place(
    path: Path,
) -> None:
    tick: list[TokenBlock] = []
    for block in read(spec_of(path, sources=NAMES)):
        tick.append(block)
        if block.offset:
            names = [each.source for each in tick]
            assert len(set(names)) == len(names)
            assert len({when for each in tick for when in each.published.tolist()}) == 1
            assert {each.progress for each in tick} == {block.progress}
            lines = [int(key.partition("#")[2]) for each in tick for key in each.keys]
            assert Offset.of(block.offset).line == max(lines)
            tick = []
    assert not tick


def test_reading_goes_on_behind_the_last_whole_tick(path: Path) -> None:
    spec, dice = spec_of(path, sources=NAMES), random.Random(2)
    learnt: list[TokenBlock] = []
    place = Offset()
    assert spec.corpus is not None
    while True:
        fresh = (each for each in blocks(spec, spec.corpus, place) if not each.incarnation)
        incarnation = list(islice(fresh, dice.randint(1, 9)))
        if not incarnation:
            break
        whole = max((at for at, block in enumerate(incarnation) if block.offset), default=-1) + 1
        learnt += incarnation[:whole]
        place = Offset.of(learnt[-1].offset) if learnt else Offset()
    assert texts(learnt) == expected(path)


def test_without_sources_that_are_told_apart_what_lines_name_changes_nothing(
    path: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "bare.jsonl"
    with bare.open("w", encoding="utf-8") as file:
        for text in path.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            line.pop("source", None)
            file.write(json.dumps(line) + "\n")
    pairs = list(zip(read(spec_of(path)), read(spec_of(bare, sources=NAMES)), strict=True))
    assert len(pairs) > 6
    for one, other in pairs:
        assert (one.source, one.words, one.keys) == (other.source, other.words, other.keys)
        assert one.source == "corpus"
        assert np.array_equal(one.codes, other.codes)
        assert Offset.of(one.offset).tokens == Offset.of(other.offset).tokens > 0


class Ended:
    """A queue whose other end has put these blocks and is gone."""

    def __init__(self, found: list[TokenBlock]) -> None:
        self._blocks: queue.SimpleQueue[TokenBlock] = queue.SimpleQueue()
        for block in found:
            self._blocks.put(block)

    def get(self, timeout: float) -> TokenBlock:
        try:
            return self._blocks.get_nowait()
        except queue.Empty:
            raise QueueClosed("the reader is gone") from None


def test_a_tick_that_is_not_whole_is_not_learnt(path: Path) -> None:
    found = read(spec_of(path, sources=NAMES))
    ends = [at for at, block in enumerate(found) if block.offset]
    for put in (len(found), ends[2] + 1, ends[2], ends[0]):
        took = list(ticks(spec_of(path), Ended(found[:put]), Event(), lambda: 400))  # type: ignore[arg-type]
        whole = [at for at in ends if at < put]
        assert [len(tick) for tick in took] == np.diff([-1, *whole]).tolist()
        assert all(tick[-1].offset for tick in took)


def line(source: str, text: str = "말") -> DatedLines:
    number, when = np.asarray([3]), np.zeros(1)
    return DatedLines(
        number,
        pa.array([text]),
        np.asarray([len(text)]),
        when,
        when,
        pa.array([source]),
        pa.nulls(1, pa.string()),
    )


def test_those_with_the_most_text_are_told_apart_and_the_number_of_others_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    count = SourceCounter(Path("c.jsonl"), 2)
    for source, text in (("하나", "aa"), ("둘", "a"), ("하나", "a"), ("셋", "aaaa"), ("", "b")):
        count.add(line(source, text))
    with caplog.at_level(logging.WARNING):
        assert count.named() == ("셋", "하나")
    assert "3 sources; the 2 with the most text" in caplog.text
    caplog.clear()
    few = SourceCounter(Path("c.jsonl"), 3)
    few.add(line("하나"))
    assert few.named() == ("하나",)
    assert not caplog.text


def test_names_are_counted_in_bounded_memory(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(survey, "COUNTED", 50)
    count = SourceCounter(Path("c.jsonl"), 1)
    for at in range(1_000):
        count.add(line(f"이름{at}"))
        count.add(line("이름7", "aa"))
    assert count.named() == ("이름7",)
    assert "50 and more sources" in caplog.text
    assert Counter(count._characters).total() < 1_000 + 50 + 2_000


def test_with_none_to_tell_apart_no_line_is_looked_at() -> None:
    count = SourceCounter(Path("c.jsonl"), 0)
    count.add(line("7"))
    assert count.named() == ()


@pytest.mark.parametrize("source", [["a"], {"name": "a"}, True, "a" * 81, "a\nb", "a\0"])
def test_a_line_whose_source_is_no_name_is_left_out_alone(tmp_path: Path, source: object) -> None:
    dated = {"date": "2020-01-01", "text": "말"}
    lines = [{**dated, "source": each} for each in ("뉴스", source, 7, None)]
    path = tmp_path / "c.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    wrong: dict[int, str] = {}
    found = dated_lines(CorpusShare(path=str(path)), wrong.__setitem__)
    assert [(each.number, each.source) for each in found] == [(0, "뉴스"), (2, "7"), (3, "")]
    assert list(wrong) == [1]
    assert "at most 80 characters" in wrong[1]


@pytest.mark.parametrize("tokenizer", ["whitespace", "script"])
def test_lines_in_a_row_without_an_author_are_one_unit(path: Path, tokenizer: str) -> None:
    """Of whatever ticks and sources; each line is a document still."""
    found: dict[int, set[int]] = {}
    for tokens in (400, 150):
        spec = spec_of(path, sources=NAMES, unit_lines=50)
        text = TextConfig(tokenizer=tokenizer, mask=False)
        node = NodeConfig(block_tokens=tokens)
        for block in read(spec.model_copy(update={"text": text, "node": node})):
            for key, number in zip(block.keys, block.contents.tolist(), strict=True):
                found.setdefault((int(key.partition("#")[2]) - 1) // 50, set()).add(number)
    assert {len(numbers) for numbers in found.values()} == {1}
    assert len(set.union(*found.values())) == LINES // 50
    assert min(set.union(*found.values())) >= 0
