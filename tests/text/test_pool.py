"""Text prepared in processes of their own: the same blocks, and none lost with a process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import numpy as np
import psutil
import pytest

from embedding.kernel.errors import ConfigError
from embedding.kernel.records import Document
from embedding.text.config import TextConfig
from embedding.text.pipeline import TextPipeline
from embedding.text.pool import TextPool, merged
from embedding.text.pool_worker import Preparing, decode, encode

WHEN = datetime(2020, 2, 3, 4, 5, 6, 789, tzinfo=UTC)
WORDS = TextConfig(tokenizer="whitespace")


def documents(n: int, text: str = "시장 손님 010-1234-5678 가게") -> list[Document]:
    return [
        Document(f"https://x/{i}", "s", f"{text} 번호{i}", WHEN, WHEN, title="제목", author="a")
        for i in range(n)
    ]


@pytest.fixture
async def pool() -> AsyncIterator[TextPool]:
    found = TextPool(WORDS, 2, 60.0, warm=False)
    yield found
    await found.close()
    await asyncio.sleep(0)


def children() -> list[psutil.Process]:
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # one that has ended, and is still listed
            if "embedding.text.pool_worker" in child.cmdline():
                found.append(child)
    return found


async def test_blocks_are_those_of_the_pipeline(pool: TextPool) -> None:
    pipeline = TextPipeline(WORDS)
    for n in (1, 7):
        mine, theirs = documents(n), pipeline.block(documents(n), [5.0] * n)
        found = await pool.block(mine, [5.0] * n)
        assert (found.words, found.keys) == (theirs.words, theirs.keys)
        for name in ("codes", "sentences", "documents", "published", "available", "voices"):
            assert np.array_equal(getattr(found, name), getattr(theirs, name)), name
        assert found.tokenizer_digest == pool.digest == pipeline.digest
    report = pool.report()
    assert report["documents"] == 8
    assert report["masked"] == {"phone": 8}


async def test_several_batches_at_once_and_counters_of_all_processes(pool: TextPool) -> None:
    found = await asyncio.gather(*(pool.block(documents(3), [0.0] * 3) for _ in range(6)))
    assert [block.n_documents for block in found] == [3] * 6
    assert pool.report()["documents"] == 18
    assert len(children()) == 2


async def test_a_killed_process_loses_no_document(pool: TextPool) -> None:
    before = await pool.block(documents(2), [0.0] * 2)
    for child in children():
        child.kill()
    again = await pool.block(documents(2), [0.0] * 2)
    assert again.words == before.words
    assert pool.report()["given_up"] == 0


async def test_a_text_that_takes_for_ever_is_passed_on_without_a_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = TextPool(WORDS, 1, 30.0, warm=False)
    await pool.prepare()
    ask = pool._ask

    async def stuck(child: object, told: dict, limit: float) -> object:
        # The real process never answers a text that it hangs on: here it is stopped.
        hangs = any("번호1" in str(row) for row in told.get("documents", ()))
        if hangs:
            psutil.Process(child.pid).suspend()
        return await ask(child, told, 0.5 if hangs else limit)

    monkeypatch.setattr(pool, "_ask", stuck)
    try:
        block = await pool.block(documents(3), [0.0] * 3)
        assert block.keys == ("https://x/0", "https://x/1", "https://x/2")
        assert list(np.diff(block.document_tokens()) > 0) == [True, False, True]
        assert pool.report()["given_up"] == 1
    finally:
        await pool.close()
    assert not children()


async def test_whoever_is_cancelled_leaves_no_answer_to_the_next(pool: TextPool) -> None:
    await pool.block(documents(1), [0.0])
    for _ in range(3):
        asked = asyncio.create_task(pool.block(documents(400, "말 " * 2000), [0.0] * 400))
        await asyncio.sleep(0.05)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
    found = await pool.block(documents(2), [0.0] * 2)
    assert found.keys == ("https://x/0", "https://x/1")


async def test_settings_that_cannot_work_are_named_before_a_document_comes() -> None:
    # Whether MeCab is installed or not: it has no user words.
    config = TextConfig(tokenizer="mecab", user_words=("신천지",))
    pool = TextPool(config, 1, 60.0, warm=True)
    try:
        with pytest.raises(ConfigError, match="mecab"):
            await pool.prepare()
    finally:
        await pool.close()


def test_what_crosses_the_pipe_comes_back_whole() -> None:
    mine = [*documents(2), Document("u", "s", "\ud800 x", WHEN, WHEN, language="en")]
    assert decode(encode(mine, [1.0, 2.0, 3.0])) == (mine, [1.0, 2.0, 3.0])


def test_a_defect_is_named_by_its_type_alone() -> None:
    process = Preparing()
    process.answer({"config": WORDS.model_dump(mode="json"), "warm": False}, b"")
    told, _ = process.answer({"documents": [["x"]], "available": [0.0]}, b"")
    assert told == {"defect": "ValueError"}


def test_reports_add_up() -> None:
    one = {"a": 1, "share": 0.5, "name": "kiwi", "masked": {"phone": 2}}
    two = {"a": 2, "share": 0.7, "name": "kiwi", "masked": {"phone": 1, "card": 4}}
    assert merged([one, two]) == {
        "a": 3,
        "share": pytest.approx(0.6),
        "name": "kiwi",
        "masked": {"phone": 3, "card": 4},
    }
