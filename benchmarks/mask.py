"""Recall and precision of the mask on the generated sets, and how often it bites in real texts.

    python -m benchmarks mask petitions.jsonl.xz reviews.jsonl.xz

The sets are made by the grammars in tests/text: one from the official formats, one in another
style, one from lines written by hand as comments are, one composed freely, one of boards, ads and
complaints, one of live chats, replies and bios, one of letters and notices of neighbourhoods, one
of a clerk who fills in every format, one of writers who evade filters or write from abroad, one of
forms and copied chats. Of a corpus only counts by kind are told, never a text.
"""

from __future__ import annotations

import importlib
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.kept import RESULTS
from embedding.text.mask import MASK_VERSION, mask
from embedding.text.normalise import normalise
from yeoron_bench.results import ended, facts, keep
from yeoron_bench.text import texts

GRAMMARS = Path(__file__).parents[1] / "tests" / "text"
STYLES = (
    "grammar",
    "grammar_other",
    "grammar_written",
    "grammar_composed",
    "grammar_board",
    "grammar_casual",
    "grammar_letters",
    "grammar_clerk",
    "grammar_evader",
    "grammar_forms",  # never mended for
)


def generated(count: int, seed: int, styles: Sequence[str] = STYLES) -> dict[str, dict[str, Any]]:
    """What the judge says of each style."""
    if str(GRAMMARS) not in sys.path:
        sys.path.insert(0, str(GRAMMARS))
    judging = importlib.import_module("judging")
    spans = {}
    for style in styles:
        made = importlib.import_module(style)
        verdict = judging.judge(made.positives(seed, count), made.negatives(seed + 1, count))
        spans[style] = {
            "recall": verdict.recall,
            "precision": verdict.precision,
            "by_kind": verdict.by_kind(),
        }
    return spans


def bites(path: Path, documents: int | None) -> dict[str, Any]:
    """Pieces masked in a corpus, by kind."""
    counts: Counter[str] = Counter()
    total = touched = 0
    for text in islice(texts(path), documents):
        result = mask(normalise(text))
        counts.update(result.counts)
        total += 1
        touched += bool(result.counts)
    return {"documents": total, "with_any": touched, "by_kind": dict(counts.most_common())}


def bench_mask(
    corpora: Sequence[Path] = (),
    *,
    count: int = 20_000,
    seed: int = 11,
    documents: int | None = None,
    results: Path = RESULTS,
) -> dict[str, Any]:
    """Judge, print, write a dated JSON file; returns what was written."""
    report = {
        **facts("mask", ()),
        "mask": MASK_VERSION,
        "count": count,
        "generated": generated(count, seed),
        "corpora": {path.name: bites(path, documents) for path in corpora},
    }
    for style, verdict in report["generated"].items():
        kinds = ", ".join(f"{kind} {share:.2%}" for kind, share in verdict["by_kind"].items())
        print(
            f"{style}: recall {verdict['recall']:.2%} ({kinds}), "
            f"precision {verdict['precision']:.2%}"
        )
    for name, figures in report["corpora"].items():
        kinds = ", ".join(f"{kind} {n:,}" for kind, n in figures["by_kind"].items())
        print(f"{name}: {figures['with_any']:,} of {figures['documents']:,} documents: {kinds}")
    print(f"Written to {keep(report, results=results)}.")
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, nargs="*")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--documents", type=int)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    return ended(
        lambda: bench_mask(
            given.corpus, count=given.count, documents=given.documents, results=given.results
        )
    )


if __name__ == "__main__":
    sys.exit(main())
