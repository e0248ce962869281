"""Reading goes on at any place: the blocks before it and those behind it are the whole corpus."""

from __future__ import annotations

import json
import lzma
import random
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.kernel.errors import InputError
from embedding.kernel.records import TokenBlock, WindowUnit
from embedding.text.config import TextConfig
from embedding.worker.config import NodeConfig
from embedding.worker.corpus import corpus
from embedding.worker.corpus.corpus import Offset
from embedding.worker.corpus.reading import blocks
from embedding.worker.spec import CorpusShare, NodeSpec
from generated import examples

READ_AGAIN = "read again"

LINES = 700


def words_of(found: list[TokenBlock]) -> list[str]:
    return [block.words[code] for block in found for code in block.codes.tolist()]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, dice = tmp_path_factory.mktemp("corpora"), random.Random(3)
    short = [[dice.randint(1, 4) for _ in range(12)] for _ in range(LINES)]
    texts = [f"말{i} " + " ".join("가나다라"[:n] for n in line) for i, line in enumerate(short)]
    plain, dated = folder / "c.txt", folder / "c.jsonl"
    plain.write_text("\n".join(texts), encoding="utf-8")
    lines = [
        json.dumps({"date": f"2020-{1 + 12 * i // LINES:02d}-01", "text": text})
        for i, text in enumerate(texts)
    ]
    lines[5:5] = ["", "{", '{"text": "날짜 없음"}']
    dated.write_text("\n".join(lines) + "\n", encoding="utf-8")
    packed = folder / "c.txt.xz"
    packed.write_bytes(lzma.compress(plain.read_bytes()))
    return {"plain": plain, "dated": dated, "packed": packed}


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "STRETCH_BYTES", 700)


@settings(max_examples=examples(40))
@given(data=st.data())
@pytest.mark.parametrize("kind", ["plain", "dated", "packed"])
def test_blocks_of_any_size_go_on_where_they_were_left(
    corpora: dict[str, Path], kind: str, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, 3), "shares")
    share = CorpusShare(
        path=str(corpora[kind]),
        index=data.draw(st.integers(0, count - 1), "index"),
        count=count,
        epochs=data.draw(st.integers(1, 2), "epochs"),
        window=data.draw(st.sampled_from([None, WindowUnit.MONTH]), "window"),
    )
    node = NodeConfig(block_tokens=500)
    text = TextConfig(tokenizer="whitespace", mask=False)
    spec = NodeSpec(name="n0", server="", corpus=share, text=text, node=node)
    dice = random.Random(data.draw(st.integers(0, 1000), "sizes"))
    whole = words_of(list(blocks(spec, share)))
    found: list[TokenBlock] = []
    offset = Offset()
    while True:
        # A process that learns some blocks and is killed. What it reads again it does not learn.
        read = blocks(spec, share, offset, lambda: dice.randint(64, 2_000))
        learnt = (block for block in read if block.incarnation != READ_AGAIN)
        incarnation = list(islice(learnt, dice.randint(1, 6)))
        if not incarnation:
            break
        found.extend(incarnation)
        offset = Offset.of(found[-1].offset)
    assert words_of(found) == whole
    assert offset.tokens == len(whole)
    progress = [block.progress for block in found]
    assert progress == sorted(progress)
    assert progress[-1] == 1.0
    windows = [Counter(block.published.tolist()) for block in found]
    assert share.window is None or kind != "dated" or all(len(each) == 1 for each in windows)


def test_a_share_that_ends_after_some_tokens_ends_there_after_a_restart_too(
    corpora: dict[str, Path],
) -> None:
    share = CorpusShare(path=str(corpora["plain"]), tokens=2_000, epochs=5)
    spec = NodeSpec(
        name="n0",
        server="",
        corpus=share,
        text=TextConfig(tokenizer="whitespace", mask=False),
        node=NodeConfig(block_tokens=200),
    )
    whole = list(blocks(spec, share))
    for at, block in enumerate(whole):
        rest = list(blocks(spec, share, Offset.of(block.offset)))
        assert words_of(rest) == words_of(whole[at + 1 :]), "the same cuts, as far as they go"


@pytest.mark.parametrize("text", ["{", "[]", '{"epoch": -1}', '{"line": "7"}', '{"page": 1}', "3"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not an offset"):
        Offset.of(text)


def test_a_place_survives_the_wire(corpora: dict[str, Path]) -> None:
    offset = Offset(2, 17, 4_711, 5.25)
    assert Offset.of(str(offset)) == offset
    assert Offset.of("") == Offset()
