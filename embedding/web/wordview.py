"""A word page's content: charts and the two neighbour lists, taken from a history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from embedding.trends.changed import WordChange
from embedding.trends.history import HistoryPoint, WordHistory
from embedding.web import formats
from embedding.web.charts import ChartLine, over_windows
from embedding.web.plain import topical
from embedding.web.text import PageText


@dataclass(frozen=True)
class NearLine:
    """One neighbour in a list; `state` is `new`, `lost` or empty."""

    word: str
    similarity: float
    state: str


@dataclass(frozen=True)
class WordView:
    """What the template shows."""

    frequency: dict[str, object]
    sources: tuple[str, ...]
    then: HistoryPoint | None
    now: HistoryPoint
    then_lines: tuple[NearLine, ...]
    now_lines: tuple[NearLine, ...]


def word_view(
    history: WordHistory,
    then: str | None,
    now: str | None,
    t: PageText,
    change: WordChange | None = None,
) -> WordView:
    """Charts over all windows, and the neighbours of two of them (snapshot ids; None: choose).

    Without a choice, `now` is the latest window that knows the word and `then` the one before.
    Which words came and went is marked where the word's meaning changed between the two.
    """
    sources = sources_of(history)
    with_near = [at for at, point in enumerate(history.points) if point.neighbours]
    latest = with_near[-1] if with_near else len(history.points) - 1
    now_at = _find(history, now, latest)
    before = [at for at in with_near if at < now_at]
    then_at = _find(history, then, before[-1] if before else -1)
    then_point = history.points[then_at] if then_at >= 0 else None
    now_point = history.points[now_at]
    since = None if change is None or change.kind != "moved" else change.since
    labels = [point.label for point in history.points[then_at + 1 : now_at + 1]]
    marked = then_point is not None and since in labels and then_point.by_use == now_point.by_use
    return WordView(
        frequency=frequency_chart(history, sources, t),
        sources=sources,
        then=then_point,
        now=now_point,
        then_lines=_lines(then_point, now_point if marked else None, "lost"),
        now_lines=_lines(now_point, then_point if marked else None, "new"),
    )


def history_sentences(history: WordHistory, t: PageText) -> list[str]:
    """The latest window in sentences: how often the word was used, and whether it changed."""
    last = history.points[-1]
    if not last.read_documents or last.per_1000_documents is None:
        return []
    before = history.points[-2] if len(history.points) > 1 else None
    figures = {
        "window": t.window(last.label),
        "read": formats.number(last.read_documents),
        "documents": formats.number(last.documents),
        "rate": formats.rate(last.per_1000_documents),
    }
    if before is None or before.per_1000_documents is None:
        sentences = [t("read_rate", **figures)]
    else:
        earlier = {
            "rate_before": formats.rate(before.per_1000_documents),
            "earlier_window": t.window(before.label),
        }
        sentences = [t("read_rates", **figures, **earlier)]
    if last.authors is not None:
        sentences.append(t("written_by", n=formats.number(last.authors)))
    # The model remembers the windows before: its figure would contradict the words that are shown.
    figure = None if last.by_use else last.shift_previous
    if figure is not None and before is not None:
        shares = {
            name: f"{100 * value:.0f}"
            for name, value in (("shift", figure.shift), ("low", figure.low), ("high", figure.high))
        }
        sentences.append(t("changed_share", window=t.window(before.label), **shares))
    return sentences


def sources_of(history: WordHistory) -> tuple[str, ...]:
    """The sources of all windows, as charts order and colour them."""
    return tuple(sorted({s.source for point in history.points for s in point.sources}))


def _find(history: WordHistory, id: str | None, otherwise: int) -> int:
    for at, point in enumerate(history.points):
        if id is not None and point.snapshot == id:
            return at
    return otherwise


def _lines(
    point: HistoryPoint | None, other: HistoryPoint | None, state: str
) -> tuple[NearLine, ...]:
    if point is None:
        return ()
    others = {n.word for n in other.neighbours} if other is not None else set()
    return tuple(
        NearLine(n.word, n.similarity, state if others and n.word not in others else "")
        for n in topical(point.neighbours)
    )


def frequency_chart(history: WordHistory, sources: Sequence[str], t: PageText) -> dict[str, object]:
    """Documents that hold the word, per 1,000 of each source."""
    tables = [{s.source: s for s in point.sources} for point in history.points]
    shown = [
        ChartLine(
            name,
            [row[name].per_1000_documents if name in row else None for row in tables],
            colour=at,
        )
        for at, name in enumerate(sources)
    ]
    tips = []
    for point in history.points:
        parts = [t.window(point.label)]
        parts += [
            f"{s.source}: {formats.rate(s.per_1000_documents)} ({s.documents:,})"
            for s in point.sources
        ]
        tips.append("\n".join(parts))
    title = f"{t('frequency')}: {formats.short_word(history.word)}"
    return over_windows(shown, [point.label for point in history.points], tips, title=title)
