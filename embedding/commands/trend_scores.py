"""`yeoron trends moved --all` and `trends score`: the figures of all words, or of named ones."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedding.commands.trend_reports import refuse_nothing, report_between, report_of

if TYPE_CHECKING:
    from embedding.settings import Settings
    from embedding.snapshots.store import SnapshotStore
    from embedding.trends.rows import TrendReport
    from embedding.trends.scoretable import WordScores

REASON = "reason"
_LINE = "{rank:>7} {z:>7} {q:>9} {shift:>7} {counts:>19}  {word}"


def print_all(report: TrendReport, *, as_json: bool, as_csv: bool) -> None:
    """Every word that was compared, a line each, surest first."""
    from embedding.trends.scoretable import COLUMNS

    refuse_nothing(report)
    rows = scores_in(report).rows()
    if as_json:
        _write_json(report, rows)
    elif as_csv:
        _write_csv(COLUMNS, rows)
    else:
        _write_lines(report, rows)


def print_named(
    report: TrendReport,
    words: Sequence[str],
    reasons: Mapping[str, str],
    *,
    as_json: bool,
    as_csv: bool,
) -> None:
    """The named words in their order; one that was not compared has a reason in place of figures.

    reasons  of each word that was not compared
    """
    from embedding.trends.scoretable import COLUMNS

    known = scores_in(report).of(words)
    empty = dict.fromkeys(COLUMNS)
    rows = [
        {**empty, **known.get(word, {}), "word": word, REASON: reasons.get(word)} for word in words
    ]
    if as_json:
        _write_json(report, rows)
    elif as_csv:
        _write_csv((*COLUMNS, REASON), rows)
    else:
        _write_lines(report, rows)


def scores_in(report: TrendReport) -> WordScores:
    """The figures that came with a report."""
    if report.scores is None:
        raise TypeError("a report that was computed has the figures of its words")
    return report.scores


def _write_json(report: TrendReport, rows: Iterable[Mapping[str, Any]]) -> None:
    """One JSON object, a line for each row, written as they come."""
    from embedding.trends.plain import to_plain

    head = {
        "snapshot": report.snapshot,
        "compared_with": report.compared_with,
        "notes": report.notes,
        "ranking": "moved",
    }
    text = json.dumps(to_plain(head), ensure_ascii=False, sort_keys=True)
    sys.stdout.write(text[:-1] + ', "rows": [')
    for at, row in enumerate(rows):
        line = json.dumps(row, ensure_ascii=False, sort_keys=True)
        sys.stdout.write(("," if at else "") + "\n" + line)
    sys.stdout.write("\n]}\n")


def _write_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    from embedding.trends.table import csv_cell

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([csv_cell(row[column]) for column in columns] for row in rows)


def _write_lines(report: TrendReport, rows: Iterable[Mapping[str, Any]]) -> None:
    """Plain lines: a table of a hundred thousand words would have to be held whole."""
    before = report.compared_with.label if report.compared_with else "nothing"
    sys.stdout.write(f"moved · {report.snapshot.label} against {before}\n")
    titles = {name: name for name in ("rank", "z", "q", "shift", "word")}
    sys.stdout.write(_LINE.format(**titles, counts="mentions") + "\n")
    sys.stdout.writelines(_lines(rows))


def _lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        if row.get(REASON) is not None:
            yield f"{'–':>7} {row['word']}: {row[REASON]}\n"
            continue
        yield (
            _LINE.format(
                rank=row["rank"],
                z=f"{row['z']:.1f}",
                q=f"{row['q']:.2g}",
                shift="–" if row["shift"] is None else f"{row['shift']:.2f}",
                counts=f"{row['count_before']:,} → {row['count']:,}",
                word=row["word"] + (" *" if row["significant"] else ""),
            )
            + "\n"
        )


def named_report(
    store: SnapshotStore,
    path: Path,
    id: str,
    windows: tuple[str, str] | None,
    chosen: Settings,
) -> tuple[TrendReport, list[str], dict[str, str]]:
    """The report, the words of the file, and why those that were not compared were not."""
    from embedding.commands.trend_reports import read_words
    from embedding.trends.between import TwoSnapshots
    from embedding.trends.material import Snapshots, gather
    from embedding.trends.scores import why_not

    words = read_words(path)
    report = (
        report_between(store, windows, chosen)
        if windows
        else report_of(store, id, chosen, scores=True)
    )
    refuse_nothing(report)
    known = scores_in(report).of(words)
    unknown = [word for word in words if word not in known]
    source: Snapshots = store
    if report.compared_with is not None:
        source = TwoSnapshots(store.open(report.compared_with.id), store.open(report.snapshot.id))
    reasons = why_not(unknown, gather(source, report.snapshot.id), chosen.trends)
    return report, words, reasons
