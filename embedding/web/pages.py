"""The HTML pages and CSV files of a window and of a word."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from embedding.ask.questions import (
    BiasQuestion,
    ChangeQuestion,
    DisagreementQuestion,
    WordQuestion,
)
from embedding.ask.reader import LaterError
from embedding.kernel.errors import InputError, SnapshotError
from embedding.kernel.records import SnapshotRef
from embedding.show.columns import ranking_csv, word_csv
from embedding.snapshots.evidence import Evidence
from embedding.trends.bias import SourceBias
from embedding.trends.contrast import Disagreement
from embedding.trends.findings import WordChange, findings_of, last_with_findings
from embedding.trends.history import HistoryPoint
from embedding.trends.rows import RANKINGS, TrendReport, WindowFigures
from embedding.web import brief
from embedding.web.brief import headline
from embedding.web.findings import change_sentences
from embedding.web.handout.content import make_handout
from embedding.web.handout.writing import FORMATS
from embedding.web.plain import plain, plain_beside
from embedding.web.site import PageSite, Site
from embedding.web.wordview import history_sentences, word_view

log = logging.getLogger(__name__)

_RETRY_S = 3
AT_ONCE_S = 0.03
SOON_S = 0.3
"""A brief waits so long for what its sources disagree on."""
LATER_S = 10.0
"""The script of a brief without it asks again behind so long."""


_SHOWN = 12
"""Windows in the line."""


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


page_routes = APIRouter(default_response_class=HTMLResponse)

ReportOf = Callable[[SnapshotRef], TrendReport | None]
"""The report of a snapshot as it is shown; None while it is not known."""


def timeline(refs: Sequence[SnapshotRef], shown: str, report_of: ReportOf) -> WindowTimeline:
    """The windows of `refs` around the snapshot `shown`; the line ends with the latest that has
    it. Reports that are known are read; none is computed for it.
    """
    ids = [ref.id for ref in refs]
    at = ids.index(shown) if shown in ids else len(ids) - 1
    end = min(len(refs), max(at + 1 + _SHOWN // 2, _SHOWN))
    found = last_with_findings(refs[: max(0, at)], report_of)
    last = None if found is None else refs[ids.index(found.snapshot.id)]
    line = [_stop(report_of, ref, shown) for ref in refs[max(0, end - _SHOWN) : end]]
    return WindowTimeline(
        line=tuple(line),
        previous=_stop(report_of, refs[at - 1], shown) if at > 0 else None,
        next=_stop(report_of, refs[at + 1], shown) if 0 <= at < len(refs) - 1 else None,
        last=None if last is None else _stop(report_of, last, ""),
    )


def _stop(report_of: ReportOf, ref: SnapshotRef, shown: str) -> TimelineStop:
    report = report_of(ref)
    return TimelineStop(
        id=ref.id,
        label=ref.label,
        findings=None if report is None else findings_of(report),
        read=report is None or report.snapshot.total_tokens > 0,
        words=() if report is None else tuple(headline(report)),
        shown=ref.id == shown,
    )


def latest_known(site: Site, refs: Sequence[SnapshotRef]) -> tuple[TrendReport | None, str | None]:
    """The latest report and, when it is not of the latest window, that window's label."""
    if not refs:
        return None, None
    try:
        return site.reader.report(refs[-1].id), None
    except LaterError:
        pass
    newest = site.reader.open(refs[-1].id).manifest.window.label
    for ref in reversed(refs[:-1]):
        known = site.reader.known_report(ref.id)
        if known is not None:
            return known, newest
    return None, None


@page_routes.get("/")
def _front(site: PageSite, request: Request) -> Response:
    """The brief of the latest window that was asked for and has a finding, if any has."""
    listing = site.reader.listing()
    if not listing.refs:
        return site.render(request, "empty.html", broken=listing.broken)
    refs = site.filter(request).refs(listing.refs)
    if not refs:
        return nothing(site, request)
    report, newer = latest_known(site, refs)
    if report is None:
        raise LaterError
    quiet = report.compared_with is not None and not findings_of(filtered(site, request, report))
    last = _times(site, request, report.snapshot.id).last if quiet else None
    found = None if last is None else site.reader.known_report(last.id)
    broken = [*listing.broken]
    if found is None:
        return _brief(site, request, report, newer=newer, broken=broken)
    return _brief(site, request, found, newer=newer, newest=report.snapshot, broken=broken)


@page_routes.get("/window/{id}")
def _window(site: PageSite, request: Request, id: str) -> Response:
    """The brief of a window; the front page where its days were not asked for."""
    window = site.reader.open(id).manifest.window
    if not site.filter(request).covers(window.start, window.end):
        return RedirectResponse(site.links(request).front(), 303)
    return _brief(site, request, site.reader.report(id))


def filtered(site: Site, request: Request, report: TrendReport) -> TrendReport:
    """The report with what the reader asked to see alone."""
    chosen = site.filter(request)
    return chosen.report(report, site.answers.about(report.snapshot.id, chosen.topic))


def nothing(site: Site, request: Request) -> HTMLResponse:
    """No window holds a day that was asked for."""
    t = site.words(request)
    first, last = site.reader.days()
    sentence = t("filter_no_window", first=t.window(first), last=t.window(last))
    return site.render(request, "nothing.html", sentence=sentence)


@page_routes.get("/window/{id}/report.{format}")
def _handout(site: PageSite, request: Request, id: str, format: str) -> Response:
    if format not in FORMATS:
        raise HTTPException(404)
    report = site.reader.report(site.reader.open(id).id)
    share = site.config.trends.false_discovery
    content = make_handout(report, site.answers.story_documents, site.reading(request), share)
    body = FORMATS[format].write(content, site.config.chromium)
    return file_to_save(body, f"yeoron-{report.snapshot.id}.{format}", FORMATS[format].media_type)


@page_routes.get("/window/{id}/{ranking}.csv")
def _ranking_csv(site: PageSite, request: Request, id: str, ranking: str) -> Response:
    if ranking not in RANKINGS:
        raise HTTPException(404)
    report = filtered(site, request, site.reader.report(id, wait_s=60.0))
    return csv_file(ranking_csv(getattr(report, ranking)), f"{ranking}-{report.snapshot.id}.csv")


def _brief(
    site: Site,
    request: Request,
    report: TrendReport,
    newer: str | None = None,
    newest: WindowFigures | None = None,
    broken: Sequence[str] = (),
) -> HTMLResponse:
    t = site.words(request)
    report = plain(filtered(site, request, report))
    notes = brief.say(report.notes, report.snapshot.label, t)
    if newer is not None:
        notes.insert(0, t("note_older_report", window=t.window(newer)))
    differing, pending = _compared(site, request, report, SOON_S)
    times = _times(site, request, report.snapshot.id)
    empty = not (report.stories or any(getattr(report, name) for name in RANKINGS))
    quiet = report.compared_with is not None and not findings_of(report)
    sources = report.by_source()
    brought = [n for one in sources for n in (one.documents, one.documents_before)]
    return site.render(
        request,
        "brief.html",
        report=report,
        leads=brief.leads(report, t),
        quiet_headline=brief.quiet_headline(report, t),
        newest=newest,
        lede=[*brief.lede(report, t), *brief.differ(differing, t), brief.read(report, t)],
        nothing=empty and bool(site.filter(request)),
        stories=brief.story_views(report, brief.FRONT_ROWS, site.answers.story_documents, t),
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
        handout_formats=[name for name, one in FORMATS.items() if one.available],
    )


def _compared(
    site: Site, request: Request, report: TrendReport, wait_s: float
) -> tuple[Disagreement | None, bool]:
    """What the sources disagree on, None where nothing can be said; whether it is being computed.

    wait_s  how long to wait for it
    """
    read = site.reader.open(report.snapshot.id).manifest.documents
    if sum(1 for n in read.values() if n) < 2:
        return None, False
    try:
        found = DisagreementQuestion(report.snapshot.id).answer(site.answers, wait_s)
    except (InputError, SnapshotError):
        return None, False
    except LaterError:
        return None, True
    chosen = site.filter(request)
    near = site.answers.about(report.snapshot.id, chosen.topic)
    return chosen.disagreement(plain(found), near), False


@page_routes.get("/window/{id}/disagreement")
def _disagreement(site: PageSite, request: Request, id: str) -> Response:
    """The section of a brief that came before its sources were compared: 202 while they still are,
    204 where there is nothing to show.
    """
    found, pending = _compared(site, request, site.reader.report(id), LATER_S)
    if pending:
        raise LaterError
    if found is None or not found.compared:
        return Response(status_code=204)
    sentences = brief.differ(found, site.words(request))
    return site.render(request, "disagreement.html", found=found, sentences=sentences)


def _times(site: Site, request: Request, id: str) -> WindowTimeline:
    def known(ref: SnapshotRef) -> TrendReport | None:
        report = site.reader.known_report(ref.id)
        return None if report is None else filtered(site, request, report)

    return timeline(site.filter(request).refs(site.reader.listing().refs), id, known)


@page_routes.get("/window/{id}/timeline")
def _line(site: PageSite, request: Request, id: str) -> Response:
    """The line of windows around one, once one more of them is analysed: 202 while it is not yet.

    They are analysed one at a time, the newest first, as a reader who opens a window comes before.
    """
    site.reader.open(id)
    left = [stop.id for stop in _times(site, request, id).line if stop.findings is None]
    while left:
        try:
            site.reader.report(left.pop(), LATER_S)
            break
        except SnapshotError as error:
            log.warning("a window of the line is left out: %s", error)
    line = _times(site, request, id).line
    return site.render(request, "timeline.html", line=line, pending=bool(left))


@page_routes.get("/snapshots")
def _snapshots(site: PageSite, request: Request) -> Response:
    listing = site.reader.listing()
    rows = [site.reader.open(ref.id).manifest for ref in reversed(listing.refs)]
    shown = rows[0].id if rows else ""
    bias: SourceBias | None = None
    with suppress(InputError):
        bias = BiasQuestion(shown).answer(site.answers) if shown else None
    return site.render(
        request, "snapshots.html", rows=rows, broken=listing.broken, shown=shown, bias=bias
    )


@page_routes.get("/word")
def _word_by_query(
    site: PageSite, request: Request, w: str = "", then: str | None = None, now: str | None = None
) -> Response:
    return _word(site, request, w, then, now) if w else _like(site, request, "")


@page_routes.get("/word/{word:path}")
def _word(
    site: PageSite, request: Request, word: str, then: str | None = None, now: str | None = None
) -> Response:
    history = WordQuestion(word).answer(site.answers)
    word = history.word
    t, chosen = site.words(request), site.filter(request)
    history = chosen.history(history)
    if not history.points:
        return nothing(site, request)
    latest = history.points[-1]
    change: WordChange | None = None
    with suppress(LaterError):
        change = ChangeQuestion(word).answer(site.answers, AT_ONCE_S)
    view = word_view(history, then, now, t, change)
    return site.render(
        request,
        "word.html",
        history=plain(history),
        view=view,
        change=None if change is None else change_sentences(change, t),
        evidence=_evidence(site, word, view.now, chosen.sources),
        beside=plain_beside(site.answers.beside(view.now.snapshot, word)),
        has_evidence=site.answers.has_evidence,
        axes=site.config.axes,
        lede=history_sentences(history, t),
        latest=latest,
        before=history.points[-2] if len(history.points) > 1 else None,
        notes=brief.say(history.notes, latest.label, t),
    )


@page_routes.get("/word.csv")
def _word_csv(site: PageSite, request: Request, w: str) -> Response:
    history = WordQuestion(w).answer(site.answers)
    return csv_file(word_csv(site.filter(request).history(history)), "word.csv")


def _evidence(
    site: Site, word: str, point: HistoryPoint, sources: Sequence[str]
) -> list[Evidence] | None:
    try:
        return site.answers.evidence(word, point.start, point.end, sources=sources)
    except SnapshotError as error:
        log.warning("%s", error)
        return None


@page_routes.get("/search")
def _search(site: PageSite, request: Request, q: str = "", like: str = "") -> Response:
    """The page of the word that was typed, of any window; else the words like it."""
    if like:
        return _like(site, request, like.strip())
    query = q.strip()
    word = site.reader.vocabulary().exact(query)
    if word is None and query and site.reader.history(query).known:
        word = query
    to = site.links(request).word(word) if word else ""
    return RedirectResponse(to, 303) if to else _like(site, request, query)


def _like(site: Site, request: Request, query: str) -> HTMLResponse:
    vocabulary = site.reader.vocabulary()
    found = vocabulary.suggest(query, 60)
    nearest = vocabulary.nearest_spellings(query) if query and not found else []
    return site.render(request, "search.html", query=query, found=found, nearest=nearest)


def computing(site: Site, request: Request) -> HTMLResponse:
    """Asks again by itself."""
    response = site.render(request, "computing.html", 202)
    response.headers["Refresh"] = str(_RETRY_S)
    return response


def csv_file(text: str, name: str) -> Response:
    """A table to save."""
    # A byte order mark: spreadsheets take UTF-8 for another encoding without it.
    return file_to_save("\ufeff" + text, name, "text/csv; charset=utf-8")


def file_to_save(content: str | bytes, name: str, media_type: str) -> Response:
    """A file that a browser saves."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=media_type, headers=headers)


def error_page(
    site: Site, request: Request, status: int, key: str, detail: str = ""
) -> HTMLResponse:
    """A page that says what cannot be shown.

    key     of the text that says why; empty: there is no such page, or nobody knows why
    detail  a sentence for whoever runs the page
    """
    # What fails may be the store, which says what the windows are.
    t = site.words(request, "period" if status >= 500 else None)
    missing = status == 404 and not key
    return site.render(
        request,
        "error.html",
        status,
        status=status,
        title=t("not_found_title") if missing else t("error_title"),
        about=t(key) if key else t("not_found_about") if missing else t("server_error"),
        detail=detail,
    )
