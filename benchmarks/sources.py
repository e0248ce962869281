"""What sources of a dated corpus cost: the same ticks, spread over 1, 8 and 32 sources.

    python -m benchmarks sources reviews.jsonl.xz --documents 30000 --rounds 3 > result.json

Server and node are in this process, with the network between them, so that its processor time is
that of learning as a whole; reading and cutting text is not in it. To compare two versions run it
in turn in both.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from embedding.exchange.config import ExchangeConfig
from embedding.kernel.records import Calendar, TokenBlock, WindowUnit
from embedding.models.base import make_trainer
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import running_server
from embedding.worker.config import NodeConfig
from embedding.worker.learning.learner import Learner
from embedding.worker.learning.link import LearnerSetup
from embedding.worker.process.making import connect
from yeoron_bench.results import facts

TICK = 25_000
SOURCES = (1, 8, 32)
Document = tuple[float, str, list[str]]


def documents(path: Path, most: int) -> list[Document]:
    """Time (Unix seconds), film and words of `most` reviews of 2009 and 2010, evenly drawn."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rows = sorted((r for r in rows if r["date"][:4] in ("2009", "2010")), key=lambda r: r["date"])
    drawn = [rows[at * len(rows) // most] for at in range(most)]
    return [
        (
            datetime.fromisoformat(row["date"]).replace(tzinfo=UTC).timestamp(),
            row["movie"],
            row["text"].split(),
        )
        for row in drawn
    ]


def ticks(read: list[Document], sources: int) -> list[list[TokenBlock]]:
    """Ticks of some 25,000 tokens, a block for each source; each film belongs to one."""
    films: dict[str, int] = {}
    found: list[list[TokenBlock]] = []
    held: dict[int, list[Document]] = defaultdict(list)
    tokens = 0
    for at, document in enumerate(read):
        held[films.setdefault(document[1], len(films)) % sources].append(document)
        tokens += len(document[2])
        if tokens >= TICK or at == len(read) - 1:
            blocks = [
                TokenBlock.build(
                    f"source-{name:02d}",
                    [[words] for _, _, words in own],
                    published=[when for when, _, _ in own],
                    keys=[f"{len(found)}/{name}/{n}" for n in range(len(own))],
                )
                for name, own in sorted(held.items())
            ]
            found.append(blocks)
            held.clear()
            tokens = 0
    return found


def learn(work: list[list[TokenBlock]], model: ModelConfig) -> dict[str, float]:
    """Seconds of processor and wall for all ticks but the first."""
    config = ServerConfig(min_count=5, config_digest=model.digest(), device="cpu")
    with (
        running_server(config, SyncConfig(policy="ssp"), dim=model.dim) as server,
        connect(
            server.location, node="n0", config=ExchangeConfig(), config_digest=model.digest()
        ) as client,
    ):
        node = Learner(
            client,
            make_trainer(model),
            None,
            LearnerSetup(
                node="n0", model=model, config=NodeConfig(), calendar=Calendar(WindowUnit.MONTH)
            ),
        )
        node.learn(work[0])
        began, wall = time.process_time(), time.perf_counter()
        for blocks in work[1:]:
            node.learn(blocks)
        seconds = time.process_time() - began, time.perf_counter() - wall
        scores = server.state.scores.sources
        return {
            "processor_s": round(seconds[0], 3),
            "wall_s": round(seconds[1], 3),
            "nll": sum(one.smooth for one in scores.values()) / len(scores),
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line of JSON about the machine, and one for each round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reviews", type=Path)
    parser.add_argument("--documents", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args(arguments)
    model = ModelConfig()
    read = documents(given.reviews, given.documents)
    work = {n: ticks(read, n) for n in SOURCES}
    learn(work[1][:2], model)  # compiles
    about = facts("sources", ("numpy", "torch", "numba", "pyarrow"))
    print(json.dumps({**about, "dim": model.dim, "tick": TICK}), flush=True)
    for _ in range(given.rounds):
        print(json.dumps({n: learn(work[n], model) for n in SOURCES}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
