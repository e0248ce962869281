"""Contrasts of sources, their bias, and positions on an axis, as a terminal table and as CSV."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from embedding.trends.axis import LEAST_POLES, AxisHistory
from embedding.trends.bias import SourceBias
from embedding.trends.contrast import SourceContrast
from embedding.trends.history import WordHistory
from embedding.trends.plain import to_plain
from embedding.trends.table import as_csv, names_of, shortened, sure_note
from embedding.trends.together import Together

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


def bias_table(found: SourceBias) -> Table:
    """For the terminal, a line a source; what the proposed weights cost stands below."""
    before = [one.bias for one in found.windows[:-1] if one.bias is not None]
    was = f", in the window before {before[-1].excess:.3f} ({before[-1].source})" if before else ""
    table = Table(
        title=f"Loss before learning by source · {found.label}",
        caption_justify="left",
        caption=escape(
            f"{shortened(found.bias.source)} is served worst: {found.bias.excess:.3f} nats above "
            f"the mean of {found.bias.mean:.3f}{was}. {cost_of(found)}"
        ),
    )
    table.add_column("source")
    for title in ("loss", "excess", "tokens", "share", "weight", "proposed"):
        table.add_column(title, justify="right")
    for row in found.sources:
        scored = row.loss is not None and row.excess is not None
        table.add_row(
            escape(shortened(row.source)),
            f"{row.loss:.3f}" if scored else "–",
            f"{row.excess:+.3f}" if scored else "–",
            f"{row.tokens:,}",
            f"{row.share:.1%}",
            f"{row.weight:.3f}",
            "–" if row.proposed is None else f"{row.proposed:.3f}",
        )
    return table


def weights_setting(found: SourceBias) -> str:
    """The proposed weights as settings take them: a line of TOML."""
    proposed = {row.source: row.proposed for row in found.sources if row.proposed is not None}
    pairs = (f"{json.dumps(k, ensure_ascii=False)} = {v}" for k, v in sorted(proposed.items()))
    return "node.source_weights = { " + ", ".join(pairs) + " }"


def cost_of(found: SourceBias) -> str:
    """What the weights may cost the mean, and what those in use were seen to cost."""
    limit, sentences = f"at most {found.limit:.1%} is allowed", []
    if found.predicted is None:
        sentences.append("No step before a source was scored in two windows")
    else:
        sentences.append(
            f"Predicted rise of the mean by what is proposed: {found.predicted:+.2%} ({limit})"
        )
    if found.measured is not None:
        sentences.append(f"Measured with those in use: {found.measured:+.2%}")
    if found.returning:
        sentences.append("That is above the limit, so they go back towards 1")
    return ". ".join(sentences) + "."


def bias_csv(found: SourceBias) -> str:
    """CSV with a header, a line a source."""
    return as_csv(_BIAS, [[to_plain(row)[column] for column in _BIAS] for row in found.sources])


def contrast_table(found: SourceContrast, limit: int = 20) -> Table:
    """For the terminal."""
    first, second = escape(shortened(found.first)), escape(shortened(found.second))
    table = Table(
        title=f"{first} against {second} · {found.label}",
        caption=sure_note(any(row.significant for row in found.rows))
        if found.rows
        else "no word was used often enough by both",
    )
    for title, right in (("#", True), ("word", False), ("z", True), ("q", True)):
        table.add_column(title, justify="right" if right else "left")
    table.add_column("mentions", justify="right")
    for title in (first, second):
        table.add_column(f"used as, {title}", overflow="fold")
    for at, row in enumerate(found.rows[:limit], start=1):
        table.add_row(
            str(at),
            escape(shortened(row.word)) + (" *" if row.significant else ""),
            f"{row.z:.1f}",
            f"{row.q:.2g}",
            f"{row.mentions_first} / {row.mentions_second}",
            escape(names_of(row.neighbours_first, 5)),
            escape(names_of(row.neighbours_second, 5)),
        )
    return table


def contrast_csv(found: SourceContrast, limit: int | None = None) -> str:
    """CSV with a header; neighbours are joined by spaces."""
    lines = []
    for at, row in enumerate(found.rows[:limit], start=1):
        plain = to_plain(row) | {
            "rank": at,
            "neighbours_first": names_of(row.neighbours_first),
            "neighbours_second": names_of(row.neighbours_second),
        }
        lines.append([plain[column] for column in _CONTRAST])
    return as_csv(_CONTRAST, lines)


def pair_csv(first: WordHistory, second: WordHistory, nearness: Sequence[Together]) -> str:
    """Two words side by side as CSV with a header, a line a window."""
    cosines = {one.snapshot: to_plain(one.cosine) for one in nearness}
    others = {point.snapshot: point for point in second.points}
    lines = []
    for one in first.points:
        other = others.get(one.snapshot)
        lines.append(
            [
                *(one.label, first.word, second.word),
                *(one.documents, None if other is None else other.documents),
                to_plain(one.per_1000_documents),
                None if other is None else to_plain(other.per_1000_documents),
                *(cosines.get(one.snapshot), one.snapshot),
            ]
        )
    return as_csv(_PAIR, lines)


def axis_table(history: AxisHistory, name: str | None = None) -> Table:
    """For the terminal, one line a window and source; the words of both poles stand below.

    name  the axis' name, where it has one; else its poles are the title
    """
    poles = " ".join(history.negative), " ".join(history.positive)
    between = f"{shortened(poles[0])} (−1) and {shortened(poles[1])} (1)"
    table = Table(
        title=escape(f"{shortened(history.word)} · {name}")
        if name
        else escape(f"{shortened(history.word)} between {between}"),
        caption_justify="left",
        caption=escape(_under_axis(history, named=name is not None)) or None,
    )
    table.add_column("window")
    table.add_column("source")
    for title in ("mentions", "position", "95 %"):
        table.add_column(title, justify="right")
    for point in history.points:
        unknown = point.low is None or point.high is None
        table.add_row(
            point.label,
            escape(shortened(point.source)),
            str(point.mentions),
            f"{point.position:+.2f}",
            "–" if unknown else f"{point.low:+.2f} … {point.high:+.2f}",
        )
    return table


def _under_axis(history: AxisHistory, *, named: bool) -> str:
    """The poles of a named axis, the words that were passed over, and that there is no line."""
    sentences = []
    if named:
        sentences.append(f"−1: {', '.join(history.negative)}. 1: {', '.join(history.positive)}.")
    if history.unused:
        sentences.append(
            f"Not used in the last window, so passed over: {', '.join(history.unused)}."
        )
    if not history.points:
        sentences.append("No window used this word often enough.")
    if min(history.poles) < LEAST_POLES:
        sentences.append("Only one word of a side was used: give more, and there is an interval.")
    return " ".join(sentences)


def axis_csv(history: AxisHistory) -> str:
    """CSV with a header."""
    return as_csv(_AXIS, _axis_lines(history))


def axes_csv(histories: Sequence[tuple[str, AxisHistory]]) -> str:
    """Several axes as CSV with a header; the last column is the axis' name."""
    lines = [[*line, name] for name, one in histories for line in _axis_lines(one)]
    return as_csv((*_AXIS, "axis"), lines)


def _axis_lines(history: AxisHistory) -> list[list[object]]:
    return [
        [point.label, *(to_plain(point)[column] for column in _AXIS[1:])]
        for point in history.points
    ]
