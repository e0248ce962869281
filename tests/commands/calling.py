"""What the tests of commands share: how one is started, and a text to learn from."""

from __future__ import annotations

import numpy as np

# A test runner in the background may ignore SIGINT, and children inherit that.
ENTRY = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from embedding.cli import main; main()"
)


TOPICS = 8
"""Topics of `sentences`; the words of topic 3 are t3w0 (the most frequent), t3w1, …"""


def sentences(words: int, seed: int = 1) -> str:
    """Sentences of ten words, each about one topic."""
    random = np.random.default_rng(seed)
    share = 1 / np.arange(1, 31)
    lines = []
    for _ in range(words // 10):
        topic = random.integers(TOPICS)
        picked = random.choice(30, size=10, p=share / share.sum())
        lines.append(" ".join(f"t{topic}w{at}" for at in picked))
    return "\n".join(lines) + "\n"
