"""Two trainings of one text: do they call the same words as moved?

    python -m benchmarks trainings one-node two-nodes --from 2019-07

The folders are stores that `yeoron train --dated --out` wrote from the same corpus, with another
`--seed` or number of nodes. For each window that both have, the words called (q at most
`trends.false_discovery`) by each and by both; and which of those that one calls the other knows at
twice that q.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.kept import RESULTS
from embedding.kernel.errors import InputError, YeoronError
from embedding.snapshots.store import SnapshotStore
from embedding.trends.config import TrendsConfig
from embedding.trends.material import gather
from embedding.trends.moved import judge_words, pair_in
from yeoron_bench.results import facts, keep

PACKAGES = ("yeoron", "numpy", "kiwipiepy")
CONFIG = TrendsConfig()


def judged(store: SnapshotStore, id: str) -> dict[str, float] | None:
    """q of each word that was compared; None for a window with nothing to compare with."""
    material = gather(store, id)
    if not material.earlier or any(
        snapshot.unreadable is not None for snapshot in (material.earlier[-1], material.snapshot)
    ):
        return None
    pair = pair_in(material)
    judged_words = judge_words(material, pair, CONFIG)
    if judged_words is None:
        return None
    words = [pair.words[row] for row in judged_words.rows.tolist()]
    return dict(zip(words, judged_words.ranked.q.tolist(), strict=True))


def agreement(first_words: Mapping[str, float], other: Mapping[str, float]) -> dict[str, int]:
    """How many words each of two trainings calls, by q of the words compared."""
    limit = CONFIG.false_discovery
    called = [{word for word, q in each.items() if q <= limit} for each in (first_words, other)]
    nearly = [{word for word, q in each.items() if q <= 2 * limit} for each in (first_words, other)]
    either = called[0] | called[1]
    return {
        "one": len(called[0]),
        "other": len(called[1]),
        "either": len(either),
        "both": len(called[0] & called[1]),
        "both, at twice the q": len(either & nearly[0] & nearly[1]),
    }


def with_shares(counts: Mapping[str, int]) -> dict[str, Any]:
    """Counts of `agreement` with shares: of the words called by either, and of a training's."""
    either, calls = counts["either"], counts["one"] + counts["other"]
    return {
        **counts,
        "of either": round(counts["both"] / either, 3) if either else None,
        "of either, at twice the q": (
            round(counts["both, at twice the q"] / either, 3) if either else None
        ),
        "of a training's": round(2 * counts["both"] / calls, 3) if calls else None,
    }


def compare(one_store: SnapshotStore, other: SnapshotStore, first: str) -> list[dict[str, Any]]:
    """A row for each window from `first` on that both stores have, and one for all together."""
    ids = [
        {ref.id.rpartition("-")[0]: ref.id for ref in store.list()} for store in (one_store, other)
    ]
    labels = sorted(label for label in ids[0].keys() & ids[1].keys() if label >= first)
    rows: list[dict[str, Any]] = []
    total: dict[str, int] = {}
    for label in labels:
        pair = [
            judged(store, known[label])
            for store, known in zip((one_store, other), ids, strict=True)
        ]
        if pair[0] is None or pair[1] is None:
            continue
        shared = agreement(pair[0], pair[1])
        total = {name: total.get(name, 0) + n for name, n in shared.items()}
        rows.append({"window": label, **with_shares(shared)})
        print(rows[-1], flush=True)
    if not rows:
        raise InputError(
            f"{one_store!r} and {other!r} have no window in common that can be compared."
        )
    return [*rows, {"window": "together", **with_shares(total)}]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("one", type=Path, help="store of a training")
    parser.add_argument("other", type=Path, help="store of another of the same text")
    parser.add_argument("--from", dest="first", default="", help="first window, as in 2019-07")
    given = parser.parse_args(arguments)
    report = facts("trainings", PACKAGES)
    try:
        for folder in (given.one, given.other):
            if not folder.is_dir():
                raise InputError(f"{folder}: no store; a folder that yeoron train --out wrote.")
        store, other = SnapshotStore(str(given.one)), SnapshotStore(str(given.other))
        report["windows"] = compare(store, other, given.first)
    except YeoronError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(report["windows"][-1])
    print(f"Written to {keep(report, results=RESULTS)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
