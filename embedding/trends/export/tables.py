"""Findings and scores of a window as rows, and rows as Parquet or CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from embedding.trends.plain import to_plain
from embedding.trends.rows import RANKINGS, TrendReport, TrendRow
from embedding.trends.table import as_csv

_TEXTS = pa.list_(pa.string())
FINDINGS = pa.schema(
    [
        *((name, pa.string()) for name in ("window", "start", "end", "snapshot", "compared_with")),
        *(("ranking", pa.string()), ("rank", pa.int32()), ("word", pa.string())),
        ("story", pa.string()),
        *((name, pa.float64()) for name in ("q", "p", "z", "score", "shift", "log_odds")),
        ("since", pa.string()),
        *((name, pa.int64()) for name in ("documents_before", "documents")),
        *((name, pa.int64()) for name in ("count_before", "count")),
        *((name, pa.float64()) for name in ("per_1000_before", "per_1000")),
        *((name, _TEXTS) for name in ("sources", "neighbours_before", "neighbours", "addresses")),
    ]
)
"""Columns of findings. `story` is the id of the story that a word is of."""
Addresses = Callable[[str], Sequence[str]]
"""Addresses of documents of the window that hold a word."""


def findings_table(report: TrendReport, addresses: Addresses) -> pa.Table:
    """The significant rows of every ranking, with `FINDINGS`."""
    story = {one.word: each.id for each in report.stories for one in each.words}
    before = report.compared_with
    head = {
        "window": report.snapshot.label,
        "start": report.snapshot.start,
        "end": report.snapshot.end,
        "snapshot": report.snapshot.id,
        "compared_with": None if before is None else before.label,
    }
    rows = [
        {
            **head,
            "ranking": name,
            "rank": rank,
            "story": story.get(row.word),
            "addresses": list(addresses(row.word)),
            **_figures(row),
        }
        for name in RANKINGS
        for rank, row in enumerate(report.significant(name), start=1)
    ]
    return pa.Table.from_pylist(rows, schema=FINDINGS)


def scores_table(report: TrendReport) -> pa.Table:
    """The figures of every word that was compared, surest first."""
    if report.scores is None:
        raise TypeError("a report that was computed has the figures of its words")
    return report.scores.table


def write_parquet(table: pa.Table, file: IO[bytes]) -> None:
    """A table as Parquet."""
    pq.write_table(table, file, compression="zstd")


def write_csv(table: pa.Table, file: IO[bytes]) -> None:
    """A table as CSV: lists are joined by spaces, and no cell starts a formula."""
    names = table.schema.names
    rows = ([_cell(row[name]) for name in names] for row in table.to_pylist())
    # A byte order mark: spreadsheets take UTF-8 for another encoding without it.
    file.write(b"\xef\xbb\xbf" + as_csv(names, rows).encode("utf-8", "replace"))


def _cell(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, list) else value


def _figures(row: TrendRow) -> Mapping[str, Any]:
    found: dict[str, Any] = to_plain(
        {
            "q": row.q,
            "p": row.p,
            "z": row.z,
            "score": row.score,
            "shift": row.shift,
            "log_odds": row.log_odds,
            "per_1000_before": row.usual,
            "per_1000": row.rate,
        }
    )
    return found | {
        "word": row.word,
        "since": row.since,
        "documents_before": row.documents_before,
        "documents": row.documents,
        "authors": row.authors,
        "count_before": row.count_before,
        "count": row.count,
        "sources": [one.source for one in row.sources if one.documents],
        "neighbours_before": [one.word for one in row.neighbours_before],
        "neighbours": [one.word for one in row.neighbours],
    }
