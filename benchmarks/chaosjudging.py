"""What kills did to a training: by the ledgers, by the counts, and by the quality."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from embedding.evaluation.evaluate import evaluate_snapshot


def judge(
    run: dict[str, Any], counts: Counter[str], epochs: int, gold: list[Path]
) -> dict[str, Any]:
    """Whether each word was learnt once, and how near the gold sets the vectors are.

    run     `killed`, `not_killed`, `seconds`, `status` and `snapshot` of a training
    counts  of the corpus, which was read `epochs` times
    """
    status, snapshot = run["status"], run["snapshot"]
    by_source = snapshot.by_source
    wrong = sum(
        n != epochs * counts[word]
        for word, n in zip(by_source.words, by_source.counts.tolist(), strict=True)
    )
    figures = evaluate_snapshot(snapshot, gold, "cpu").metrics
    ways = status["topology"]
    return {
        "killed": run["killed"],
        "not_killed": run["not_killed"],
        "seconds": round(run["seconds"], 1),
        "tokens": int(status["sources"]["corpus"]["tokens"]),
        "tokens_of_the_corpus": epochs * counts.total(),
        "words": len(by_source.words),
        "words_with_another_count": wrong,
        "words_with_a_row": len(snapshot.words),
        "pushes_applied": status["pushes"],
        "pushes_of_the_nodes": sum(node["sequence"] for node in status["nodes"].values()),
        "pushes_applied_by_each_shard": [shard["pushes"] for shard in status["shards"]],
        "pushes_lost_by_shards": sum(shard["lost_pushes"] for shard in status["shards"]),
        "resent": status["duplicates"],
        "restarts_of_shards": [shard["restarts"] for shard in status["shards"]],
        **{name: ways[name] for name in ("regrouped", "lost_tokens", "from_server")},
        **{name: value for name, value in figures.items() if name.startswith("similarity/")},
    }


def exact(run: dict[str, Any]) -> bool:
    """Whether every token was counted once and every push applied once, by every ledger."""
    pushes = {
        run["pushes_applied"],
        run["pushes_of_the_nodes"],
        *run["pushes_applied_by_each_shard"],
    }
    return (
        run["tokens"] == run["tokens_of_the_corpus"]
        and not run["words_with_another_count"]
        and not run["pushes_lost_by_shards"]
        and len(pushes) == 1
    )


def verdict(pairs: Sequence[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """All runs exact? And by figure the mean of killed minus quiet, its standard error, in %."""
    figures = [
        name
        for name, value in pairs[0]["quiet"].items()
        if name == "held_out_loss" or (name.startswith("similarity/") and isinstance(value, float))
    ]
    told: dict[str, Any] = {
        "exact": all(exact(run) for pair in pairs for run in pair.values()),
        "kills": [len(pair["killed"]["killed"]) for pair in pairs],
    }
    for name in figures:
        apart = [pair["killed"][name] - pair["quiet"][name] for pair in pairs]
        quiet = sum(pair["quiet"][name] for pair in pairs) / len(pairs)
        mean = sum(apart) / len(apart)
        spread = math.sqrt(sum((each - mean) ** 2 for each in apart) / max(len(apart) - 1, 1))
        told[name] = {
            "quiet": round(quiet, 4),
            "difference": round(mean, 4),
            "standard_error": round(spread / math.sqrt(len(apart)), 4) if len(apart) > 1 else None,
            "percent": round(100 * mean / quiet, 2) if quiet else None,
        }
    return told
