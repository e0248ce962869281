"""Answers for a terminal: tables that fit its width, and sentences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from embedding.show.columns import names_of, shortened
from embedding.trends.rows import (
    OF_MEANING,
    ROLES,
    Story,
    TrendReport,
    TrendRow,
    WordChange,
    sureness,
)

if TYPE_CHECKING:  # these compare windows: a table of what was compared need not import them
    from embedding.trends.axis import AxisHistory
    from embedding.trends.bias import SourceBias
    from embedding.trends.contrast import SourceContrast
    from embedding.trends.history import HistoryPoint, ShiftFigure, WordHistory
    from embedding.trends.stories import StoryDocuments


REST, RATE = 92, 6
"""Cells that a word's table takes without its sources, and those of a rate."""
_figures, _words = partial(Column, justify="right"), partial(Column, overflow="fold")
"""Columns of figures, and of lists of words."""


def ranking_title(report: TrendReport, name: str) -> str:
    """Which ranking, and of which windows."""
    before = report.compared_with.label if report.compared_with else "nothing"
    if name in ("risen", "fallen") and len(report.baseline) > 1:
        before = f"the {len(report.baseline)} windows before, taken together"
    return f"{name} · {report.snapshot.label} against {before}"


def notes_of(report: TrendReport, name: str) -> list[str]:
    """The sentences of the notes that are about a ranking."""
    return [note.text for note in report.notes if name == "moved" or note.code not in OF_MEANING]


def ranking_table(report: TrendReport, name: str, limit: int = 20) -> Table:
    """A ranking for the terminal."""
    title, sentences = ranking_title(report, name), notes_of(report, name)
    every: Sequence[TrendRow] = getattr(report, name)
    rows = every[:limit]
    if rows:
        if any(row.significant for row in every):
            sentences.append(CLEAR)
        else:
            title += f"\n{NONE_CLEAR}"
        if any(row.contexts for row in rows):
            sentences.append("+ and −: what stands beside a word more, and less, than before.")
        if any(row.support for row in rows):
            sentences.append("Copies of a text count once.")
        sentences += _resting(rows)
    by_rate = name in ("risen", "fallen")
    table = Table(
        _figures("#"),
        "word",
        *map(_figures, ("z", "q")),
        _figures("shift" if name == "moved" else "spread"),
        _figures("per 1,000 documents" if by_rate else _written(every)),
        *(["since"] if name == "moved" else []),
        _words("neighbours then → now"),
        title=title,
        caption=" ".join(sentences) or None,
    )
    for at, row in enumerate(rows, start=1):
        spread = "" if row.spread is None else f"{row.spread:.2f}"
        table.add_row(
            str(at),
            escape(shortened(row.word)) + (" *" if row.significant else ""),
            f"{row.z:.1f}",
            f"{row.q:.2g}",
            _shift(row) if name == "moved" else spread,
            f"{row.usual:,.1f} → {row.rate:,.1f}" if by_rate else _held(row.documents, row.authors),
            *([row.since or "–"] if name == "moved" else []),
            escape(_neighbours(row)) + _pulls(row),
        )
    return table


def _shift(row: TrendRow) -> str:
    if row.shift is None:
        return ""
    if not row.significant or row.shift_low is None or row.shift_high is None:
        return f"{row.shift:.2f}"
    return f"{row.shift:.2f} ({row.shift_low:.2f}–{row.shift_high:.2f})"


def _neighbours(row: TrendRow) -> str:
    """Before and now of a clear row; of another only what is near now, as it need not differ."""
    now = names_of(row.neighbours, 5) + ("" if row.by_use else " (model)")
    return f"{names_of(row.neighbours_before, 5) or '–'} → {now}" if row.significant else now


def _pulls(row: TrendRow) -> str:
    signed = zip("+−", row.pulled_by(), strict=True)
    parts = [f"{sign} {' '.join(map(shortened, words))}" for sign, words in signed if words]
    return escape("\n" + "  ".join(parts)) if parts else ""


def _resting(rows: Sequence[TrendRow]) -> list[str]:
    known = [(row.word, row.support) for row in rows if row.support is not None]
    few = [shortened(word) for word, support in known if support.few_authors]
    sentences = [f"Mostly one group of authors: {', '.join(few)}."] if few else []
    busiest = [shortened(word) for word, support in known if support.busiest_authors]
    if busiest:
        sentences.append(f"Not without the busiest 1 % of authors: {', '.join(busiest)}.")
    for source in sorted({name for _, support in known for name in support.needs}):
        words = ", ".join(shortened(word) for word, support in known if source in support.needs)
        sentences.append(f"Not without {shortened(source)}: {words}.")
    return [escape(sentence) for sentence in sentences]


CLEAR = "* clear. q is the share of flukes to expect among this word and all surer ones."
NONE_CLEAR = "No word is clear: chance alone can give this ranking."
"""What the mark of clear words means, or that there is none."""


def word_table(history: WordHistory, change: WordChange | None = None, width: int = 120) -> Table:
    """A word's history for the terminal, one line a window; `change` stands below.

    width  cells of the terminal; where they do, each source has a column with its rate
    """
    sentences = [note.text for note in history.notes]
    sources = sorted({s.source for point in history.points for s in point.sources})
    wanted = sum(max(cell_len(shortened(source)), RATE) + 3 for source in sources)
    shown = sources if len(sources) > 1 and REST + wanted <= width else []
    if len(sources) > 1 and not shown:
        sentences.append("Rates by source: --csv, or a wider terminal.")
    sentences += [] if change is None else [_dated(change)]
    sentences += [f"Read before as: {escape(' · '.join(history.parts))}."] if history.parts else []
    # The model remembers the windows before: its shift follows the words shown too late.
    with_shift = not all(point.by_use for point in history.points)
    figures = ["count", _written(history.points), "per 1,000"]
    figures += [escape(shortened(source)) for source in shown]
    figures += ["shift", "95 %"] if with_shift else []
    table = Table(
        "window",
        *map(_figures, figures),
        _words("neighbours"),
        title=escape(shortened(history.word)),
        caption=" ".join(sentences) or None,
    )
    for point in history.points:
        moved = point.shift_previous
        rates = {use.source: use.per_1000_documents for use in point.sources}
        table.add_row(
            point.label,
            f"{point.count:,}",
            _held(point.documents, point.authors),
            _rate(point.per_1000_documents),
            *(_rate(rates.get(source)) for source in shown),
            *(_interval(moved) if with_shift else ()),
            escape(names_of(point.neighbours, 8)),
        )
    return table


def _written(counted: Sequence[TrendRow | HistoryPoint]) -> str:
    return "documents/authors" if any(row.authors for row in counted) else "documents"


def _held(documents: int, authors: int | None) -> str:
    return f"{documents:,}" if authors is None else f"{documents:,}/{authors:,}"


def _interval(moved: ShiftFigure | None) -> tuple[str, str]:
    if moved is None:
        return "–", "–"
    return f"{moved.shift:.2f}", f"{moved.low:.2f}–{moved.high:.2f}"


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _dated(change: WordChange) -> str:
    """Since when a word is used differently or is there, or that no window calls it."""
    unjudged = f" Not compared: {', '.join(change.unjudged)}." if change.unjudged else ""
    if change.kind is None or change.q is None:
        known = change.windows - len(change.unjudged) > 1
        return ("No clear change." if known else "No windows were compared.") + unjudged
    happened = "Changed in meaning" if change.kind == "moved" else "New"
    return f"{happened} in {change.since} ({sureness(change.q)}).{unjudged}"


ROOM = 110
"""Cells from which a table with lists of words is read well as it is."""
GAP, INDENT = 2, 4


def fitted(table: Table, long: int, width: int) -> RenderableType:
    """The table where the terminal has room, else its rows with the long columns below each.

    long   how many of the last columns are lists of words
    width  cells of the terminal
    """
    if width >= ROOM:
        return table
    short, rest = table.columns[:-long], table.columns[-long:]
    cells, lists = [_texts(column) for column in short], [_texts(column) for column in rest]
    widths = _widths([max(map(cell_len, column), default=0) for column in cells], width)
    made: list[RenderableType] = (
        [] if table.title is None else [Text.from_markup(str(table.title), style="bold")]
    )
    for at, line in enumerate(zip(*cells, strict=True)):
        made.append(_line(line, short, widths, "dim" if at == 0 else ""))
        for column in lists:
            label = f"{column[0]}: " if at and long > 1 else ""
            below = Text(label, "dim") + Text(column[at], "" if at else "dim")
            if at or long == 1:
                made.append(Padding(below, (0, 0, 0, INDENT)))
    if table.caption is not None:
        made += ["", Text.from_markup(str(table.caption))]
    return Group(*made)


def _texts(column: Column) -> list[str]:
    """What its header and its cells show, without their markup."""
    return [Text.from_markup(str(cell)).plain for cell in (column.header, *column.cells)]


def _widths(wanted: list[int], width: int) -> list[int]:
    """Cells of each column; the widest gives way where they do not fit."""
    over = sum(wanted) + GAP * (len(wanted) - 1) - width
    if over > 0:
        widest = wanted.index(max(wanted))
        wanted[widest] = max(wanted[widest] - over, 1)
    return wanted


def _line(
    cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int], style: str
) -> Text:
    placed = [
        _placed(cell, size, right=column.justify == "right")
        for cell, column, size in zip(cells, columns, widths, strict=True)
    ]
    return Text((" " * GAP).join(placed).rstrip(), style)


def _placed(cell: str, size: int, *, right: bool) -> str:
    if cell_len(cell) > size:
        return set_cell_size(cell, size - 1) + "…"
    return " " * (size - cell_len(cell)) + cell if right else set_cell_size(cell, size)


def bias_table(bias: SourceBias) -> Table:
    """For the terminal, a line a source; what the proposed weights cost stands below."""
    before = [window.bias for window in bias.windows[:-1] if window.bias is not None]
    was = f", in the window before {before[-1].excess:.3f} ({before[-1].source})" if before else ""
    table = Table(
        "source",
        *map(_figures, ("loss", "excess", "tokens", "share", "weight", "proposed")),
        title=f"Loss before learning by source · {bias.label}",
        caption_justify="left",
        caption=escape(
            f"{shortened(bias.bias.source)} is served worst: {bias.bias.excess:.3f} nats above "
            f"the mean of {bias.bias.mean:.3f}{was}. {cost_of(bias)}"
        ),
    )
    for row in bias.sources:
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


def weights_setting(bias: SourceBias) -> str:
    """The proposed weights as settings take them: a line of TOML."""
    proposed = {row.source: row.proposed for row in bias.sources if row.proposed is not None}
    pairs = (f"{json.dumps(k, ensure_ascii=False)} = {v}" for k, v in sorted(proposed.items()))
    return "node.source_weights = { " + ", ".join(pairs) + " }"


def cost_of(bias: SourceBias) -> str:
    """What the weights may cost the mean, and what those in use were seen to cost."""
    limit, sentences = f"at most {bias.limit:.1%} is allowed", []
    if bias.predicted is None:
        sentences.append("No step before a source was scored in two windows")
    else:
        sentences.append(
            f"Predicted rise of the mean by what is proposed: {bias.predicted:+.2%} ({limit})"
        )
    if bias.measured is not None:
        sentences.append(f"Measured with those in use: {bias.measured:+.2%}")
    if bias.returning:
        sentences.append("That is above the limit, so they go back towards 1")
    return ". ".join(sentences) + "."


def contrast_table(contrast: SourceContrast, limit: int = 20) -> Table:
    """For the terminal."""
    first, second = escape(shortened(contrast.first)), escape(shortened(contrast.second))
    table = Table(
        _figures("#"),
        "word",
        *map(_figures, ("z", "q", "mentions")),
        *(_words(f"used as, {source}") for source in (first, second)),
        title=f"{first} against {second} · {contrast.label}",
        caption=(CLEAR if any(row.significant for row in contrast.rows) else NONE_CLEAR)
        if contrast.rows
        else "no word was used often enough by both",
    )
    for at, row in enumerate(contrast.rows[:limit], start=1):
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


def axis_table(history: AxisHistory, name: str | None = None) -> Table:
    """For the terminal, one line a window and source; the words of both poles stand below.

    name  the axis' name, where it has one; else its poles are the title
    """
    poles = " ".join(history.negative), " ".join(history.positive)
    between = f"{shortened(poles[0])} (−1) and {shortened(poles[1])} (1)"
    table = Table(
        "window",
        "source",
        *map(_figures, ("mentions", "position", "95 %")),
        title=escape(f"{shortened(history.word)} · {name}")
        if name
        else escape(f"{shortened(history.word)} between {between}"),
        caption_justify="left",
        caption=escape(_under_axis(history, named=name is not None)) or None,
    )
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
    from embedding.trends.axis import LEAST_POLES

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


_SHOWN = 8
"""Words of one role that are named."""


def story_lines(story: Story, where: StoryDocuments | None = None) -> list[str]:
    """The first line is the title with how sure it is; the others are indented.

    where  documents of the story and their days; None: not known
    """
    lines = [f"{' · '.join(map(shortened, story.title))}   {sureness(story.q)}"]
    for role, words in story.by_role().items():
        more = f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
        lines.append(f"   {ROLES[role]}: {', '.join(map(shortened, words[:_SHOWN]))}{more}")
    days = ""
    if where is not None and where.first is not None and where.last is not None:
        days = f"; written {where.first:%Y-%m-%d} to {where.last:%Y-%m-%d}"
    sources = ", ".join(map(shortened, story.sources))
    lines.append(f"   since {story.first}{days}; {documents_of(story)}; {sources}")
    documents = () if where is None else where.documents
    return lines + [f"   {document.published:%Y-%m-%d}  {document.url}" for document in documents]


def documents_of(story: Story) -> str:
    """How many documents a story has and, where that is known, how many authors."""
    documents, authors = f"{story.documents:,} documents", story.most_used.authors
    if authors is not None:
        return f"{documents} by {authors:,} author{'s' if authors > 1 else ''}"
    if story.few_authors:
        return f"{documents} by few authors"
    return f"{documents} by {story.voices:,} authors or more" if story.voices > 1 else documents
