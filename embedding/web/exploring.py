"""The pages that compare: two words, two windows, two sources; the map and the watch list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.params import Depends
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from embedding.kernel.errors import InputError
from embedding.snapshots.store import LATEST
from embedding.trends import comparisons, table
from embedding.trends.history import WordHistory
from embedding.trends.rows import RANKINGS, TrendReport
from embedding.web import brief, formats
from embedding.web.axisview import sentence_of
from embedding.web.mapview import map_view
from embedding.web.overview import MOST_LINES, days_view, rates_chart, span
from embedding.web.pages import computing, csv_file, filtered, latest_known, nothing, unknown
from embedding.web.pairview import pair_view
from embedding.web.plain import plain_report, plain_rows
from embedding.web.site import Site
from embedding.web.text import PageText
from embedding.web.watchview import watch_line

PATIENCE_S = 3.0
LONG_S = 60.0
WATCHED = 24
Watched = Annotated[list[str] | None, Query()]


def exploring_routes(site: Site, dependencies: Sequence[Depends]) -> APIRouter:
    """These pages; `dependencies` guard each of them."""
    routes = APIRouter(dependencies=list(dependencies), default_response_class=HTMLResponse)

    @routes.get("/compare")
    def compare(request: Request, a: str = "", b: str = "") -> Response:
        return _compare(site, request, a.strip(), b.strip())

    @routes.get("/compare.csv")
    def compare_csv(request: Request, a: str, b: str) -> Response:
        return _compare_csv(site, request, a, b)

    @routes.get("/over")
    def over(request: Request, w: Watched = None) -> Response:
        return _over(site, request, [one.strip() for one in w or () if one.strip()])

    @routes.get("/windows")
    def windows(request: Request, then: str = "", now: str = "") -> Response:
        return _windows(site, request, then, now)

    @routes.get("/windows/{ranking}.csv")
    def windows_csv(request: Request, ranking: str, then: str, now: str) -> Response:
        report = site.answers.between(then, now, LONG_S)
        if ranking not in RANKINGS or report is None:
            raise HTTPException(404 if report is not None else 503)
        report = filtered(site, request, report)
        return csv_file(table.ranking_csv(report, ranking), f"{ranking}-{then}-{now}.csv")

    @routes.get("/sources")
    def sources(request: Request, a: str = "", b: str = "", id: str = LATEST) -> Response:  # noqa: A002
        return _sources(site, request, a, b, id)

    @routes.get("/sources.csv")
    def sources_csv(a: str, b: str, id: str = LATEST) -> Response:  # noqa: A002
        found = site.answers.contrast(a, b, site.reader.open(id).id, LONG_S)
        if found is None:
            raise HTTPException(503)
        return csv_file(comparisons.contrast_csv(found), f"sources-{found.snapshot}.csv")

    @routes.get("/map")
    def map_by_query(request: Request, w: str = "") -> Response:
        return _map(site, request, w)

    @routes.get("/watch")
    def watch(request: Request, w: Watched = None) -> Response:
        return _watch(site, request, w)

    return routes


def _compare(site: Site, request: Request, a: str, b: str) -> HTMLResponse:
    if not a or not b:
        return _no_pair(site, request, a, b, 200, ())
    histories = (site.reader.history(a), site.reader.history(b))
    if not all(history.known for history in histories):
        missing = _missing(site, request, a, b, [one.known for one in histories])
        return _no_pair(site, request, a, b, 404, missing)
    chosen = site.filter(request)
    histories = (chosen.history(histories[0]), chosen.history(histories[1]))
    if not histories[0].points:
        return nothing(site, request)
    first, second = (one.points[_last_known(one)] for one in histories)
    shown = {point.snapshot for point in histories[0].points}
    nearness = [one for one in site.answers.together(a, b) if one.snapshot in shown]
    view = pair_view(*histories, (first, second), nearness, site.words(request))
    return site.render(
        request, "compare.html", a=a, b=b, view=view, histories=histories, unknown=()
    )


def _over(site: Site, request: Request, asked: Sequence[str]) -> HTMLResponse:
    """Several words on one chart."""
    words = list(dict.fromkeys(asked))
    listed = site.reader.listing().refs
    if not listed:
        return site.render(request, "empty.html", broken=site.reader.listing().broken)
    found = [site.reader.history(word) for word in words[:MOST_LINES]]
    vocabulary = site.reader.vocabulary()
    chosen, t, links = site.filter(request), site.words(request), site.links(request)
    histories = [chosen.history(one) for one in found if one.known]
    if not chosen.refs(listed) or (histories and not histories[0].points):
        return nothing(site, request)
    known = [one.word for one in histories]
    missing = [
        (one.word, [(n, links.over([*known, n])) for n in vocabulary.nearest_spellings(one.word)])
        for one in found
        if not one.known
    ]
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
    )


def _no_pair(
    site: Site, request: Request, a: str, b: str, code: int, missing: Sequence[dict[str, object]]
) -> HTMLResponse:
    """The fields for two words, and what is missing."""
    return site.render(
        request, "compare.html", code, a=a, b=b, view=None, histories=(), unknown=missing
    )


def _missing(
    site: Site, request: Request, a: str, b: str, known: Sequence[bool]
) -> list[dict[str, object]]:
    """The words that no window knows, each with near spellings that lead to the same comparison."""
    vocabulary, links = site.reader.vocabulary(), site.links(request)
    found: list[dict[str, object]] = []
    for at, word in enumerate((a, b)):
        if not known[at]:
            near = vocabulary.nearest_spellings(word)
            to = [links.compare(*((one, b) if at == 0 else (a, one))) for one in near]
            found.append({"word": word, "nearest": list(zip(near, to, strict=True))})
    return found


def _compare_csv(site: Site, request: Request, a: str, b: str) -> Response:
    first, second = site.reader.history(a), site.reader.history(b)
    for history in (first, second):
        if not history.known:
            return unknown(site, request, history.word)
    chosen = site.filter(request)
    first, second = chosen.history(first), chosen.history(second)
    text = comparisons.pair_csv(first, second, site.answers.together(a, b))
    return csv_file(text, "compare.csv")


def _last_known(history: WordHistory) -> int:
    known = [at for at, point in enumerate(history.points) if point.neighbours]
    return known[-1] if known else len(history.points) - 1


def _windows(site: Site, request: Request, then: str, now: str) -> HTMLResponse:
    refs = site.filter(request).refs(site.reader.listing().refs)
    if len(refs) < 2:
        return _choice(site, request, "", "")
    now, then = now or refs[-1].id, then or refs[0].id
    order = [ref.id for ref in refs]
    if then == now:
        return _choice(site, request, then, now, same=True)
    if then in order and now in order and order.index(then) > order.index(now):
        then, now = now, then
    report = site.answers.between(then, now, PATIENCE_S)
    if report is None:
        return computing(site, request)
    return _between(site, request, report, then, now)


def _choice(
    site: Site, request: Request, then: str, now: str, *, same: bool = False
) -> HTMLResponse:
    """Two windows are yet to be chosen."""
    notes = [site.words(request)("windows_same")] if same else []
    refs = site.filter(request).refs(site.reader.listing().refs)
    return site.render(
        request, "windows.html", refs=refs, report=None, then=then, now=now, notes=notes
    )


def _between(
    site: Site, request: Request, report: TrendReport, then: str, now: str
) -> HTMLResponse:
    return site.render(
        request,
        "windows.html",
        refs=site.filter(request).refs(site.reader.listing().refs),
        report=plain_report(filtered(site, request, report)),
        then=then,
        now=now,
        notes=brief.say(report.notes, report.snapshot.label, site.words(request)),
        rows=site.config.front_rows,
    )


def _sources(site: Site, request: Request, a: str, b: str, id: str) -> HTMLResponse:  # noqa: A002
    refs = site.reader.listing().refs
    if not refs:
        return site.render(request, "empty.html", broken=site.reader.listing().broken)
    manifest = site.reader.open(id).manifest
    names = sorted(manifest.documents, key=lambda name: (-manifest.documents[name], name))
    chosen = _two(names, a, b)
    found, sentence = None, ""
    if len(chosen) == 2:
        sentence = _unfit(names, chosen, site.words(request))
        try:
            if not sentence:
                found = site.answers.contrast(chosen[0], chosen[1], manifest.id, PATIENCE_S)
        except InputError as error:
            sentence = sentence_of(error, site.words(request))
        if found is None and not sentence:
            return computing(site, request)
    return site.render(
        request,
        "sources.html",
        refs=refs,
        names=names,
        chosen=chosen,
        manifest=manifest,
        found=found and replace(found, rows=plain_rows(found.rows)),
        sentence=sentence,
        rows=site.config.front_rows,
    )


def _unfit(names: Sequence[str], chosen: Sequence[str], t: PageText) -> str:
    """Why two sources cannot be compared; empty where they can."""
    if chosen[0] == chosen[1]:
        return t("sources_same")
    unknown = [name for name in chosen if name not in names]
    return t("sources_unknown", source=formats.short_word(unknown[0])) if unknown else ""


def _two(names: Sequence[str], a: str, b: str) -> list[str]:
    """The sources asked for; the two largest where none are."""
    first = a or next((name for name in names if name != b), "")
    second = b or next((name for name in names if name != first), "")
    return [name for name in (first, second) if name]


def _map(site: Site, request: Request, word: str) -> HTMLResponse:
    if not word:
        raise HTTPException(404)
    history = site.reader.history(word)
    if not history.known:
        return unknown(site, request, word)
    found, t = site.answers.map(word), site.words(request)
    return site.render(
        request,
        "map.html",
        word=word,
        view=map_view(found, t) if found.windows else None,
        notes=brief.say(history.notes, history.points[-1].label, t),
    )


def _watch(site: Site, request: Request, asked: Sequence[str] | None) -> HTMLResponse:
    words = list(dict.fromkeys(w.strip() for w in (asked or site.config.watch) if w.strip()))
    chosen, listed = site.filter(request), site.reader.listing().refs
    shown = chosen.refs(listed)
    if listed and not shown:
        return nothing(site, request)
    report, _ = latest_known(site, shown)
    histories = [chosen.history(site.reader.history(word)) for word in words[:WATCHED] if listed]
    lines = [watch_line(history, report) for history in histories if history.points]
    return site.render(
        request,
        "watch.html",
        lines=lines,
        chosen=asked is not None,
        passed_over=words[WATCHED:],
        label=site.words(request).window(lines[0].label) if lines else "",
    )
