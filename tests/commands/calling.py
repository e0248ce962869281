"""What the tests of commands share: how one is started, and a text to learn from."""

from __future__ import annotations

import numpy as np

# A test runner in the background may ignore SIGINT, and children inherit that.
ENTRY = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from embedding.cli import main; main()"
)


def sentences(words: int, seed: int = 1) -> str:
    """Sentences in which word i of a pair comes with its partner."""
    random = np.random.default_rng(seed)
    pairs = random.zipf(1.4, size=words // 2) % 60
    lines = [
        " ".join(f"w{pair}a w{pair}b" for pair in pairs[at : at + 6])
        for at in range(0, len(pairs), 6)
    ]
    return "\n".join(lines) + "\n"
