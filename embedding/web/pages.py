"""The pages, and their tables to save: what each asks of the store, and what its template shows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from embedding.ask.answers import LaterError, SnapshotListing
from embedding.ask.questions import (
    BetweenQuestion,
    BiasQuestion,
    ChangeQuestion,
    CompareQuestion,
    ContrastQuestion,
    DisagreementQuestion,
    MapQuestion,
    SnapshotsQuestion,
    WordQuestion,
)
from embedding.kernel.errors import InputError, SnapshotError
from embedding.kernel.records import SnapshotRef
from embedding.show.columns import contrast_csv, pair_csv, ranking_csv, word_csv
from embedding.snapshots.evidence import Evidence
from embedding.snapshots.store import LATEST
from embedding.trends.bias import SourceBias
from embedding.trends.contrast import Disagreement
from embedding.trends.history import HistoryPoint, WordHistory
from embedding.trends.mapping import NeighbourMap
from embedding.trends.report import refuse_apart, steps_between
from embedding.trends.rows import (
    RANKINGS,
    TrendReport,
    WindowFigures,
    WordChange,
    findings_of,
    last_with_findings,
)
from embedding.web import brief, formats
from embedding.web.answering import API_WAIT_S
from embedding.web.charts import COLOURS, days_view, map_data, nearness_chart, rates_chart, span
from embedding.web.findings import change_sentences
from embedding.web.handout.content import make_handout
from embedding.web.handout.writing import FORMATS
from embedding.web.plain import plain, plain_beside, plain_map, topical
from embedding.web.site import PAGE_WAIT_S, AskedPage, PageRequest, page_of
from embedding.web.text import PageText
from embedding.web.wordview import history_sentences, last_with_neighbours, sentence_of, word_view

log = logging.getLogger(__name__)
RETRY_S = 3
"""Seconds after which what is being computed is asked for again."""
AT_ONCE_S = 0.03
SOON_S = 0.3
"""A brief waits so long for what its sources disagree on."""
LATER_S = 10.0
"""The script of a brief without it asks again behind so long."""
_SHOWN = 12
"""Windows in the line."""
MOST_LINES = COLOURS
WATCHED = 24
Watched = Annotated[list[str] | None, Query()]
page_routes = APIRouter(default_response_class=HTMLResponse)


@dataclass(frozen=True)
class TimelineStop:
    """One window: its findings (None: not known yet), whether anything was read of what is chosen,
    its words, whether it is the one shown."""

    id: str
    label: str
    findings: int | None
    read: bool
    words: tuple[str, ...]
    shown: bool


@dataclass(frozen=True)
class WindowTimeline:
    """The line, the neighbours of the window shown, and the last one before it with a finding."""

    line: tuple[TimelineStop, ...]
    previous: TimelineStop | None
    next: TimelineStop | None
    last: TimelineStop | None


ReportOf = Callable[[SnapshotRef], TrendReport | None]
"""The report of a snapshot as it is shown; None while it is not known."""


def timeline(refs: Sequence[SnapshotRef], shown: str, report_of: ReportOf) -> WindowTimeline:
    """The windows of `refs` around the snapshot `shown`; the line ends with the latest that has
    it. Reports that are known are read; none is computed for it.
    """

    def stop(ref: SnapshotRef) -> TimelineStop:
        report = report_of(ref)
        return TimelineStop(
            id=ref.id,
            label=ref.label,
            findings=None if report is None else findings_of(report),
            read=report is None or report.snapshot.total_tokens > 0,
            words=() if report is None else tuple(brief.headline(report)),
            shown=ref.id == shown,
        )

    ids = [ref.id for ref in refs]
    at = ids.index(shown) if shown in ids else len(ids) - 1
    end = min(len(refs), max(at + 1 + _SHOWN // 2, _SHOWN))
    last = last_with_findings(refs[: max(0, at)], report_of)
    return WindowTimeline(
        line=tuple(map(stop, refs[max(0, end - _SHOWN) : end])),
        previous=stop(refs[at - 1]) if at > 0 else None,
        next=stop(refs[at + 1]) if 0 <= at < len(refs) - 1 else None,
        last=None if last is None else stop(refs[ids.index(last.snapshot.id)]),
    )


def _timeline(page: PageRequest, id: str) -> WindowTimeline:
    def known(ref: SnapshotRef) -> TrendReport | None:
        report = page.answers.known_report(ref.id)
        return None if report is None else page.filtered(report)

    return timeline(page.filter.refs(page.answers.listing().refs), id, known)


@page_routes.get("/")
def _front(page: AskedPage) -> Response:
    """The brief of the latest window that was asked for and has a finding, if any has."""
    broken = page.answers.listing().broken
    if not page.answers.listing().refs:
        return page.render("empty.html", broken=broken)
    refs = page.refs()
    report = next(page.answers.newest_reports(refs), None)
    if report is None:
        raise LaterError
    newer = None if report.snapshot.id == refs[-1].id else refs[-1].label
    quiet = report.compared_with is not None and not findings_of(page.filtered(report))
    last = _timeline(page, report.snapshot.id).last if quiet else None
    earlier = None if last is None else page.answers.known_report(last.id)
    if earlier is None:
        return _brief(page, report, newer=newer, broken=broken)
    return _brief(page, earlier, newer=newer, newest=report.snapshot, broken=broken)


@page_routes.get("/window/{id}")
def _window(page: AskedPage, id: str) -> Response:
    """The brief of a window; the front page where its days were not asked for."""
    window = page.answers.open(id).manifest.window
    if not page.filter.covers(window.start, window.end):
        return RedirectResponse(page.links.front(), 303)
    return _brief(page, page.answers.report(id))


@page_routes.get("/window/{id}/report.{format}")
def _handout(page: AskedPage, id: str, format: str) -> Response:
    if format not in FORMATS:
        raise HTTPException(404)
    report = page.answers.report(page.answers.open(id).id)
    share = page.config.trends.false_discovery
    content = make_handout(report, page.answers.story_documents, page.reading, share)
    body = FORMATS[format].write(content, page.config.chromium)
    return file_to_save(body, f"yeoron-{report.snapshot.id}.{format}", FORMATS[format].media_type)


@page_routes.get("/window/{id}/{ranking}.csv")
def _ranking_csv(page: AskedPage, id: str, ranking: str) -> Response:
    if ranking not in RANKINGS:
        raise HTTPException(404)
    report = page.filtered(page.answers.report(id, API_WAIT_S))
    return csv_file(ranking_csv(getattr(report, ranking)), f"{ranking}-{report.snapshot.id}.csv")


def _brief(
    page: PageRequest,
    report: TrendReport,
    newer: str | None = None,
    newest: WindowFigures | None = None,
    broken: Sequence[str] | dict[str, str] = (),
) -> HTMLResponse:
    t, report = page.t, plain(page.filtered(report))
    notes = brief.say(report.notes, report.snapshot.label, t)
    if newer is not None:
        notes.insert(0, t("note_older_report", window=t.window(newer)))
    differing, pending = None, False
    try:
        differing = _disagreement(page, report.snapshot.id, SOON_S)
    except LaterError:
        pending = True
    times = _timeline(page, report.snapshot.id)
    empty = not (report.stories or any(getattr(report, name) for name in RANKINGS))
    quiet = report.compared_with is not None and not findings_of(report)
    sources = report.by_source()
    brought = [n for source in sources for n in (source.documents, source.documents_before)]
    return page.render(
        "brief.html",
        report=report,
        leads=brief.leads(report, t),
        quiet_headline=brief.quiet_headline(report, t),
        newest=newest,
        lede=[*brief.lede(report, t), *brief.differ(differing, t), brief.read(report, t)],
        nothing=empty and bool(page.filter),
        stories=brief.story_views(report, brief.FRONT_ROWS, page.answers.story_documents, t),
        more_stories=report.significant_stories()[brief.FRONT_ROWS :],
        line=times.line,
        previous=times.previous,
        next=times.next,
        quiet=times.last if quiet else None,
        notes=notes,
        broken=sorted(broken),
        sources=sources,
        most_documents=max(brought, default=0) or 1,
        differing=differing,
        pending=pending,
        rows=brief.FRONT_ROWS,
        handout_formats=[name for name, kind in FORMATS.items() if kind.available],
    )


def _disagreement(page: PageRequest, id: str, wait_s: float) -> Disagreement | None:
    disagreement = DisagreementQuestion(id).answer(page.answers, wait_s)
    if disagreement is None:
        return None
    return page.filter.disagreement(plain(disagreement), page.near_topic(id))


@page_routes.get("/window/{id}/disagreement")
def _disagreement_later(page: AskedPage, id: str) -> Response:
    """The section of a brief that came before its sources were compared: 202 while they still are,
    204 where there is nothing to show.
    """
    disagreement = _disagreement(page, page.answers.report(id).snapshot.id, LATER_S)
    if disagreement is None or not disagreement.compared:
        return Response(status_code=204)
    return page.render(
        "disagreement.html", found=disagreement, sentences=brief.differ(disagreement, page.t)
    )


@page_routes.get("/window/{id}/timeline")
def _line(page: AskedPage, id: str) -> Response:
    """The line of windows around one, once one more of them is analysed: 202 while it is not yet.

    They are analysed one at a time, the newest first, as a reader who opens a window comes before.
    """
    page.answers.open(id)
    left = [stop.id for stop in _timeline(page, id).line if stop.findings is None]
    while left:
        try:
            page.answers.report(left.pop(), LATER_S)
            break
        except SnapshotError as error:
            log.warning("a window of the line is left out: %s", error)
    return page.render("timeline.html", line=_timeline(page, id).line, pending=bool(left))


def _snapshots(page: PageRequest, listing: SnapshotListing) -> dict[str, Any]:
    rows = [page.answers.open(ref.id).manifest for ref in reversed(listing.refs)]
    shown = rows[0].id if rows else ""
    bias: SourceBias | None = None
    with suppress(InputError):
        bias = BiasQuestion(shown).answer(page.answers) if shown else None
    return {"rows": rows, "broken": listing.broken, "shown": shown, "bias": bias}


page_routes.get("/snapshots")(page_of(SnapshotsQuestion, "snapshots.html", _snapshots))


@page_routes.get("/word")
def _word_by_query(
    page: AskedPage, w: str = "", then: str | None = None, now: str | None = None
) -> Response:
    return _word(page, w, then, now) if w else _like(page, "")


@page_routes.get("/word/{word:path}")
def _word(page: AskedPage, word: str, then: str | None = None, now: str | None = None) -> Response:
    history = page.history(WordQuestion(word).answer(page.answers))
    word, latest, t = history.word, history.points[-1], page.t
    change: WordChange | None = None
    with suppress(LaterError):
        change = ChangeQuestion(word).answer(page.answers, AT_ONCE_S)
    view = word_view(history, then, now, t, change)
    return page.render(
        "word.html",
        history=plain(history),
        view=view,
        change=None if change is None else change_sentences(change, t),
        evidence=_evidence(page, word, view.now),
        beside=plain_beside(page.answers.beside(view.now.snapshot, word)),
        has_evidence=page.answers.has_evidence,
        axes=page.config.axes,
        lede=history_sentences(history, t),
        latest=latest,
        before=history.points[-2] if len(history.points) > 1 else None,
        notes=brief.say(history.notes, latest.label, t),
    )


@page_routes.get("/word.csv")
def _word_csv(page: AskedPage, w: str) -> Response:
    history = WordQuestion(w).answer(page.answers)
    return csv_file(word_csv(page.filter.history(history)), "word.csv")


def _evidence(page: PageRequest, word: str, point: HistoryPoint) -> Sequence[Evidence] | None:
    try:
        return page.answers.evidence(word, point.start, point.end, sources=page.filter.sources)
    except SnapshotError as error:
        log.warning("%s", error)
        return None


@page_routes.get("/search")
def _search(page: AskedPage, q: str = "", like: str = "") -> Response:
    """The page of the word that was typed, of any window; else the words like it."""
    if like:
        return _like(page, like.strip())
    query = q.strip()
    word = page.answers.vocabulary().exact(query)
    if word is None and query and page.answers.history(query).known:
        word = query
    to = page.links.word(word) if word else ""
    return RedirectResponse(to, 303) if to else _like(page, query)


def _like(page: PageRequest, query: str) -> HTMLResponse:
    vocabulary = page.answers.vocabulary()
    words = vocabulary.suggest(query, 60)
    nearest = vocabulary.nearest_spellings(query) if query and not words else []
    return page.render("search.html", query=query, found=words, nearest=nearest)


@page_routes.get("/compare")
def _compare(page: AskedPage, a: str = "", b: str = "") -> Response:
    a, b = a.strip(), b.strip()
    asked: dict[str, Any] = {"a": a, "b": b, "histories": (), "unknown": ()}
    if not a or not b:
        return page.render("compare.html", **asked)
    histories = [page.answers.history(word) for word in (a, b)]
    if not all(history.known for history in histories):
        to = page.links.compare
        near_to = _missing(page, histories, lambda at, near: to(a, near) if at else to(near, b))
        return page.render("compare.html", 404, **{**asked, "unknown": near_to})
    histories = [page.history(history) for history in histories]
    points = [history.points[last_with_neighbours(history)] for history in histories]
    near = [topical(point.neighbours) for point in points]
    shown = {point.snapshot for point in histories[0].points}
    pair = CompareQuestion(a, b).answer(page.answers)
    nearness = [point for point in pair.nearness if point.snapshot in shown]
    return page.render(
        "compare.html",
        **{**asked, "histories": histories},
        frequency=rates_chart(histories, page.t),
        nearness_chart=nearness_chart(nearness, page.t),
        near=list(zip((a, b), points, near, strict=True)),
        both={neighbour.word for neighbour in near[0]} & {neighbour.word for neighbour in near[1]},
    )


def _missing(
    page: PageRequest, histories: Sequence[WordHistory], to: Callable[[int, str], str]
) -> list[tuple[str, list[tuple[str, str]]]]:
    """The words that no window knows, each with near spellings and where these lead.

    to  the address of the same page with another word in the place of one
    """
    near = page.answers.vocabulary().nearest_spellings
    return [
        (history.word, [(other, to(at, other)) for other in near(history.word)])
        for at, history in enumerate(histories)
        if not history.known
    ]


@page_routes.get("/over")
def _over(page: AskedPage, w: Watched = None) -> Response:
    words, listing = _each_once(w or ()), page.answers.listing()
    if not listing.refs:
        return page.render("empty.html", broken=listing.broken)
    asked = [page.answers.history(word) for word in words[:MOST_LINES]]
    page.refs()
    histories = [page.history(history) for history in asked if history.known]
    known = [history.word for history in histories]
    missing = _missing(page, asked, lambda _, near: page.links.over([*known, near]))
    rates, days = None, None
    if histories:
        times = span(histories, page.filter)
        rates = rates_chart(histories, page.t)
        counts = page.answers.days(known, *times)
        days = days_view(known, counts, times, page.filter, page.t)
    return page.render(
        "over.html",
        words=known,
        histories=histories,
        missing=missing,
        passed_over=words[MOST_LINES:],
        rates=rates,
        days=days,
        most=MOST_LINES,
        has_evidence=page.answers.has_evidence,
        days_alone=days is not None,
    )


@page_routes.get("/compare.csv")
def _compare_csv(page: AskedPage, a: str, b: str) -> Response:
    pair = CompareQuestion(a, b).answer(page.answers)
    first, second = map(page.filter.history, pair.words)
    return csv_file(pair_csv(first, second, pair.nearness), "compare.csv")


@page_routes.get("/windows")
def _windows(page: AskedPage, then: str = "", now: str = "") -> Response:
    t, refs = page.t, page.filter.refs(page.answers.listing().refs)
    shown: dict[str, Any] = {"report": None, "notes": (), "steps": ()}
    order = [ref.id for ref in refs]
    if len(refs) > 1:
        now = now or order[-1]
        # What changed in meaning shows between neighbours.
        then = then or order[max(order.index(now) - 1 if now in order else len(order) - 2, 0)]
    if len(refs) < 2:
        then, now = "", ""
    elif then == now:
        shown["notes"] = [t("windows_same")]
    else:
        if then in order and now in order and order.index(then) > order.index(now):
            then, now = now, then
        report = BetweenQuestion(then, now).answer(page.answers, PAGE_WAIT_S)
        shown["notes"] = brief.say(report.notes, report.snapshot.label, t)
        shown |= {
            "report": plain(page.filtered(report)),
            "steps": steps_between(report, page.answers.list()),
        }
    rows = brief.FRONT_ROWS
    return page.render("windows.html", refs=refs, then=then, now=now, rows=rows, **shown)


@page_routes.get("/windows/{ranking}.csv")
def _windows_csv(page: AskedPage, ranking: str, then: str, now: str) -> Response:
    if ranking not in RANKINGS:
        raise HTTPException(404)
    report = BetweenQuestion(then, now).answer(page.answers, API_WAIT_S)
    if ranking == "moved":
        refuse_apart(report)
    rows = getattr(page.filtered(report), ranking)
    return csv_file(ranking_csv(rows), f"{ranking}-{then}-{now}.csv")


@page_routes.get("/sources.csv")
def _sources_csv(page: AskedPage, a: str, b: str, id: str = LATEST) -> Response:
    contrast = ContrastQuestion(a, b, id).answer(page.answers, API_WAIT_S)
    return csv_file(contrast_csv(contrast), f"sources-{contrast.snapshot}.csv")


@page_routes.get("/sources")
def _sources(page: AskedPage, a: str = "", b: str = "", id: str = LATEST) -> Response:
    listing = page.answers.listing()
    if not listing.refs:
        return page.render("empty.html", broken=listing.broken)
    manifest, names = page.answers.open(id).manifest, page.answers.sources(id)
    # Of two that are not named the largest.
    first = a or next((name for name in names if name != b), "")
    second = b or next((name for name in names if name != first), "")
    chosen = [name for name in (first, second) if name]
    contrast, sentence = None, ""
    if len(chosen) == 2:
        sentence = _unfit(names, chosen, page.t)
        try:
            if not sentence:
                asked = ContrastQuestion(first, second, manifest.id)
                contrast = plain(asked.answer(page.answers, PAGE_WAIT_S))
        except InputError as error:
            sentence = sentence_of(error, page.t)
    return page.render(
        "sources.html",
        refs=listing.refs,
        names=names,
        chosen=chosen,
        manifest=manifest,
        found=contrast,
        sentence=sentence,
        rows=brief.FRONT_ROWS,
    )


def _unfit(names: Sequence[str], chosen: Sequence[str], t: PageText) -> str:
    if chosen[0] == chosen[1]:
        return t("sources_same")
    unknown = [name for name in chosen if name not in names]
    return t("sources_unknown", source=formats.short_word(unknown[0])) if unknown else ""


def _map(page: PageRequest, neighbour_map: NeighbourMap) -> dict[str, Any]:
    history = WordQuestion(neighbour_map.word).answer(page.answers)
    shown = plain_map(neighbour_map)
    last = shown.windows[-1] if shown.windows else None
    near = () if last is None else (place for place in last.places if place.near)
    return {
        "word": neighbour_map.word,
        "data": map_data(shown, page.t),
        "last": last,
        "nearest": sorted(near, key=lambda place: -place.similarity),
        "notes": brief.say(history.notes, history.points[-1].label, page.t),
    }


page_routes.get("/map")(page_of(MapQuestion, "map.html", _map))


def _each_once(words: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(word.strip() for word in words if word.strip()))


@page_routes.get("/watch")
def _watch(page: AskedPage, w: Watched = None) -> Response:
    words = _each_once(w or page.config.watch)
    lines = [*watch_lines(page, words[:WATCHED]).values()]
    return page.render(
        "watch.html",
        lines=lines,
        chosen=w is not None,
        passed_over=words[WATCHED:],
        label=page.t.window(lines[0].history.points[-1].label) if lines else "",
    )


@dataclass(frozen=True)
class WatchLine:
    """A watched word; news: rankings of the latest window in which it is called clear"""

    history: WordHistory
    news: tuple[str, ...]


def watch_lines(page: PageRequest, words: Sequence[str]) -> dict[str, WatchLine]:
    """The words that the windows asked for say something of, in the latest of these."""
    shown = page.refs()
    if not shown:
        return {}
    report = next(page.answers.newest_reports(shown[-1:]), None)
    news = {} if report is None else report.called()
    histories = {word: page.filter.history(page.answers.history(word)) for word in words}
    return {
        word: WatchLine(history, news.get(history.word, ()))
        for word, history in histories.items()
        if history.points
    }


def nothing(page: PageRequest) -> HTMLResponse:
    """No window holds a day that was asked for."""
    first, last = map(page.t.window, page.answers.window_days())
    sentence = page.t("filter_no_window", first=first, last=last)
    return page.render("nothing.html", sentence=sentence)


def computing(page: PageRequest) -> HTMLResponse:
    """Asks again by itself."""
    response = page.render("computing.html", 202)
    response.headers["Refresh"] = str(RETRY_S)
    return response


def csv_file(text: str, name: str) -> Response:
    """A table to save."""
    # A byte order mark: spreadsheets take UTF-8 for another encoding without it.
    return file_to_save("\ufeff" + text, name, "text/csv; charset=utf-8")


def file_to_save(content: str | bytes, name: str, media_type: str) -> Response:
    """A file that a browser saves."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=media_type, headers=headers)


def error_page(page: PageRequest, status: int, key: str, detail: str = "") -> HTMLResponse:
    """A page that says what cannot be shown.

    key     of the text that says why; empty: there is no such page, or nobody knows why
    detail  a sentence for whoever runs the page
    """
    # What fails may be the store, which says what the windows are.
    t = page.words("period") if status >= 500 else page.t
    missing = status == 404 and not key
    return page.render(
        "error.html",
        status,
        status=status,
        title=t("not_found_title") if missing else t("error_title"),
        about=t(key) if key else t("not_found_about") if missing else t("server_error"),
        detail=detail,
    )
