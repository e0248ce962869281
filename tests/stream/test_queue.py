from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from embedding.kernel.errors import ConfigError, InputError, PlatformError, YeoronError
from embedding.kernel.records import TokenBlock
from embedding.stream.queue import BlockQueue, PeerLost, QueueClosed, QueueEmpty, QueueFull
from waiting import until

Make = Callable[..., TokenBlock]
Pair = tuple[BlockQueue, BlockQueue]


def test_a_block_arrives_as_it_was_put(pair: Pair, block: Make) -> None:
    crawler, gradient = pair
    sent = block(30)
    crawler.put(sent, timeout=60)
    got = gradient.get(timeout=60)
    assert got.words == sent.words
    assert got.codes.tolist() == sent.codes.tolist()
    assert got.keys == sent.keys


def test_order_is_first_in_first_out(pair: Pair, block: Make) -> None:
    crawler, gradient = pair
    for n in range(8):
        crawler.put(block(10, str(n)), timeout=60)
    assert [gradient.get(timeout=60).keys[0] for _ in range(8)] == [str(n) for n in range(8)]


def test_a_full_queue_says_so_and_sends_nothing(pair: Pair, block: Make) -> None:
    crawler, gradient = pair
    crawler.put(block(60), timeout=60)
    with pytest.raises(QueueFull, match="60 of 100"):
        crawler.put(block(41), timeout=0.05)
    crawler.put(block(40), timeout=60)
    assert [gradient.get(timeout=60).n_tokens for _ in range(2)] == [60, 40]
    with pytest.raises(QueueEmpty):
        gradient.get(timeout=0.05)


def test_put_waits_until_a_block_was_taken(pair: Pair, block: Make) -> None:
    crawler, gradient = pair
    crawler.put(block(100), timeout=60)
    timer = threading.Timer(0.2, gradient.get, kwargs={"timeout": 60})
    began = time.monotonic()
    timer.start()
    crawler.put(block(50), timeout=60)
    assert time.monotonic() - began > 0.1
    timer.join()
    assert gradient.get(timeout=60).n_tokens == 50


def test_both_ends_tell_depth_and_capacity(pair: Pair, block: Make) -> None:
    crawler, gradient = pair
    crawler.put(block(30), timeout=60)
    crawler.put(block(20), timeout=60)
    assert crawler.depth == 50
    until(lambda: gradient.depth == 50)
    gradient.get(timeout=60)
    assert gradient.depth == 20
    until(lambda: crawler.depth == 20)
    assert crawler.capacity == gradient.capacity == 100


def test_a_block_above_the_capacity_passes_alone(pair: Pair, block: Make) -> None:
    crawler, gradient = pair
    crawler.put(block(1), timeout=60)
    with pytest.raises(QueueFull):
        crawler.put(block(500), timeout=0.05)
    gradient.get(timeout=60)
    crawler.put(block(500), timeout=60)
    assert gradient.get(timeout=60).n_tokens == 500


def test_empty_blocks_are_bounded_too(pair: Pair, block: Make) -> None:
    crawler, gradient = pair
    for _ in range(100):
        crawler.put(block(0), timeout=60)
    with pytest.raises(QueueFull):
        crawler.put(block(0), timeout=0.05)
    got = gradient.get(timeout=60)
    assert (got.n_tokens, got.n_documents) == (0, 1)


def test_keys_come_back(pair: Pair) -> None:
    crawler, gradient = pair
    assert crawler.acknowledged() == []
    gradient.acknowledge(["https://a.example/1#comment-가", "b"])
    gradient.acknowledge(["c"])
    keys: list[str] = []
    while len(keys) < 3:
        keys += crawler.acknowledged(timeout=60)
    assert keys == ["https://a.example/1#comment-가", "b", "c"]
    assert crawler.acknowledged(timeout=0.01) == []


def test_the_latest_report_wins_both_ways(pair: Pair) -> None:
    crawler, gradient = pair
    assert gradient.latest_report() is None
    crawler.send_report({"문서": 1})
    crawler.send_report({"문서": 2})
    until(lambda: gradient.latest_report() == {"문서": 2})
    gradient.send_report({"stop": True})
    until(lambda: crawler.latest_report() == {"stop": True})


def test_a_report_that_is_not_json_is_refused(pair: Pair) -> None:
    with pytest.raises(InputError, match="JSON"):
        pair[0].send_report({"x": object()})


def test_closing_lets_the_reader_finish(pair: Pair, block: Make) -> None:
    crawler, gradient = pair
    crawler.put(block(5), timeout=60)
    crawler.put(block(6), timeout=60)
    crawler.close()
    assert [gradient.get(timeout=60).n_tokens for _ in range(2)] == [5, 6]
    with pytest.raises(QueueClosed):
        gradient.get(timeout=60)
    with pytest.raises(QueueClosed):
        crawler.put(block(1), timeout=60)
    crawler.close()


def test_closing_the_readers_end_wakes_a_waiting_put(pair: Pair, block: Make) -> None:
    crawler, gradient = pair
    gradient.latest_report()
    crawler.put(block(100), timeout=60)
    threading.Timer(0.1, gradient.close).start()
    with pytest.raises(QueueClosed):
        crawler.put(block(1), timeout=60)


def test_the_wrong_end_is_refused(pair: Pair, block: Make) -> None:
    crawler, gradient = pair
    with pytest.raises(ConfigError, match="crawler's end"):
        gradient.put(block())
    with pytest.raises(ConfigError, match="gradient's end"):
        crawler.get()
    with pytest.raises(ConfigError, match="gradient's end"):
        crawler.acknowledge(["a"])


@pytest.mark.parametrize("capacity", [0, -5])
def test_a_capacity_that_passes_nothing_is_refused(capacity: int) -> None:
    with pytest.raises(ConfigError, match="at least 1 token"):
        BlockQueue.pair(capacity)


def test_an_end_in_use_cannot_move(pair: Pair) -> None:
    pair[0].acknowledged()
    with pytest.raises(PlatformError, match="before the first put"):
        pickle.dumps(pair[0])
    with pytest.raises(PlatformError, match="close it"):
        pair[0].release()


def test_bytes_that_are_no_frame_end_the_queue(pair: Pair) -> None:
    crawler, gradient = pair
    crawler._connection.send_bytes(b"\xff not a frame")
    with pytest.raises(PeerLost):
        gradient.get(timeout=60)


def test_every_error_is_one_of_ours() -> None:
    for error in (QueueFull, QueueEmpty, QueueClosed, PeerLost):
        assert issubclass(error, YeoronError)


def test_many_threads_lose_nothing(block: Make) -> None:
    crawler, gradient = BlockQueue.pair(50)
    with crawler, gradient:

        def put(first: int) -> None:
            for n in range(first, first + 50):
                crawler.put(block(7, str(n)), timeout=60)

        threads = [threading.Thread(target=put, args=(first,)) for first in (0, 50, 100)]
        for thread in threads:
            thread.start()
        got = {gradient.get(timeout=60).keys[0] for _ in range(150)}
        for thread in threads:
            thread.join()
    assert got == {str(n) for n in range(150)}


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> object:
    """The module of child functions, importable by spawned processes too."""
    here = str(Path(__file__).parent)
    monkeypatch.syspath_prepend(here)
    import processes

    return processes


def spawn(target: Callable[..., None], end: BlockQueue, *args: object) -> multiprocessing.Process:
    process = multiprocessing.get_context("spawn").Process(target=target, args=(end, *args))
    process.start()
    end.release()
    return process  # type: ignore[return-value]


def test_two_processes(processes: object) -> None:
    crawler, gradient = BlockQueue.pair(120)
    child = spawn(processes.crawl, crawler, 40, 50)  # type: ignore[attr-defined]
    with gradient:
        for number in range(40):
            got = gradient.get(timeout=120)
            assert got.words == (f"낱말{number}",)
            assert gradient.depth <= 120
            gradient.acknowledge(got.keys)
        with pytest.raises(QueueClosed):
            gradient.get(timeout=120)
        report = gradient.latest_report()
        assert report == {"learnt": [f"key-{n}" for n in range(40)], "pid": child.pid}
    child.join(timeout=300)
    assert child.exitcode == 0


def test_a_killed_crawler_is_noticed_after_its_blocks(processes: object) -> None:
    crawler, gradient = BlockQueue.pair(100)
    child = spawn(processes.put_and_hang, crawler)  # type: ignore[attr-defined]
    with gradient:
        # What is sent arrives in order: with the report the block is here.
        until(lambda: gradient.latest_report() == {"put": 1})
        child.kill()
        child.join(timeout=300)
        assert gradient.get(timeout=60).keys == ("last",)
        with pytest.raises(PeerLost, match="ended without closing"):
            gradient.get(timeout=60)
        assert not gradient.alive


def test_a_stopped_and_a_killed_reader(processes: object, block: Make) -> None:
    crawler, gradient = BlockQueue.pair(10**9)
    child = spawn(processes.hang, gradient)  # type: ignore[attr-defined]
    with crawler:
        os.kill(child.pid, signal.SIGSTOP)
        for _ in range(50):  # more than the pipe's buffer holds: put must not block on it
            crawler.put(block(20_000), timeout=60)
        os.kill(child.pid, signal.SIGKILL)
        until(lambda: not crawler.alive)
        with pytest.raises(PeerLost):
            crawler.put(block(10), timeout=60)
    child.join(timeout=300)
