"""Two unlike sources of unlike size: does the model serve one worse, and do weights help?

    python -m benchmarks bias reviews.txt petitions.txt

One node learns both over a real parameter server, window by window, each block of one source; the
loss of a pair before it was learnt is kept by source, as in the stream. First without weights; then
each step η of `trends.bias_step` is tried: after every window the node goes on with the weights
that `yeoron trends bias` proposes from the windows so far, starting from those in use; with each
limit of `trends.bias_rise` (1: as good as none). Figures are means over the later half of the
windows, over seeds; all runs read the same text in the same order, so the rise of the mean over the
run without weights is what the limit is about.
"""

from __future__ import annotations

import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.kept import RESULTS
from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import Welcome
from embedding.kernel.errors import InputError, YeoronError
from embedding.kernel.records import Calendar, TokenBlock, Window, WindowUnit
from embedding.models.base import make_trainer
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import running_server
from embedding.snapshots.store import SnapshotStore
from embedding.stream.config import StreamConfig
from embedding.stream.replay import make_replay
from embedding.trends.bias import SourceBias, source_bias
from embedding.trends.config import TrendsConfig
from embedding.worker.config import NodeConfig
from embedding.worker.learning.learner import Learner
from embedding.worker.learning.nodeclock import LearnerSetup
from yeoron_bench.corpora import sentences
from yeoron_bench.results import facts, keep

PACKAGES = ("yeoron", "numpy", "numba", "pyarrow", "torch")
FIRST_DAY = datetime(2001, 1, 1, tzinfo=UTC)
DOCUMENT = 8
BLOCK = 8_000
Lines = list[list[str]]


def windows(lines: Lines, n: int) -> list[Lines]:
    """A source's sentences as `n` windows of about as many words."""
    total, held = sum(map(len, lines)), 0
    found: list[Lines] = [[] for _ in range(n)]
    for line in lines:
        found[min(n - 1, held * n // max(total, 1))].append(line)
        held += len(line)
    return found


def blocks(parts: Mapping[str, Lines], day: int) -> Iterator[TokenBlock]:
    """A window's blocks, the sources mixed evenly; documents of so many sentences."""
    cut: list[tuple[float, TokenBlock]] = []
    when = (FIRST_DAY + timedelta(days=day, hours=12)).timestamp()
    for source, lines in parts.items():
        documents = [lines[at : at + DOCUMENT] for at in range(0, len(lines), DOCUMENT)]
        sizes = [sum(map(len, document)) for document in documents]
        total, held, start = max(sum(sizes), 1), 0, 0
        for at, size in enumerate(sizes):
            held += size
            if held >= BLOCK or at == len(sizes) - 1:
                chosen = documents[start : at + 1]
                keys = [f"{source}/{day}/{number}" for number in range(start, at + 1)]
                block = TokenBlock.build(source, chosen, published=[when] * len(chosen), keys=keys)
                cut.append((sum(sizes[:start]) / total, block))
                held, start = 0, at + 1
    yield from (block for _, block in sorted(cut, key=lambda one: one[0]))


def run(
    text: Sequence[Mapping[str, Lines]], given: Namespace, seed: int, trends: TrendsConfig | None
) -> list[SourceBias]:
    """One training; trends None: without weights. The figures of each window."""
    model = ModelConfig(dim=given.dim, seed=seed)
    weights: dict[str, float] = {}
    found = []
    with tempfile.TemporaryDirectory() as folder:
        config = ServerConfig(
            snapshots=folder, cut="manual", window="day", usage=False, half_life_tokens=None
        )
        with running_server(config, SyncConfig(policy="asp"), dim=given.dim, seed=seed) as server:
            client = ParameterClient(server.location, node="n0", config=ExchangeConfig())
            welcome = client.hello()
            learner = Learner(
                client,
                make_trainer(model),
                make_replay(StreamConfig(replay_tokens=given.memory), seed),
                LearnerSetup(
                    node="n0",
                    model=model,
                    config=NodeConfig(replay_ratio=given.replay),
                    calendar=Calendar(WindowUnit.DAY),
                ),
                welcome=Welcome(welcome.clock, welcome.sequence, min_count=welcome.min_count),
            )
            for day, parts in enumerate(text):
                for block in blocks(parts, day):
                    learner.learn([block])
                client.cut(Window.holding(FIRST_DAY + timedelta(days=day), WindowUnit.DAY))
                found.append(source_bias(SnapshotStore(folder), trends, weights=weights))
                if trends is not None:
                    weights = {r.source: r.proposed for r in found[-1].sources if r.proposed}
                    learner.past.mixing.use(weights)
                    client.report({"source_weights": weights})
            client.close()
    return found


def summary(runs: Sequence[Sequence[SourceBias]]) -> dict[str, Any]:
    """Means over the later half of the windows and over runs."""
    late = [one for each in runs for one in each[len(each) // 2 :]]
    sources = sorted({row.source for one in late for row in one.sources})
    return {
        "mean_loss": mean(one.bias.mean for one in late),
        "worst_excess": mean(one.bias.excess for one in late),
        "losses": {name: mean(one.bias.losses[name] for one in late) for name in sources},
        "weights": {
            name: mean(row.weight for one in late for row in one.sources if row.source == name)
            for name in sources
        },
        "windows": [[(o.bias.mean, o.bias.source, o.bias.excess) for o in each] for each in runs],
    }


def measure(given: Namespace) -> list[dict[str, Any]]:
    corpora = {given.first: given.words, given.second: given.second_words}
    lines = {path.stem: list(sentences(path, words)) for path, words in corpora.items()}
    if len(lines) < 2:
        raise InputError(f"{given.first}: two files of different names are compared.")
    by_window = {name: windows(each, given.windows) for name, each in lines.items()}
    text = [{name: each[at] for name, each in by_window.items()} for at in range(given.windows)]
    found: list[dict[str, Any]] = []
    for step, rise in ((None, None), *product(given.step, given.rise)):
        began = time.process_time()
        trends = (
            None
            if step is None
            else TrendsConfig().model_copy(update={"bias_step": step, "bias_rise": rise})
        )
        runs = [run(text, given, 1 + seed, trends) for seed in range(given.seeds)]
        one = {"step": step, "limit": rise, **summary(runs)}
        one["cpu_s"] = round(time.process_time() - began, 1)
        one["mean_rise"] = one["mean_loss"] / found[0]["mean_loss"] - 1 if found else 0.0
        found.append(one)
        weights = " ".join(f"{name} {w:.2f}" for name, w in one["weights"].items())
        print(
            f"step {step}, limit {rise}: mean {one['mean_loss']:.4f} ({one['mean_rise']:+.2%}), "
            f"worst excess {one['worst_excess']:.4f}, weights {weights}, {one['cpu_s']} s",
            flush=True,
        )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("first", type=Path, help="text, a sentence a line, words as they stand")
    parser.add_argument("second", type=Path, help="another source")
    parser.add_argument("--words", type=int, default=600_000, help="words of the first")
    parser.add_argument("--second-words", type=int, default=200_000)
    parser.add_argument("--windows", type=int, default=10)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--replay", type=float, default=3.0)
    parser.add_argument("--memory", type=int, default=400_000, help="tokens of replay memory")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--step", type=float, action="append", help="η; may be repeated")
    parser.add_argument("--rise", type=float, action="append", help="limit; may be repeated")
    given = parser.parse_args(arguments)
    given.rise = given.rise or [TrendsConfig().bias_rise]
    given.step = given.step or [TrendsConfig().bias_step]
    try:
        found = measure(given)
    except YeoronError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    record = {
        **facts("bias", PACKAGES),
        "corpora": [given.first.name, given.second.name],
        "settings": {k: v for k, v in vars(given).items() if k not in ("first", "second")},
        "runs": found,
    }
    print(f"Written to {keep(record, results=RESULTS)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
