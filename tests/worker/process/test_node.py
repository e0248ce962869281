"""A whole node: reader, queue, gradient process, server; and what happens when a process dies."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from embedding.kernel.errors import PlatformError, YeoronError
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from embedding.sources.config import SourceConfig
from embedding.text.config import TextConfig
from embedding.worker.config import NodeConfig
from embedding.worker.process.forking import forked
from embedding.worker.process.node import run_node
from embedding.worker.spec import CorpusShare, NodeSpec
from waiting import until
from yeoron_simweb.testing import running

MODEL = ModelConfig(dim=8, sample=0.0)
QUICK = NodeConfig(flush_seconds=0.2, replay_ratio=0.0).model_copy(
    update={"batch_seconds": 0.1, "report_seconds": 0.2}
)
TEXT = TextConfig(tokenizer="whitespace", mask=False)

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[ParameterServer]:
    config = ServerConfig(min_count=1, min_authors=1, min_sources=1, config_digest=MODEL.digest())
    with running_server(config, SyncConfig(policy="asp"), dim=8) as found:
        yield found


def spec(server: ParameterServer, **options: object) -> NodeSpec:
    values = {"name": "n0", "server": server.location, "model": MODEL, "node": QUICK, "text": TEXT}
    return NodeSpec(**{**values, **options})


@pytest.fixture(autouse=True)
def leaves_no_process() -> Iterator[None]:
    """Whatever happened, none of the node's processes is left behind."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    until(lambda: not spawned(before), lambda: spawned(before))


def spawned(before: set[int]) -> list[str]:
    """Command lines of the processes of nodes; Python's own helpers stay until the end."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.pid not in before and forked(child):
                found.append(" ".join(child.cmdline()))
    return found


def corpus(path: Path, lines: int = 500, **options: Any) -> CorpusShare:
    text = "".join(f"하나 둘 셋 낱말{i % 50}\n" for i in range(lines))
    path.write_text(text, encoding="utf-8")
    return CorpusShare(path=str(path), **options)


def test_a_corpus_is_learnt_to_its_last_token(server: ParameterServer, tmp_path: Path) -> None:
    share = corpus(tmp_path / "c.txt", 40_000)
    blocks = NodeConfig(**{**QUICK.model_dump(), "block_tokens": 5_000})
    outcome = run_node(spec(server, corpus=share, node=blocks), lambda: False)
    status = server.status()
    assert outcome.restarts == 0
    assert status["sources"]["corpus"]["tokens"] == 160_000
    # A block is a document and a tick; the last push says how words were used.
    assert status["pushes"] == status["documents"] + 1 > 6


@pytest.mark.parametrize("ahead", [0, 1_000])
def test_a_reader_of_a_corpus_gives_rows_to_words_that_will_be_frequent(
    ahead: int, tmp_path: Path
) -> None:
    common = ["하나 둘 셋 넷"] * 60
    parts = [common + more for more in (["뜬"], ["뜬", "곧 곧 곧"], ["뜬"], ["드문"])]
    text = tmp_path / "c.txt"
    text.write_text("".join(f"{line}\n" for part in parts for line in part), encoding="utf-8")
    node = QUICK.model_copy(update={"block_tokens": 240, "look_ahead_tokens": ahead})
    config = ServerConfig(min_count=3, config_digest=MODEL.digest())
    with running_server(config, SyncConfig(policy="asp"), dim=8) as server:
        share = CorpusShare(path=str(text))
        run_node(spec(server, corpus=share, node=node), lambda: False)
        vocabulary = server.state.vocabulary
        assert server.status()["pushes"] >= 3
        names = vocabulary.names(vocabulary.alive())  # in the order in which they were admitted
    assert "드문" not in names
    assert ("뜬" in names[: names.index("곧")]) == bool(ahead)


def test_two_nodes_learn_each_line_of_a_corpus_once(
    server: ParameterServer, tmp_path: Path
) -> None:
    whole = corpus(tmp_path / "c.txt", 20_000)
    with ThreadPoolExecutor(2) as pool:
        for i in range(2):
            share = whole.model_copy(update={"index": i, "count": 2})
            pool.submit(run_node, spec(server, name=f"n{i}", corpus=share), lambda: False)
    assert server.status()["sources"]["corpus"]["tokens"] == 80_000
    alive = server.state.vocabulary.alive()
    counts = server.state.vocabulary.counts(alive)
    names = server.state.vocabulary.names(alive)
    assert dict(zip(names, counts, strict=True))["셋"] == pytest.approx(20_000, rel=1e-3)


@pytest.mark.parametrize("stream", [False, True])
def test_a_configuration_that_the_server_refuses_is_told_and_not_tried_again(
    server: ParameterServer, tmp_path: Path, stream: bool
) -> None:
    other = MODEL.model_copy(update={"window": 2})
    reading = {} if stream else {"corpus": corpus(tmp_path / "c.txt")}
    frontier = {"frontier": f"sqlite:///{tmp_path / 'frontier.db'}", "extract_processes": 0}
    with pytest.raises(YeoronError, match=f"digest {other.digest()[:12]}.*the same settings"):
        run_node(spec(server, model=other, crawl=frontier, **reading), lambda: False)


def test_a_training_that_explodes_is_told_with_the_setting_to_change(
    server: ParameterServer, tmp_path: Path
) -> None:
    model = MODEL.model_copy(update={"learning_rate": 1e4})
    node = spec(server, corpus=corpus(tmp_path / "c.txt", 20_000), model=model)
    server.state.reports.digest = model.digest()
    with pytest.raises(YeoronError) as caught:
        run_node(node, lambda: False)
    assert re.fullmatch(
        r"n0: the loss is \S+ nats a pair, so training has diverged; "
        r"set a smaller model\.learning_rate \(it is 10000\.0\)\.",
        str(caught.value),
    )
    assert not isinstance(caught.value, PlatformError)


def test_a_line_that_is_not_utf8_is_left_out_alone_and_named(
    server: ParameterServer, tmp_path: Path
) -> None:
    path = tmp_path / "c.txt"
    share = corpus(path, 5_000)
    lines = path.read_bytes().split(b"\n")
    lines[4_711] = "옛 글자".encode("cp949")
    path.write_bytes(b"\n".join(lines))
    run_node(spec(server, corpus=share), lambda: False)
    told = server.status()["nodes"]["n0"]["report"]["text"]
    assert told == {"given_up": 1, "left_out": {"corpus#4712": "not UTF-8 text"}}


@pytest.mark.parametrize("victim", ["crawler", "gradient"])
def test_a_node_whose_process_is_killed_over_a_corpus_goes_on_where_it_was_acknowledged(
    server: ParameterServer, tmp_path: Path, victim: str
) -> None:
    share = corpus(tmp_path / "c.txt", 200_000, epochs=2)
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running_ = pool.submit(run_node, spec(server, corpus=share), stop.is_set)
        try:
            until(lambda: server.status()["documents"] >= 4 or running_.done())
            kill(f"n0-{victim}")
            outcome = running_.result(timeout=120)
        finally:
            stop.set()
    assert outcome.restarts == 1
    status = server.status()
    assert status["sources"]["corpus"]["tokens"] == 2 * 800_000
    assert counted(server)["셋"] == 2 * 200_000


def test_a_node_that_is_told_to_stop_ends(server: ParameterServer, tmp_path: Path) -> None:
    share = corpus(tmp_path / "c.txt", 20_000, epochs=100_000)
    outcome = run_node(spec(server, corpus=share), lambda: server.status()["documents"] >= 3)
    assert outcome.restarts == 0
    assert server.status()["documents"] >= 3


def counted(server: ParameterServer) -> dict[str, int]:
    """Every word's occurrences, as the windows have counted them."""
    windows = server.state.accounts.windows
    total: Counter[str] = Counter()
    for start in windows.windows():
        table = windows.table(start)
        for word, n in zip(table["word"].to_pylist(), table["counts"].to_pylist(), strict=True):
            total[word] += n
    return dict(total)


def kill(name: str) -> None:
    """kill -9 the node's process of this name."""
    (process,) = (each for each in multiprocessing.active_children() if each.name == name)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("victim", ["crawler", "gradient"])
def test_a_killed_process_loses_no_document(
    server: ParameterServer, tmp_path: Path, victim: str
) -> None:
    documents = [
        {
            "date": f"2020-02-{1 + i % 27:02d}T{i % 24:02d}:00:00+00:00",
            "title": f"제목 {i}",
            "text": f"시장 상인 가게 손님 물건 가격 장사 매출 골목 거리 이야기{i}. " * 3,
            "part": "politics",
        }
        for i in range(60)
    ]
    stop = threading.Event()
    with running(None, documents) as url:
        source = SourceConfig(
            name="news", kind="feed", url=f"{url}/news/politics/rss.xml", every=0.5, rate=200
        )
        crawl = {
            "allow_private_hosts": (url.removeprefix("http://"),),
            "frontier": f"sqlite:///{tmp_path / 'frontier.db'}",
            "extract_processes": 0,
            "rate": 200.0,
            "near_window": 0,
        }
        node = spec(server, sources=(source,), crawl=crawl)
        thread = threading.Thread(target=run_node, args=(node, stop.is_set))
        thread.start()
        try:
            until(lambda: server.status()["documents"] >= 5)
            kill(f"n0-{victim}")
            until(lambda: all_acknowledged(server, 60))
            # Only what was pushed and not yet acknowledged when it died may come again.
            assert server.status()["documents"] <= 60 + QUICK.batch_documents
        finally:
            stop.set()
            thread.join(timeout=120)
    assert not thread.is_alive()


def all_acknowledged(server: ParameterServer, documents: int) -> bool:
    """Everything that was found has been learnt, and the node has heard it."""
    status = server.status()
    return status["documents"] >= documents and status["sources"]["news"]["pending"] == 0
