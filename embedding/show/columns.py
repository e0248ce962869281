"""Answers as rows: canonical JSON, CSV, and a row of a ranking as every table has it."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from embedding.trends.plain import to_plain
from embedding.trends.rows import TrendRow

if TYPE_CHECKING:  # these compare windows: a table of what was compared need not import them
    from embedding.trends.axis import AxisHistory
    from embedding.trends.bias import SourceBias
    from embedding.trends.contrast import ContrastRow, SourceContrast
    from embedding.trends.history import Together, WordHistory

_LONGEST = 40
_RANKING = (
    *("rank", "word", "score", "z", "p", "q", "significant"),
    *("shift", "shift_low", "shift_high", "expected", "log_odds", "spread"),
    *("count_before", "count", "documents_before", "documents", "rate_before", "rate"),
    *("sources", "neighbours_before", "neighbours", "by_use", "since", "burst", "rate_usual"),
    *("authors_before", "authors"),
)
_HISTORY = (
    *("word", "window", "start", "end", "snapshot", "source"),
    *("count", "documents", "authors", "read_tokens", "read_documents"),
    *("per_1000_documents", "per_1000_tokens"),
    *("shift_previous", "shift_low", "shift_high", "neighbours"),
)
_CONTRAST = (
    *("rank", "word", "z", "p", "q", "significant", "mentions_first", "mentions_second"),
    *("neighbours_first", "neighbours_second"),
)
_PAIR = (
    *("window", "first", "second", "documents_first", "documents_second"),
    *("per_1000_first", "per_1000_second", "cosine", "snapshot"),
)
_AXIS = ("window", "source", "mentions", "position", "low", "high", "snapshot")
_BIAS = ("source", "loss", "excess", "tokens", "share", "weight", "proposed")
_FORMULA = re.compile(r"(^|;)(?=[=+\-@\t\r])")


def as_json(value: object) -> str:
    """Canonical JSON: the same records give the same bytes."""
    return json.dumps(to_plain(value), ensure_ascii=False, sort_keys=True, indent=1) + "\n"


def as_csv(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """CSV with a header line, these columns of each row; no cell starts a formula.

    Of a list the words, divided by blanks.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([csv_cell(row[column]) for column in columns] for row in rows)
    return out.getvalue()


def csv_cell(value: object) -> object:
    """A spreadsheet runs a cell that starts with = + - or @; a leading quote keeps it text.

    Where a semicolon divides cells, what follows one begins a cell.
    """
    if isinstance(value, list):
        value = " ".join(map(str, value))
    return _FORMULA.sub(r"\1'", value) if isinstance(value, str) else value


def shortened(word: str) -> str:
    """A word cut to what fits a line."""
    return word if len(word) <= _LONGEST else word[: _LONGEST - 1] + "…"


def names_of(neighbours: Iterable[object], n: int | None = None) -> str:
    """The first n words, divided by blanks."""
    return " ".join(shortened(str(getattr(near, "word", near))) for near in list(neighbours)[:n])


def neighbour_words(row: TrendRow | ContrastRow) -> dict[str, list[str]]:
    """The words of each list of neighbours of a row, by the list's name."""
    lists = {name: value for name, value in vars(row).items() if name.startswith("neighbours")}
    return {name: [near.word for near in words] for name, words in lists.items()}


def trend_record(row: TrendRow) -> dict[str, Any]:
    """A row of a ranking, of which every table shows some columns: `sources` by name, neighbours by
    word, `per_1000_before` what `per_1000` was judged against.
    """
    return {
        **vars(row),
        **neighbour_words(row),
        "sources": [rate.source for rate in row.sources if rate.documents],
        "per_1000_before": row.usual,
        "per_1000": row.rate,
    }


def ranking_csv(rows: Sequence[TrendRow]) -> str:
    """Rows of a ranking as CSV; of each source how many documents hold the word."""
    sources = ([f"{rate.source}:{rate.documents}" for rate in row.sources] for row in rows)
    cells = zip(_ranked(rows), sources, strict=True)
    return as_csv(_RANKING, ({**row, "sources": read} for row, read in cells))


def _ranked(rows: Sequence[TrendRow | ContrastRow]) -> Iterator[dict[str, Any]]:
    for rank, row in enumerate(rows, start=1):
        near = {name: names_of(words) for name, words in neighbour_words(row).items()}
        yield {"rank": rank, **to_plain(row), **near}


def word_csv(history: WordHistory) -> str:
    """A word's history as CSV: one line for each window and source."""
    rows = []
    for point in history.points:
        moved = to_plain(point.shift_previous) or {}
        window = {
            **to_plain({name: getattr(point, name) for name in ("start", "end", "snapshot")}),
            "word": history.word,
            "window": point.label,
            "shift_previous": moved.get("shift"),
            "shift_low": moved.get("low"),
            "shift_high": moved.get("high"),
            "neighbours": names_of(point.neighbours),
        }
        rows += [to_plain(source) | window for source in point.sources]
    return as_csv(_HISTORY, rows)


def contrast_csv(answer: SourceContrast, limit: int | None = None) -> str:
    """What two sources use differently as CSV."""
    return as_csv(_CONTRAST, _ranked(answer.rows[:limit]))


def pair_csv(first: WordHistory, second: WordHistory, nearness: Sequence[Together]) -> str:
    """Two words side by side as CSV, a line a window."""
    cosines = {point.snapshot: point.cosine for point in nearness}
    others = {point.snapshot: point for point in second.points}
    rows = []
    for point in first.points:
        other = others.get(point.snapshot)
        window = (point.label, first.word, second.word)
        documents = (point.documents, None if other is None else other.documents)
        rates = (point.per_1000_documents, None if other is None else other.per_1000_documents)
        cells = (*window, *documents, *rates, cosines.get(point.snapshot), point.snapshot)
        rows.append(to_plain(dict(zip(_PAIR, cells, strict=True))))
    return as_csv(_PAIR, rows)


def axes_csv(histories: Mapping[str, AxisHistory]) -> str:
    """A word along axes, by name, as CSV; the last column names the axis, where it has a name."""
    rows = (
        {**to_plain(point), "window": point.label, "axis": name}
        for name, history in histories.items()
        for point in history.points
    )
    return as_csv(_AXIS if "" in histories else (*_AXIS, "axis"), rows)


def bias_csv(answer: SourceBias) -> str:
    """A model's losses as CSV, a line a source."""
    return as_csv(_BIAS, map(to_plain, answer.sources))
