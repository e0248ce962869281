"""Text prepared in processes of their own: the same blocks, and none lost with a process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embedding.kernel.errors import ConfigError
from embedding.kernel.records import Document
from embedding.text.config import TextConfig
from embedding.text.pipeline import TextPipeline
from embedding.text.pool import TextPool, merged
from embedding.text.pool_worker import Preparing
from embedding.worker.corpus.reading import PooledText
from generated import examples
from hostile_tokenizer import HOSTILE, KILLS, RAISES, WAITS, WORKS_ON, install
from waiting import eventually

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


async def test_a_block_is_marked_and_handed_on_as_it_was_written(pool: TextPool) -> None:
    found = await pool.encoded(documents(2), [5.0] * 2, "dead")
    theirs = TextPipeline(WORDS).block(documents(2), [5.0] * 2)
    assert found.buffer == replace(theirs, incarnation="dead").to_buffer().to_pybytes()
    assert found.n_tokens == theirs.n_tokens


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


@pytest.fixture
async def hostile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[[float], TextPool]]:
    """Pools whose tokenizer has the worst of effects on some words."""
    path = os.pathsep.join(filter(None, (install(tmp_path), os.environ.get("PYTHONPATH"))))
    monkeypatch.setenv("PYTHONPATH", path)
    pools = []

    def make(limit: float) -> TextPool:
        # Processes of the pool find the package, this one has read its list of them before.
        config = WORDS.model_copy(update={"tokenizer": HOSTILE})
        pools.append(TextPool(config, 1, limit, warm=False))
        return pools[-1]

    yield make
    for each in pools:
        await each.close()


def one_with(word: str, n: int = 5) -> list[Document]:
    """Documents of which the second but last holds a word."""
    found = documents(n)
    found[-2] = replace(found[-2], text=f"{found[-2].text} {word}")
    return found


@pytest.mark.parametrize(
    ("word", "limit", "reason"),
    [
        (RAISES, 60.0, "preparing it raised ValueError"),
        (KILLS, 60.0, "its process ended (SIGSEGV)"),
        (WORKS_ON, 2.0, "it took more than 2 s of processor time"),
        (WAITS, 60.0, "it waited for ever"),
    ],
)
async def test_a_hostile_text_is_left_out_alone_and_named(
    hostile: Callable[[float], TextPool],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    word: str,
    limit: float,
    reason: str,
) -> None:
    monkeypatch.setattr("embedding.text.pool._LOOK_SECONDS", 0.05)
    pool = hostile(limit)
    mine = one_with(word)
    block = await pool.block(mine, [0.0] * 5)
    assert block.keys == tuple(each.url for each in mine)
    assert list(np.diff(block.document_tokens()) > 0) == [True, True, True, False, True]
    assert pool.left_out == {"https://x/3": reason}
    report = pool.report()
    assert (report["given_up"], report["left_out"]) == (1, pool.left_out)
    again = [line for line in caplog.messages if "tried again" in line]
    assert bool(again) == ("raised" not in reason)
    assert all(line.startswith("https://x/3: ") for line in again)
    assert "시장" not in caplog.text
    assert "비밀" not in caplog.text


async def test_a_process_that_is_paused_is_waited_for(
    hostile: Callable[[float], TextPool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("embedding.text.pool._LOOK_SECONDS", 0.005)
    pool = hostile(60.0)
    await pool.prepare()
    (child,) = children()
    child.suspend()
    asked = asyncio.create_task(pool.block(documents(3), [0.0] * 3))
    done, _ = await asyncio.wait((asked,), timeout=1.0)
    assert not done
    child.resume()
    assert (await asked).n_documents == 3
    assert not pool.left_out


@settings(
    max_examples=examples(4),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(words=st.lists(st.sampled_from(["", RAISES, KILLS]), min_size=1, max_size=4))
def test_exactly_the_hostile_ones_are_left_out(
    tmp_path_factory: pytest.TempPathFactory, words: list[str]
) -> None:
    path = os.pathsep.join([install(tmp_path_factory.mktemp("hostile")), *sys.path])
    mine = [
        replace(each, text=f"{each.text} {word}")
        for each, word in zip(documents(len(words)), words, strict=True)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path)
        text = PooledText(WORDS.model_copy(update={"tokenizer": HOSTILE}), 60.0)
        try:
            block = text.block(mine, [0.0] * len(mine))
        finally:
            text.close()
    bad = {each.url for each, word in zip(mine, words, strict=True) if word}
    assert set(text.left_out) == bad
    empty = np.diff(block.document_tokens()) == 0
    assert {key for key, none in zip(block.keys, empty, strict=True) if none} == bad


async def rested(pool: TextPool) -> None:
    """Wait until its processes rest."""
    await eventually(lambda: pool._resting is not None and pool._resting.done())
    pool._resting = None


async def test_an_idle_process_gives_memory_back_and_forgets_nothing() -> None:
    """Phrases, what a site repeats and known words are those of one that never rested."""
    config = TextConfig(tokenizer="kiwi", phrase_voices=3)
    text = "공적마스크를 샀다. 공적 마스크가 좋다. 읽어 주셔서 정말 고맙고 또 반갑습니다."
    pipeline, pool = TextPipeline(config), TextPool(config, 1, 60.0, warm=True, idle=0.05)
    try:
        phrases = 0
        for part in range(3):
            mine = [
                replace(each, url=f"{each.url}/{part}", author=f"{part}-{i}")
                for i, each in enumerate(documents(12, text))
            ]
            block, theirs = pool.block(mine, [0.0] * 12), pipeline.block(mine, [0.0] * 12)
            found = await block
            (child,) = children()
            awake = child.memory_info().rss
            assert (found.words, found.phrases) == (theirs.words, theirs.phrases)
            assert np.array_equal(found.codes, theirs.codes)
            phrases += len(found.phrases)
            await rested(pool)
            assert child.memory_info().rss < awake - 50e6
            assert child.is_running()
        assert phrases
    finally:
        await pool.close()


async def test_a_process_killed_at_rest_loses_no_document() -> None:
    pool = TextPool(WORDS, 1, 60.0, warm=False, idle=0.05)
    try:
        before = await pool.block(documents(2), [0.0] * 2)
        await rested(pool)
        for child in children():
            child.kill()
        again = await pool.block(documents(2), [0.0] * 2)
        assert (again.words, again.keys) == (before.words, before.keys)
        assert not pool.left_out
    finally:
        await pool.close()


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


def test_a_defect_is_named_by_its_type_alone() -> None:
    process = Preparing(os.memfd_create("progress"))
    process.answer({"config": WORDS.model_dump(mode="json"), "warm": False}, b"")
    wrong = {"documents": [{"published_at": "never"}], "available": [0.0], "seconds": 1.0}
    told, _ = process.answer(wrong, b"")
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


_REST = """
from pathlib import Path
from embedding.text.config import TextConfig
from embedding.text.pipeline import TextPipeline

def anonymous():
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))

pipeline = TextPipeline(TextConfig(tokenizer="kiwi"))
before = anonymous()
pipeline.words("준비되었습니다.", "ko")
loaded = anonymous()
pipeline.rest()
print(before, loaded, anonymous())
"""


def test_a_process_at_rest_gives_back_what_the_analyser_took() -> None:
    """Kiwi's own allocator keeps two fifths of it otherwise."""
    done = subprocess.run([sys.executable, "-c", _REST], capture_output=True, text=True, check=True)
    before, loaded, rests = map(int, done.stdout.split())
    assert rests - before < (loaded - before) / 4
