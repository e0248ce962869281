"""What kills did to a training: by the ledgers, by the counts, and by the quality."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scipy import stats

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
    gold_figures = {name: value for name, value in figures.items() if is_gold(name)}
    topology = status["topology"]
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
        **{name: topology[name] for name in ("regrouped", "lost_tokens", "from_server")},
        **gold_figures,
        **({"gold_mean": _mean(list(gold_figures.values()))} if gold_figures else {}),
    }


def is_gold(name: str) -> bool:
    """Whether a figure is that of a whole gold set, not of a section or its coverage."""
    return name.startswith(("similarity/", "analogy/")) and name.count("/") == 1


CALM = ("quiet", "again")
"""Runs without kills; the second of a seed differs from the first in timing alone."""
SURE = 0.95


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


def verdict(groups: Sequence[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """All runs exact? And by figure, how far runs with kills are from those without.

    groups  by seed: the runs `quiet`, `killed` and perhaps `again`

    The difference of a seed is taken from the mean of its runs without kills. `noise` says the
    same of `again` and `quiet`, which is what timing alone does to the figure.
    """
    figures = [
        name
        for name, value in groups[0]["quiet"].items()
        if name in ("held_out_loss", "gold_mean") or (is_gold(name) and isinstance(value, float))
    ]
    judged: dict[str, Any] = {
        "exact": all(exact(run) for group in groups for run in group.values()),
        "kills": [len(group["killed"]["killed"]) for group in groups],
    }
    for name in figures:
        calm = [_mean([group[how][name] for how in CALM if how in group]) for group in groups]
        killed = [group["killed"][name] for group in groups]
        judged[name] = {"quiet": round(_mean(calm), 4), **apart(killed, calm)}
        if all("again" in group for group in groups):
            again, quiet = ([group[how][name] for group in groups] for how in ("again", "quiet"))
            judged[name]["noise"] = apart(again, quiet)
    return judged


def apart(these: Sequence[float], those: Sequence[float]) -> dict[str, Any]:
    """Mean of `these` minus `those`, pair by pair, and how sure it is.

    interval_percent  Student's interval of the mean in per cent of `those`: where it lies within
                      ±1, the two are shown to be within 1 %; None with one pair
    spread_percent    standard deviation of one pair's difference
    """
    n, base = len(these), _mean(those)
    differences = [a - b for a, b in zip(these, those, strict=True)]
    mean = _mean(differences)
    judged = {"difference": round(mean, 4), "percent": _percent(mean, base)}
    if n < 2:
        return {**judged, "standard_error": None, "interval_percent": None, "spread_percent": None}
    spread = math.sqrt(sum((each - mean) ** 2 for each in differences) / (n - 1))
    error = spread / math.sqrt(n)
    reach = float(stats.t.ppf((1 + SURE) / 2, n - 1)) * error
    return {
        **judged,
        "standard_error": round(error, 4),
        "interval_percent": [_percent(mean - reach, base), _percent(mean + reach, base)],
        "spread_percent": _percent(spread, base),
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _percent(value: float, base: float) -> float | None:
    """Of the base's size: a correlation may be below 0."""
    return round(100 * value / abs(base), 2) if base else None
