"""Two words side by side: frequency, nearness to each other, company they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from embedding.trends.history import HistoryPoint, WordHistory
from embedding.trends.together import Together
from embedding.web.charts import ChartLine, over_windows
from embedding.web.overview import rates_chart
from embedding.web.plain import topical
from embedding.web.text import PageText


@dataclass(frozen=True)
class Shared:
    """One neighbour; `both` when it is near both words."""

    word: str
    similarity: float
    both: bool


@dataclass(frozen=True)
class PairView:
    """What the template shows."""

    frequency: dict[str, object]
    nearness: dict[str, object]
    last: Together | None
    points: tuple[HistoryPoint, HistoryPoint]
    near: tuple[tuple[Shared, ...], tuple[Shared, ...]]


def pair_view(
    first: WordHistory,
    second: WordHistory,
    points: tuple[HistoryPoint, HistoryPoint],
    nearness: Sequence[Together],
    t: PageText,
) -> PairView:
    """points: of both words in one window, with their nearest words."""
    names = [{n.word for n in topical(point.neighbours)} for point in points]
    near = tuple(
        tuple(
            Shared(n.word, n.similarity, n.word in names[1 - at]) for n in topical(point.neighbours)
        )
        for at, point in enumerate(points)
    )
    known = [one for one in nearness if one.cosine is not None]
    return PairView(
        frequency=rates_chart((first, second), t),
        nearness=_nearness(nearness, t),
        last=known[-1] if known else None,
        points=points,
        near=(near[0], near[1]),
    )


def _nearness(points: Sequence[Together], t: PageText) -> dict[str, object]:
    values = [point.cosine for point in points]
    tips = [
        f"{t.window(point.label)}\n"
        f"{'–' if point.cosine is None else f'{point.cosine:.2f}'.replace('-', '−')}"
        for point in points
    ]
    low = min((value for value in values if value is not None), default=0.0)
    bottom = 0.0 if low >= 0 else -1.0
    return over_windows(
        [ChartLine(t("nearness"), values)],
        [point.label for point in points],
        tips,
        title=t("nearness"),
        bottom=bottom,
        top=1.0,
    )
