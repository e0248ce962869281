"""Reading a corpus file in shares."""

from __future__ import annotations

import json
import logging
import lzma
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.kernel.errors import InputError
from embedding.kernel.leftout import LeftOut
from embedding.kernel.records import Calendar, TokenBlock, WindowUnit
from embedding.models.config import LearningRateSchedule, ModelConfig
from embedding.text.config import TextConfig
from embedding.worker.config import NodeConfig
from embedding.worker.corpus import corpus
from embedding.worker.corpus.corpus import NOT_UTF8, Offset, open_corpus, stretches
from embedding.worker.corpus.reading import blocks
from embedding.worker.spec import CorpusShare, NodeSpec
from generated import examples
from yeoron_bench.datedlines import dated_lines

FIRST_TOKENS = 1500

PLAIN = TextConfig(tokenizer="whitespace", mask=False)
lines_of = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=30),
    min_size=1,
    max_size=40,
)


def share(path: Path, **options: Any) -> CorpusShare:
    return CorpusShare(path=str(path), **options)


def write(path: Path, text: str) -> Path:
    data = text.encode()
    path.write_bytes(lzma.compress(data) if path.suffix == ".xz" else data)
    return path


def read(
    path: Path,
    *,
    text: TextConfig = PLAIN,
    block_tokens: int = 16_384,
    growth: float = 0.1,
    model: ModelConfig | None = None,
    start: Offset | None = None,
    again: bool = False,
    **options: Any,
) -> list[TokenBlock]:
    part = share(path, **options)
    spec = NodeSpec(
        name="n",
        server="grpc://x:1",
        corpus=part,
        text=text,
        model=model or ModelConfig(),
        node=NodeConfig(block_tokens=block_tokens).model_copy(update={"growth": growth}),
    )
    return [block for block in blocks(spec, part, start) if again or not block.incarnation]


def words_of(found: list[TokenBlock]) -> list[str]:
    return [block.words[code] for block in found for code in block.codes.tolist()]


def dated(*moments: str, body: str = "하나 둘 셋") -> str:
    records = [{"date": moment, "text": body} for moment in moments]
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


@settings(max_examples=examples(80))
@given(
    lines_of, st.booleans(), st.integers(1, 5), st.integers(1, 200), st.sampled_from(["", ".xz"])
)
def test_shares_cover_the_corpus_without_overlap(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[str],
    ended: bool,
    count: int,
    size: int,
    suffix: str,
) -> None:
    """Whole lines, each once, whatever the number of nodes; the last may lack its line end."""
    text = "\n".join(lines).replace("\0", "") + ("\n" if ended else "")
    if not text:
        return
    path = write(tmp_path_factory.mktemp("corpus") / f"c.txt{suffix}", text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "STRETCH_BYTES", size)
        parts = [list(stretches(share(path, index=i, count=count))) for i in range(count)]
    found = sorted((each for part in parts for each in part), key=lambda each: each.first)
    assert "".join(each.text for each in found) == text
    line = 0
    for each in found:
        assert each.first == line
        line += each.text.count("\n")
        assert each is found[-1] or each.text.endswith("\n")
    for part in filter(None, parts):
        done = [each.done for each in part]
        assert done == sorted(done)
        assert all(0 < each <= 1 for each in done)
        assert done[-1] == 1.0, "also when the rest of the file is others' shares"


def test_shares_of_a_long_file_are_alike(tmp_path: Path) -> None:
    text = "".join(f"낱말{i % 997} 문장\n" for i in range(60_000))
    path = write(tmp_path / "c.txt", text)
    parts = [
        sum(len(each.text) for each in stretches(share(path, index=i, count=3))) for i in range(3)
    ]
    assert sum(parts) == len(text)
    assert max(parts) - min(parts) <= corpus.STRETCH_BYTES + 100


def test_dated_lines_carry_their_time_and_bad_ones_are_told(tmp_path: Path) -> None:
    wrong: dict[int, str] = {}
    lines = [
        json.dumps({"date": "2020-02-01", "title": "제목", "content": "본문"}, ensure_ascii=False),
        "{broken",
        json.dumps({"date": "no date", "text": "x"}),
        "",
        json.dumps(["list"]),
        json.dumps({"date": "2020-02-02T09:00+09:00", "text": "둘째"}, ensure_ascii=False),
        json.dumps({"date": "0001-01-01", "text": "nobody knows when"}),
        json.dumps({"date": "9999-12-31", "text": "never"}),
        '{"date": ' + 20_000 * "[",
    ]
    path = write(tmp_path / "c.jsonl", "\n".join(lines))
    found = list(dated_lines(share(path), wrong.__setitem__))
    assert [(line.number, line.text) for line in found] == [(0, "제목\n본문"), (5, "둘째")]
    assert found[1].when - found[0].when == 86_400
    assert list(wrong) == [1, 2, 4, 6, 7, 8]
    assert "broken" not in "".join(wrong.values())


def test_the_number_of_a_bad_line_is_right_beyond_the_first_stretch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong: dict[int, str] = {}
    monkeypatch.setattr(corpus, "STRETCH_BYTES", 100)
    good = dated("2020-02-01")
    path = write(tmp_path / "c.jsonl", good * 10 + "[]\n" + good)
    assert len(list(dated_lines(share(path), wrong.__setitem__))) == 11
    assert list(wrong) == [10]


def test_lines_that_are_left_out_are_named_counted_and_the_first_of_them_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "c.jsonl", (dated("2020-02-01") + "[]\n") * 8)
    whole, left_out = share(path), LeftOut()
    spec = NodeSpec(name="n0", server="", corpus=whole, text=PLAIN)
    with caplog.at_level(logging.WARNING):
        found = list(blocks(spec, whole, left_out=left_out))
    assert sum(len(block.keys) for block in found) == 8
    assert [f"c.jsonl:{n}:" in caplog.text for n in (2, 4, 6, 8, 10, 12)] == [True] * 5 + [False]
    assert left_out.count == 8
    assert "a JSON object" in left_out["corpus#16"]


@pytest.mark.parametrize("suffix", ["", ".xz"])
@pytest.mark.parametrize("at", [0, 1, 7, 39])
def test_a_line_that_is_not_utf8_is_named_and_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, at: int
) -> None:
    monkeypatch.setattr(corpus, "STRETCH_BYTES", 64)
    lines = ["한국어 문장 하나".encode() for _ in range(40)]
    lines[at] = "옛 글자".encode("cp949")
    data = b"\n".join(lines)
    path = tmp_path / f"c.txt{suffix}"
    path.write_bytes(lzma.compress(data) if suffix else data)
    faults: list[tuple[int, str]] = []
    found = list(stretches(share(path), lambda number, why: faults.append((number, why))))
    assert faults == [(at, NOT_UTF8)]
    lines[at] = b""
    assert "".join(each.text for each in found) == b"\n".join(lines).decode()


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "c.txt.xz", "하나 둘\n" * 1000)
    whole = path.read_bytes()
    for damaged in (whole[:-20], b"no archive at all"):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"c\.txt\.xz: a damaged \.xz file"):
            list(stretches(share(path)))


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
    path = write(tmp_path / "c.txt", "하나 둘 셋\n" * 20_000)

    def total(**options: Any) -> int:
        return sum(block.n_tokens for block in read(path, block_tokens=1_000, **options))

    assert total() == 60_000
    assert total(epochs=3) == 180_000
    # Whole blocks; none is cut before its last stretch.
    one = corpus.STRETCH_BYTES // len("하나 둘 셋\n".encode()) * 3 + 3
    assert 30_000 <= total(tokens=30_000) < 30_000 + one


@pytest.mark.parametrize("name", ["c.txt", "c.txt.xz", "c.jsonl"])
@pytest.mark.parametrize("options", [{}, {"epochs": 3}, {"tokens": 900}, {"index": 1, "count": 2}])
def test_progress_rises_to_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, options: dict[str, int]
) -> None:
    monkeypatch.setattr(corpus, "STRETCH_BYTES", 500)
    body = dated("2020-02-01") if name.endswith("jsonl") else "하나 둘 셋\n"
    found = read(write(tmp_path / name, body * 400), block_tokens=64, **options)
    progress = [block.progress for block in found]
    assert len(found) > 3
    assert progress == sorted(progress)
    assert all(0 < each <= 1 for each in progress)
    assert progress[-1] == 1.0


@pytest.mark.parametrize("name", ["c.txt", "c.txt.xz", "c.jsonl"])
def test_progress_rises_evenly_within_a_stretch(tmp_path: Path, name: str) -> None:
    """A short file is one stretch, and its learning rate falls all the same."""
    body = dated("2020-02-01") if name.endswith("jsonl") else "하나 둘 셋\n"
    found = read(write(tmp_path / name, body * 400), block_tokens=120)
    tokens = np.cumsum([block.n_tokens for block in found])
    assert [block.progress for block in found] == pytest.approx(tokens / 1200, abs=0.01)
    assert len(found) > 5


FALLING = ModelConfig(schedule=LearningRateSchedule.WINDOW)


@pytest.mark.parametrize("options", [{}, {"index": 1, "count": 2}])
@pytest.mark.parametrize("name", ["c.jsonl", "c.jsonl.xz"])
def test_what_has_passed_of_a_window_is_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, options: dict[str, int]
) -> None:
    """The whole text of each month is of its last days."""
    monkeypatch.setattr(corpus, "STRETCH_BYTES", 500)
    body = dated("2020-02-28") * 300 + dated("2020-03-31") * 60 + dated("2020-05-30") * 200
    path = write(tmp_path / name, body)
    found = read(path, block_tokens=120, model=FALLING, window=WindowUnit.MONTH, **options)
    months = {block.published[0] for block in found}
    assert len(months) == 3
    for month in months:
        passed = np.concatenate([block.passed for block in found if block.published[0] == month])
        assert passed == pytest.approx((np.arange(len(passed)) + 0.5) / len(passed))


def test_a_reader_that_goes_on_knows_what_has_passed(tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", dated("2020-02-28") * 90 + dated("2020-03-31") * 90)
    whole = read(path, block_tokens=64, model=FALLING, window=WindowUnit.MONTH)
    for at in range(len(whole) - 1):
        start = Offset.of(whole[at].offset)
        rest = read(path, block_tokens=64, model=FALLING, window=WindowUnit.MONTH, start=start)
        expected = [block.passed.tolist() for block in whole[at + 1 :]]
        assert [block.passed.tolist() for block in rest] == expected


@pytest.mark.parametrize("window", [None, WindowUnit.MONTH])
def test_nobody_asks_what_has_passed_at_a_constant_rate(
    tmp_path: Path, window: WindowUnit | None
) -> None:
    path = write(tmp_path / "c.jsonl", dated("2020-02-28") * 9)
    model = FALLING if window is None else ModelConfig()
    assert [len(block.passed) for block in read(path, model=model, window=window)] == [0]


def test_few_tokens_are_few(tmp_path: Path) -> None:
    path = write(tmp_path / "c.txt", "하나 둘 셋\n" * 400)
    found = read(path, tokens=30, block_tokens=25_000)
    assert 30 <= sum(block.n_tokens for block in found) <= 90


@pytest.mark.parametrize("name", ["c.txt", "c.jsonl"])
def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path, name: str) -> None:
    body = dated("2020-02-01") if name.endswith("jsonl") else "하나 둘 셋\n"
    plain = read(write(tmp_path / name, body * 3))
    marked = read(write(tmp_path / f"marked-{name}", "\ufeff" + body * 3))
    assert words_of(marked) == words_of(plain)
    assert len(words_of(plain)) > 3


def test_a_block_of_plain_text_is_one_document_of_the_files_last_change(tmp_path: Path) -> None:
    path = write(tmp_path / "c.txt", "하나 둘 셋\n\n 넷 \n")
    (block,) = read(path, source="글")
    assert (block.source, block.keys, block.n_documents) == ("글", ("글#1",), 1)
    assert block.published.tolist() == [path.stat().st_mtime]
    assert words_of([block]) == ["하나", "둘", "셋", "넷"]
    assert block.sentences.tolist() == [0, 3, 4], "a line is a sentence"


@pytest.mark.parametrize("mask", [False, True])
def test_both_ways_of_coding_plain_text_give_the_same_words_and_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: bool
) -> None:
    monkeypatch.setattr(corpus, "STRETCH_BYTES", 300)
    text = "".join(f"낱말{i}  문장!!!!! …\n" for i in range(100))
    path = write(tmp_path / "c.txt", text)
    config = TextConfig(tokenizer="whitespace", mask=mask)
    quick, other = (read(path, text=each, block_tokens=64) for each in (PLAIN, config))
    assert words_of(quick) == words_of(other)
    assert [block.keys for block in quick] == [block.keys for block in other]
    assert quick[0].tokenizer_digest != other[0].tokenizer_digest if mask else True


moments = st.lists(
    st.integers(0, 120).map(lambda n: datetime(2020, 1, 20, tzinfo=UTC) + timedelta(hours=12 * n)),
    min_size=1,
    max_size=40,
)


@settings(max_examples=examples(60))
@given(moments, st.sampled_from([None, WindowUnit.DAY, WindowUnit.WEEK, WindowUnit.MONTH]))
def test_no_block_holds_two_windows(
    tmp_path_factory: pytest.TempPathFactory, moments: list[datetime], window: WindowUnit | None
) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    path = write(folder / "c.jsonl", dated(*(moment.isoformat() for moment in moments)))
    found = read(path, window=window)
    times = [when for block in found for when in block.published.tolist()]
    assert times == [moment.timestamp() for moment in moments], "in the order of the file"
    if window is None:
        assert len(found) == 1
        return
    calendar = Calendar(window)
    for block in found:
        assert len({*map(calendar.start, block.published.tolist())}) == 1
    starts_in_order = [calendar.start(moment.timestamp()) for moment in moments]
    changes = sum(a != b for a, b in pairwise(starts_in_order))
    assert len(found) == 1 + changes, "and no more blocks than that needs"


@pytest.mark.parametrize(("name", "size"), [("c.txt", 3), ("c.txt", 12), ("c.jsonl", 12)])
def test_blocks_come_near_the_size_that_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, size: int
) -> None:
    """Judged by characters; the first block is cut before anything is known about the text."""
    monkeypatch.setattr(corpus, "STRETCH_BYTES", 1_000)
    word = "가" * size
    body = " ".join([word] * 10)
    line = dated("2020-02-01", body=body) if name.endswith("jsonl") else body + "\n"
    found = read(write(tmp_path / name, line * 3_000), block_tokens=2_000)
    assert len(found) > 5
    for block in found[1:-1]:
        assert block.n_tokens == pytest.approx(2_000, rel=0.1)


@pytest.mark.parametrize("growth", [0.0, 0.1])
def test_one_of_several_nodes_begins_with_small_blocks(tmp_path: Path, growth: float) -> None:
    """What is learnt first is soon seen by all; a node alone has nobody to wait for it."""
    path = write(tmp_path / "c.txt", "하나 둘 셋 넷 다섯 여섯\n" * 60_000)

    def sizes(count: int, start: Offset | None = None) -> list[int]:
        node = NodeConfig(block_tokens=8_000).model_copy(update={"growth": growth})
        part = share(path, count=count)
        spec = NodeSpec(name="n", server="grpc://x:1", corpus=part, text=PLAIN, node=node)
        return [block.n_tokens for block in blocks(spec, part, start)]

    alone, beside = sizes(1), sizes(3)
    assert alone[0] > 4_000, "cut by the characters that a token is expected to take"
    assert sum(alone) == 6 * 60_000
    later = beside[len(beside) // 2 : -1]
    assert max(later) > 7_000
    if not growth:
        assert beside[0] > 4_000
        return
    assert beside[0] <= 3 * FIRST_TOKENS, "too, by twice and more in Korean"
    read = 0
    for size in beside:
        assert size <= max(3 * FIRST_TOKENS, 0.11 * read + 10)
        read += size
    going_on = sizes(3, Offset(line=30_000, tokens=180_000, characters=3.0))
    assert going_on[0] > 7_000, "who starts again is behind its beginning"


def test_from_the_third_node_on_no_block_is_filled_up_with_a_stretch(tmp_path: Path) -> None:
    """A stretch and a bit are wanted: one node takes two stretches, four take what is wanted."""
    path = write(tmp_path / "c.txt", "some words of plain text in a line\n" * 60_000)
    wanted = round(1.1 * corpus.STRETCH_BYTES / 35 * 8)
    sizes = {
        count: [b.n_tokens for b in read(path, block_tokens=wanted, growth=0.0, count=count)]
        for count in (1, 4)
    }
    assert min(sizes[1][1:-1]) > 1.5 * wanted
    assert 0.99 * wanted <= min(sizes[4][1:-1]) <= max(sizes[4][1:]) <= 1.1 * wanted


def test_the_same_share_is_cut_alike_in_every_run(tmp_path: Path) -> None:
    path = write(tmp_path / "c.txt", "".join(f"낱말{i} 문장\n" for i in range(30_000)))
    first, second = (read(path, block_tokens=5_000, index=1, count=2) for _ in range(2))
    assert [block.keys for block in first] == [block.keys for block in second]
    assert words_of(first) == words_of(second)


def test_who_goes_on_is_given_what_the_processes_before_it_would_remember(tmp_path: Path) -> None:
    """First, marked, of the last windows alone; then it goes on at its offset."""
    days = [datetime(2020, 1, 1, tzinfo=UTC) + timedelta(hours=3 * at) for at in range(96)]
    lines = [dated(day.isoformat(), body=f"낱말{at}" + 20 * " 둘") for at, day in enumerate(days)]
    path = write(tmp_path / "c.jsonl", "".join(lines))
    whole = read(path, block_tokens=64, window=WindowUnit.DAY)
    before = next(block for block in whole if Offset.of(block.offset).line >= 78)
    start = Offset.of(before.offset)
    found = read(path, block_tokens=64, window=WindowUnit.DAY, start=start, again=True)
    again = [block for block in found if block.incarnation]
    assert found[: len(again)] == again
    assert {Offset.of(block.offset) for block in again} == {start}
    windows = NodeConfig().past_windows + 1
    day = (start.line - 1) // 8
    numbers = [int(word[2:]) for word in words_of(again) if word != "둘"]
    assert numbers == list(range(8 * (day - windows + 1), start.line))
    rest = [int(word[2:]) for word in words_of(found[len(again) :]) if word != "둘"]
    assert rest == list(range(start.line, 96))
    assert not [block for block in whole if block.incarnation]
