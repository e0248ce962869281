"""Known events in dated corpora: where does each word rank in its month, with no hint?

    python -m benchmarks months petitions=STORE 일본=2019-07 조국=2019-08 코로나=2020-02 \
        reviews=STORE 노잼=2013-03 꿀잼=2013-05

A name with a folder names a store that `yeoron train --dated --window month --out FOLDER` wrote;
the words behind it are looked for in it, in their month and the two before and behind. For each
ranking of a report: the rank among all words of it, and whether q is at most the setting.
"""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.kept import RESULTS
from embedding.kernel.errors import InputError, YeoronError
from embedding.snapshots.store import SnapshotStore
from embedding.trends.arrivals import rank_arrivals
from embedding.trends.config import TrendsConfig
from embedding.trends.copies import with_copies_once
from embedding.trends.evidence import RowWriter, counts_of
from embedding.trends.material import gather
from embedding.trends.moved import pair_in, rank_moved
from embedding.trends.rows import TrendRow
from yeoron_bench.results import hardware, versions

PACKAGES = ("yeoron", "numpy", "pyarrow", "kiwipiepy")
AROUND = 2
ALL = TrendsConfig(rows=10_000).model_copy(update={"history_windows": 24})
"""All rows; dates over two years, as ten thousand words are dated."""
LINE = "| {} |" + " {} |" * 8


@dataclass
class Asked:
    """A store, and the month in which each word is looked for."""

    name: str
    folder: Path
    words: dict[str, str] = field(default_factory=dict)


class Bare(RowWriter):
    """Rows with counts and figures only: neighbours of thousands of words would take hours."""

    def rows(self, words: Sequence[str], values: Sequence[dict[str, Any]]) -> list[TrendRow]:
        counted = counts_of(words, self._material.now, self._material.past[-1])
        return [
            TrendRow(word=w, **counts, **each, neighbours=(), neighbours_before=(), series=())
            for w, counts, each in zip(words, counted, values, strict=True)
        ]


def ranks(store: SnapshotStore, id: str, words: Sequence[str]) -> list[list[object]]:
    """A line for each word and ranking that holds it."""
    material = gather(store, id)
    if not material.earlier:
        return []
    label = material.snapshot.manifest.window.label
    once = with_copies_once(material, ALL.baseline_windows)
    writer = Bare(material, once, ALL)
    moved = rank_moved(material, pair_in(material), writer, ALL)
    came = rank_arrivals(material, once, writer, ALL)
    lines: list[list[object]] = []
    for name, rows, of in (
        ("moved", moved.rows, moved.compared),
        ("born", came.born, came.new),
        ("risen", came.risen, came.compared),
    ):
        sure = sum(row.significant for row in rows)
        for at, row in enumerate(rows, start=1):
            if row.word in words:
                call = "**yes**" if row.significant else "no"
                documents = f"{row.documents_before} → {row.documents}"
                place = f"{at} of {of:,}"
                figures = (
                    f"{row.z:.1f}",
                    f"{row.q:.2g}",
                    call,
                    sure,
                    row.since or "",
                )
                lines.append([row.word, label, name, place, documents, *figures])
    return lines


def measure(asked: Asked) -> list[list[object]]:
    store = SnapshotStore(str(asked.folder))
    refs = store.list()
    labels = [ref.id.rpartition("-")[0] for ref in refs]
    lines: list[list[object]] = []
    months: dict[int, list[str]] = {}
    for word, month in asked.words.items():
        if month not in labels:
            raise InputError(f"{asked.folder}: no window {month}; it has {', '.join(labels)}.")
        at = labels.index(month)
        for near in range(max(0, at - AROUND), min(len(refs), at + AROUND + 1)):
            months.setdefault(near, []).append(word)
    for at, words in sorted(months.items()):
        rank = ranks(store, refs[at].id, words)
        print(f"{asked.name} {labels[at]}: {len(rank)} lines", file=sys.stderr, flush=True)
        lines += rank
    order = list(asked.words)
    return sorted(lines, key=lambda line: (order.index(str(line[0])), str(line[1])))


def parse(arguments: Sequence[str]) -> list[Asked]:
    words: list[Asked] = []
    for argument in arguments:
        name, _, value = argument.partition("=")
        if re.fullmatch(r"\d{4}-\d\d", value) and words:
            words[-1].words[name] = value
        elif Path(value).is_dir():
            words.append(Asked(name, Path(value)))
        else:
            raise InputError(
                f"{argument!r}: NAME=STORE, then WORD=YYYY-MM for each word, is accepted."
            )
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("asked", nargs="+", help="NAME=STORE WORD=YYYY-MM …")
    given = parser.parse_args(arguments)
    now = datetime.now(UTC)
    text = ["# Known events in their months", ""]
    text += [f"`python -m benchmarks months {' '.join(given.asked)}`", ""]
    text += [f"Hardware: {hardware()}", "", f"Versions: {versions(PACKAGES)}", ""]
    try:
        for asked in parse(given.asked):
            lines = measure(asked)
            text += [f"## {asked.name}", ""]
            head = ("word", "window", "ranking", "rank", "documents", "z", "q", "significant")
            text += [LINE.format(*head, "significant in all")[:-1] + "| since |"]
            text += ["|---" * 10 + "|"]
            text += ["| " + " | ".join(map(str, line)) + " |" for line in lines] + [""]
    except YeoronError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    path = RESULTS / f"months-{now:%Y-%m-%dT%H%M}.md"
    path.write_text("\n".join(text), encoding="utf-8")
    print("\n".join(text))
    print(f"Written to {path}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
