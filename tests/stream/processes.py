"""What the tests run in other processes (spawned ones import this file by its path)."""

from __future__ import annotations

import os
import time

from embedding.kernel.records import TokenBlock
from embedding.stream.queue import BlockQueue


def crawl(queue: BlockQueue, blocks: int, tokens: int) -> None:
    """Put numbered blocks, wait until all their keys came back, say how it went."""
    for number in range(blocks):
        words = [[f"낱말{number}"] * tokens]
        queue.put(
            TokenBlock.build("news", [words], published=[float(number)], keys=[f"key-{number}"]),
            timeout=120.0,
        )
    learnt: list[str] = []
    while len(learnt) < blocks:
        learnt.extend(queue.acknowledged(timeout=120.0))
    queue.send_report({"learnt": learnt, "pid": os.getpid()})
    queue.close()


def put_and_hang(queue: BlockQueue) -> None:
    """Put one block, say so, and go on until killed."""
    queue.put(TokenBlock.build("news", [[["끝"]]], published=[0.0], keys=["last"]), timeout=60.0)
    queue.send_report({"put": 1})
    time.sleep(600.0)


def hang(queue: BlockQueue) -> None:
    """Take nothing until killed."""
    queue.latest_report()
    time.sleep(600.0)
