"""The pages that compare: two words, two windows, two sources; the map and the watch list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from itertools import pairwise
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from embedding.ask.questions import (
    BetweenQuestion,
    CompareQuestion,
    ContrastQuestion,
    MapQuestion,
    WordQuestion,
)
from embedding.kernel.calendar import day_number, day_of
from embedding.kernel.errors import InputError
from embedding.kernel.records import SnapshotRef
from embedding.show.columns import contrast_csv, pair_csv, ranking_csv
from embedding.snapshots.evidence import DayCount
from embedding.snapshots.store import LATEST
from embedding.trends.between import refuse_apart
from embedding.trends.history import Together, WordHistory
from embedding.trends.mapping import NeighbourMap
from embedding.trends.report import NOT_ADJACENT
from embedding.trends.rows import RANKINGS, TrendReport
from embedding.web import brief, formats
from embedding.web.answering import API_WAIT_S
from embedding.web.asking import PAGE_WAIT_S, page_of
from embedding.web.charts import COLOURS, ChartLine, lines, over_windows, rates_over_windows
from embedding.web.filters import PageFilter
from embedding.web.pages import csv_file, filtered, latest_known, nothing
from embedding.web.plain import plain, plain_map, topical
from embedding.web.site import PageSite, Site
from embedding.web.text import PageText
from embedding.web.wordview import last_with_neighbours, sentence_of

MOST_LINES = COLOURS
MOST_DAYS = 400
"""Days of the chart, the latest ones."""


@dataclass(frozen=True)
class DaysView:
    """Documents a day.

    chart      as charts.js takes it
    rows       days, latest first, each with the figure of every word (None: not known)
    estimated  whether some figure is an estimate
    """

    chart: dict[str, object]
    rows: tuple[tuple[str, tuple[float | None, ...]], ...]
    estimated: bool


def span(histories: Sequence[WordHistory], chosen: PageFilter) -> tuple[datetime, datetime]:
    """The days to show, from the first to before the second time, by the clock of the windows."""
    points = histories[0].points
    start, end = (
        datetime.fromisoformat(each).replace(tzinfo=None)
        for each in (points[0].start, points[-1].end)
    )
    if chosen.first is not None:
        start = max(start, datetime.combine(chosen.first, time()))
    if chosen.last is not None:
        end = min(end, datetime.combine(chosen.last, time()) + timedelta(days=1))
    return max(start, end - timedelta(days=MOST_DAYS)), end


def days_view(
    words: Sequence[str],
    counts: Sequence[DayCount],
    span: tuple[datetime, datetime],
    chosen: PageFilter,
    t: PageText,
) -> DaysView | None:
    """None where no document of these words was noted."""
    own = [one for one in counts if chosen.chooses(one.source)]
    if not own:
        return None
    first, last = day_number(span[0]), day_number(span[1] - timedelta(microseconds=1))
    # The days before the first and after the last noted one may be of a time without addresses.
    noted = [one.day for one in own]
    days = range(max(first, min(noted)), min(last, max(noted)) + 1)
    held: dict[tuple[str, int], float | None] = {}
    for one in own:
        before = held.get((one.word, one.day), 0.0)
        unknown = before is None or one.documents is None
        held[one.word, one.day] = None if unknown else (before or 0.0) + (one.documents or 0.0)
    values = [[held.get((word, day), 0.0) for day in days] for word in words]
    names = [day_of(day) for day in days]
    short = [formats.short_word(word, 24) for word in words]
    shown = [ChartLine(*line, colour=at) for at, line in enumerate(zip(short, values, strict=True))]
    figures = [tuple(row) for row in zip(*values, strict=True)]
    tips = []
    for name, row in zip(names, figures, strict=True):
        parts = [f"{word}: {formats.number(n)}" for word, n in zip(short, row, strict=True)]
        tips.append("\n".join([t.window(name.isoformat()), *parts]))
    labels = [f"{name.month}/{name.day}" for name in names]
    rows = [(name.isoformat(), row) for name, row in zip(names, figures, strict=True)]
    return DaysView(
        chart=lines(shown, labels, tips, title=t("over_days")),
        rows=tuple(reversed(rows)),
        estimated=any(not one.exact for one in own),
    )


def rates_chart(histories: Sequence[WordHistory], t: PageText) -> dict[str, object]:
    """Documents that hold each word, per 1,000 of each window of the first word."""
    points = histories[0].points
    names = [formats.short_word(history.word, 24) for history in histories]
    known = [{point.snapshot: point for point in history.points} for history in histories]
    rows = [[own.get(point.snapshot) for own in known] for point in points]
    return rates_over_windows(names, rows, [point.label for point in points], t, t("per_1000"))


WATCHED = 24
Watched = Annotated[list[str] | None, Query()]
exploring_routes = APIRouter(default_response_class=HTMLResponse)


def _nearness(points: Sequence[Together], t: PageText) -> dict[str, object]:
    values, labels = [point.cosine for point in points], [point.label for point in points]
    shown = [formats.number(value, 2).replace("-", "−") for value in values]
    tips = [f"{t.window(label)}\n{text}" for label, text in zip(labels, shown, strict=True)]
    low = min((value for value in values if value is not None), default=0.0)
    line, bottom = ChartLine(t("nearness"), values), 0.0 if low >= 0 else -1.0
    return over_windows([line], labels, tips, title=line.name, bottom=bottom, top=1.0)


def _map_data(found: NeighbourMap, t: PageText) -> dict[str, object]:
    """What map.js draws: windows with places, and `bounds` (least and greatest x, then y) that hold
    all.
    """
    places = [(p.x, p.y) for window in found.windows for p in window.places] or [(0.0, 0.0)]
    xs, ys = ([0.0, *(place[at] for place in places)] for at in (0, 1))
    bounds = [round(value, 3) for value in (min(xs), max(xs), min(ys), max(ys))]
    windows = []
    before: set[str] = set()
    for window in found.windows:
        windows.append(
            {
                "label": t.window(window.label),
                "kept": f"{window.kept * 100:.0f} %",
                "places": [
                    {
                        "word": formats.short_word(p.word, 24),
                        "x": round(p.x, 3),
                        "y": round(p.y, 3),
                        "similarity": round(p.similarity, 2),
                        "near": p.near,
                        "new": bool(before) and p.near and p.word not in before,
                    }
                    for p in window.places
                ],
            }
        )
        before = {p.word for p in window.places if p.near}
    return {
        "word": formats.short_word(found.word, 24),
        "title": t("map_title", word=formats.short_word(found.word, 40)),
        "bounds": bounds,
        "windows": windows,
    }


@exploring_routes.get("/compare")
def _compare(site: PageSite, request: Request, a: str = "", b: str = "") -> Response:
    a, b = a.strip(), b.strip()

    def page(code: int = 200, **values: object) -> HTMLResponse:
        usual: dict[str, object] = {"histories": (), "unknown": ()}
        return site.render(request, "compare.html", code, a=a, b=b, **{**usual, **values})

    if not a or not b:
        return page()
    histories = (site.reader.history(a), site.reader.history(b))
    if not all(history.known for history in histories):
        to = site.links(request).compare
        near_to = _missing(site, histories, lambda at, near: to(a, near) if at else to(near, b))
        return page(404, unknown=near_to)
    chosen = site.filter(request)
    histories = (chosen.history(histories[0]), chosen.history(histories[1]))
    if not histories[0].points:
        return nothing(site, request)
    points = [one.points[last_with_neighbours(one)] for one in histories]
    near = [topical(point.neighbours) for point in points]
    shown, t = {point.snapshot for point in histories[0].points}, site.words(request)
    pair = CompareQuestion(a, b).answer(site.answers)
    nearness = [one for one in pair.nearness if one.snapshot in shown]
    return page(
        histories=histories,
        frequency=rates_chart(histories, t),
        nearness_chart=_nearness(nearness, t),
        near=list(zip((a, b), points, near, strict=True)),
        both={one.word for one in near[0]} & {one.word for one in near[1]},
    )


def _missing(
    site: Site, histories: Sequence[WordHistory], to: Callable[[int, str], str]
) -> list[tuple[str, list[tuple[str, str]]]]:
    """The words that no window knows, each with near spellings and where these lead.

    to  the address of the same page with another word in the place of one
    """
    near = site.reader.vocabulary().nearest_spellings
    return [
        (one.word, [(other, to(at, other)) for other in near(one.word)])
        for at, one in enumerate(histories)
        if not one.known
    ]


@exploring_routes.get("/over")
def _over(site: PageSite, request: Request, w: Watched = None) -> Response:
    words = _each_once(w or ())
    listed = site.reader.listing().refs
    if not listed:
        return site.render(request, "empty.html", broken=site.reader.listing().broken)
    found = [site.reader.history(word) for word in words[:MOST_LINES]]
    chosen, t, links = site.filter(request), site.words(request), site.links(request)
    histories = [chosen.history(one) for one in found if one.known]
    if not chosen.refs(listed) or (histories and not histories[0].points):
        return nothing(site, request)
    known = [one.word for one in histories]
    missing = _missing(site, found, lambda _, near: links.over([*known, near]))
    rates, days = None, None
    if histories:
        times = span(histories, chosen)
        rates = rates_chart(histories, t)
        days = days_view(known, site.answers.days(known, *times), times, chosen, t)
    return site.render(
        request,
        "over.html",
        words=known,
        histories=histories,
        missing=missing,
        passed_over=words[MOST_LINES:],
        rates=rates,
        days=days,
        most=MOST_LINES,
        has_evidence=site.answers.has_evidence,
        days_alone=days is not None,
    )


@exploring_routes.get("/compare.csv")
def _compare_csv(site: PageSite, request: Request, a: str, b: str) -> Response:
    pair, chosen = CompareQuestion(a, b).answer(site.answers), site.filter(request)
    first, second = map(chosen.history, pair.words)
    return csv_file(pair_csv(first, second, pair.nearness), "compare.csv")


@exploring_routes.get("/windows")
def _windows(site: PageSite, request: Request, then: str = "", now: str = "") -> Response:
    t, refs = site.words(request), site.filter(request).refs(site.reader.listing().refs)

    def page(then: str, now: str, notes: Sequence[str] = (), **values: object) -> HTMLResponse:
        usual = {"refs": refs, "report": None, "then": then, "now": now, "notes": notes}
        return site.render(request, "windows.html", 200, **{**usual, "steps": (), **values})

    if len(refs) < 2:
        return page("", "")
    order = [ref.id for ref in refs]
    now = now or order[-1]
    # What changed in meaning shows between neighbours.
    then = then or order[max(order.index(now) - 1 if now in order else len(order) - 2, 0)]
    if then == now:
        return page(then, now, [t("windows_same")])
    if then in order and now in order and order.index(then) > order.index(now):
        then, now = now, then
    report = BetweenQuestion(then, now).answer(site.answers, PAGE_WAIT_S)
    return page(
        then,
        now,
        brief.say(report.notes, report.snapshot.label, t),
        report=plain(filtered(site, request, report)),
        steps=_steps(refs, report),
        rows=brief.FRONT_ROWS,
    )


@exploring_routes.get("/windows/{ranking}.csv")
def _windows_csv(site: PageSite, request: Request, ranking: str, then: str, now: str) -> Response:
    if ranking not in RANKINGS:
        raise HTTPException(404)
    report = BetweenQuestion(then, now).answer(site.answers, API_WAIT_S)
    if ranking == "moved":
        refuse_apart(report)
    report = filtered(site, request, report)
    return csv_file(ranking_csv(getattr(report, ranking)), f"{ranking}-{then}-{now}.csv")


def _steps(
    refs: Sequence[SnapshotRef], report: TrendReport
) -> list[tuple[SnapshotRef, SnapshotRef]]:
    """The pairs of neighbours from one window to the other, where only these can be compared."""
    before = report.compared_with
    if before is None or all(note.code != NOT_ADJACENT for note in report.notes):
        return []
    ids = [ref.id for ref in refs]
    return [*pairwise(refs[ids.index(before.id) : ids.index(report.snapshot.id) + 1])]


@exploring_routes.get("/sources.csv")
def _sources_csv(site: PageSite, a: str, b: str, id: str = LATEST) -> Response:
    found = ContrastQuestion(a, b, id).answer(site.answers, API_WAIT_S)
    return csv_file(contrast_csv(found), f"sources-{found.snapshot}.csv")


@exploring_routes.get("/sources")
def _sources(
    site: PageSite, request: Request, a: str = "", b: str = "", id: str = LATEST
) -> Response:
    refs = site.reader.listing().refs
    if not refs:
        return site.render(request, "empty.html", broken=site.reader.listing().broken)
    manifest = site.reader.open(id).manifest
    names = sorted(manifest.documents, key=lambda name: (-manifest.documents[name], name))
    # Of two that are not named the largest.
    first = a or next((name for name in names if name != b), "")
    second = b or next((name for name in names if name != first), "")
    chosen = [name for name in (first, second) if name]
    found, sentence, t = None, "", site.words(request)
    if len(chosen) == 2:
        sentence, asked = _unfit(names, chosen, t), ContrastQuestion(first, second, manifest.id)
        try:
            found = None if sentence else asked.answer(site.answers, PAGE_WAIT_S)
        except InputError as error:
            sentence = sentence_of(error, t)
    return site.render(
        request,
        "sources.html",
        refs=refs,
        names=names,
        chosen=chosen,
        manifest=manifest,
        found=found and plain(found),
        sentence=sentence,
        rows=brief.FRONT_ROWS,
    )


def _unfit(names: Sequence[str], chosen: Sequence[str], t: PageText) -> str:
    if chosen[0] == chosen[1]:
        return t("sources_same")
    unknown = [name for name in chosen if name not in names]
    return t("sources_unknown", source=formats.short_word(unknown[0])) if unknown else ""


def _map(site: Site, request: Request, found: NeighbourMap) -> dict[str, Any]:
    history = WordQuestion(found.word).answer(site.answers)
    shown, t = plain_map(found), site.words(request)
    last = shown.windows[-1] if shown.windows else None
    near = () if last is None else (one for one in last.places if one.near)
    return {
        "word": found.word,
        "data": _map_data(shown, t),
        "last": last,
        "nearest": sorted(near, key=lambda one: -one.similarity),
        "notes": brief.say(history.notes, history.points[-1].label, t),
    }


exploring_routes.get("/map")(page_of(MapQuestion, "map.html", _map))


def _each_once(words: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(one.strip() for one in words if one.strip()))


@exploring_routes.get("/watch")
def _watch(site: PageSite, request: Request, w: Watched = None) -> Response:
    words = _each_once(w or site.config.watch)
    lines = watch_lines(site, request, words[:WATCHED])
    if lines is None:
        return nothing(site, request)
    return site.render(
        request,
        "watch.html",
        lines=lines,
        chosen=w is not None,
        passed_over=words[WATCHED:],
        label=site.words(request).window(lines[0].history.points[-1].label) if lines else "",
    )


@dataclass(frozen=True)
class WatchLine:
    """A watched word; news: rankings of the latest window in which it is called clear"""

    history: WordHistory
    news: tuple[str, ...]


def watch_lines(site: Site, request: Request, words: Sequence[str]) -> list[WatchLine] | None:
    """The words in the latest window that was asked for; None where no window was."""
    chosen, listed = site.filter(request), site.reader.listing().refs
    shown = chosen.refs(listed)
    if not listed:
        return []
    if not shown:
        return None
    report, _ = latest_known(site, shown)
    histories = [chosen.history(site.reader.history(word)) for word in words]
    news: dict[str, tuple[str, ...]] = {}
    if report is not None and report.snapshot.id == shown[-1].id:
        for name in RANKINGS:
            for row in report.significant(name):
                news[row.word] = (*news.get(row.word, ()), name)
    return [WatchLine(one, news.get(one.word, ())) for one in histories if one.points]
