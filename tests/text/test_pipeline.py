from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import pytest

from embedding.kernel.errors import InputError
from embedding.kernel.records import Document, TokenBlock
from embedding.text import kiwi as kiwi_module
from embedding.text.config import TextConfig
from embedding.text.pipeline import TextPipeline, VocabularyStatistics

Make = Callable[..., Document]


@pytest.fixture(scope="module")
def pipeline() -> TextPipeline:
    return TextPipeline(TextConfig())


def words(block: TokenBlock, document: int) -> list[str]:
    offsets = block.document_tokens()
    return [block.words[c] for c in block.codes[offsets[document] : offsets[document + 1]]]


def test_documents_become_a_block(pipeline: TextPipeline, document: Make) -> None:
    first = document("마스크가 없다. 약국도 문을 닫았다!", "u1", title="코로나 소식")
    second = document("The masks are gone.", "u2")
    block = pipeline.block([first, second], [11.0, 22.0])
    assert block.source == "news"
    assert block.keys == ("u1", "u2")
    assert words(block, 0) == ["코로나", "소식", "마스크", "없다", "약국", "문", "닫다"]
    assert words(block, 1) == ["the", "masks", "are", "gone"]
    assert block.documents.tolist() == [0, 3, 4]
    assert block.available.tolist() == [11.0, 22.0]
    assert block.published[0] == datetime(2020, 2, 3, tzinfo=UTC).timestamp()
    assert block.priority.tolist() == [1.0, 1.0]
    assert block.tokenizer_digest == pipeline.digest
    assert TokenBlock.from_buffer(block.to_buffer()).words == block.words


def test_a_document_without_a_word_keeps_its_key(pipeline: TextPipeline, document: Make) -> None:
    texts = ["", "첫 문서", "... 123 !!", "둘째 문서", " \n "]
    block = pipeline.block([document(t, str(i)) for i, t in enumerate(texts)], [0.0] * 5)
    assert block.keys == ("0", "1", "2", "3", "4")
    assert np.diff(block.documents).tolist() == [0, 1, 0, 1, 0]
    only = pipeline.block([document("")], [0.0])
    assert (only.n_documents, only.n_tokens) == (1, 0)


def test_personal_data_never_reaches_the_block(pipeline: TextPipeline, document: Make) -> None:
    text = (
        "제 번호는 ０１０－１２３４－５６７８로, 메일은 hong@naver.com, "
        "주민번호 900101-1234567, @hong_gd"
    )
    block = pipeline.block([document(text)], [0.0])
    assert {"<phone>", "<email>", "<resident>", "<handle>"} <= set(block.words)
    assert not any(c.isdigit() for word in block.words for c in word)
    assert not any("hong" in word for word in block.words)
    assert pipeline.masked["phone"] >= 1


def test_masking_can_be_turned_off(document: Make) -> None:
    config = TextConfig(tokenizer="whitespace", mask=False)
    block = TextPipeline(config).block([document("010-1234-5678 연락")], [0.0])
    assert block.words == ("010-1234-5678", "연락")


def test_the_digest_follows_the_settings() -> None:
    digests = {
        TextPipeline(config).digest
        for config in (
            TextConfig(),
            TextConfig(tokenizer="kiwi"),
            TextConfig(tokenizer="script"),
            TextConfig(mask=False),
            TextConfig(emoji="drop"),
            TextConfig().model_copy(update={"run_length": 3}),
            TextConfig(user_words=("한글",)),
        )
    }
    assert len(digests) == 7
    assert TextPipeline(TextConfig()).digest == TextPipeline(TextConfig()).digest


@pytest.mark.parametrize(("sources", "times"), [((), 0), (("a", "b"), 2), (("a",), 2)])
def test_blocks_that_make_no_sense_are_refused(
    pipeline: TextPipeline, document: Make, sources: tuple[str, ...], times: int
) -> None:
    documents = [document("글", source=source) for source in sources]
    with pytest.raises(InputError, match="one source"):
        pipeline.block(documents, [0.0] * times)


def test_nothing_of_the_text_is_logged(document: Make, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    TextPipeline(TextConfig()).block([document("비밀스러운문장하나 \ud800\x00")], [0.0])
    assert "비밀" not in caplog.text


def test_a_kiwi_that_fails_late_gives_way_in_auto(
    document: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kiwi_module, "_shared", {})
    pipeline = TextPipeline(TextConfig())
    before = pipeline.digest
    assert pipeline.tokenizer.name == "kiwi"
    monkeypatch.setitem(sys.modules, "kiwipiepy", None)
    block = pipeline.block([document("마스크가 없다")], [0.0])
    assert block.words == ("마스크가", "없다")
    assert pipeline.tokenizer.name == "script"
    assert block.tokenizer_digest == pipeline.digest != before


def test_running_statistics(document: Make) -> None:
    pipeline = TextPipeline(TextConfig(tokenizer="whitespace"))
    pipeline.block([document("가 나 가"), document("", "u2")], [0.0, 0.0])
    pipeline.block([document("가 다")], [0.0])
    report = pipeline.report()
    assert report["documents"] == 3
    assert report["empty_documents"] == 1
    assert report["sentences"] == 2
    assert report["tokens"] == 5
    assert report["distinct_words"] == 3
    assert report["oov_share"] == pytest.approx(4 / 5)
    assert report["oov_recent"] == pytest.approx(0.9 * 1.0 + 0.1 * 0.5)


def test_statistics_remember_a_bounded_number_of_words() -> None:
    statistics = VocabularyStatistics(1_000)
    for first in range(0, 20_000, 100):
        names = [[f"w{n}" for n in range(first, first + 100)]]
        statistics.update(TokenBlock.build("s", [names], published=[0.0], keys=["k"]))
    assert statistics.counts["distinct_words"] == 20_000
    assert len(statistics._seen) <= 1_000
