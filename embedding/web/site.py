"""What all routes share: answers, live stream, templates, shipped files, login; and routes made of
questions, as docs/extending.md adds them: a question, a template, and `page_of(…)`.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, get_type_hints
from urllib.parse import quote, urlencode

import httpx
from fastapi import Depends, Query, Request
from jinja2 import Environment
from pydantic.fields import FieldInfo
from starlette.responses import HTMLResponse, Response

from embedding.ask.answers import Answers
from embedding.ask.questions import Question
from embedding.kernel.errors import KeyedError, SnapshotError
from embedding.kernel.records import SnapshotRef
from embedding.show.team import LONGEST_NAME, LONGEST_NOTE, TeamShared, TeamStore
from embedding.trends.history import WordHistory
from embedding.trends.recent import Fresh
from embedding.trends.rows import TrendReport
from embedding.web import charts, findings, formats
from embedding.web.answering import Reading, absolute
from embedding.web.config import WebConfig
from embedding.web.filters import FILTER_NAMES, PageFilter
from embedding.web.headlines import Headlines
from embedding.web.links import PagePaths
from embedding.web.login import Login
from embedding.web.text import LANGUAGES, PageText, choose, page_templates, unit_shown
from embedding.web.tokens import ANALYST, READER, allows

log = logging.getLogger(__name__)
_HERE = Path(__file__).parent
_FOLDERS = ("static", "vendor")
LANGUAGE_COOKIE = "yeoron_lang"
NAME_COOKIE = "yeoron_name"
FILTERS: tuple[Callable[..., str], ...] = (
    formats.number,
    formats.rate,
    formats.chance,
    formats.change,
    formats.shares,
    formats.moment,
    formats.seconds,
    formats.short_word,
    formats.short_label,
    formats.short_address,
)
STATIC_TYPES = {
    "app.css": "text/css; charset=utf-8",
    "views.css": "text/css; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "charts.js": "text/javascript; charset=utf-8",
    "map.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "echarts.common.min.js": "text/javascript; charset=utf-8",
}


class NothingChosenError(Exception):
    """No window holds a day that was asked for."""


@dataclass(frozen=True)
class Site:
    """One application's parts.

    login      None where somebody else guards the routes
    headlines  None where no document is fetched again for its headline
    team       what people share; None: nothing
    channels   of notices (`NotifyConfig.channels`)
    """

    config: WebConfig
    answers: Answers
    stream: Stream
    login: Login | None
    headlines: Headlines | None = None
    team: TeamStore | None = None
    channels: tuple[str, ...] = ()

    @cached_property
    def static(self) -> dict[str, bytes]:
        return {
            name: next(p for f in _FOLDERS if (p := _HERE / f / name).is_file()).read_bytes()
            for name in STATIC_TYPES
        }

    @cached_property
    def version(self) -> str:
        """Changes when a shipped file changes."""
        digest = hashlib.sha256()
        for content in self.static.values():
            digest.update(content)
        return digest.hexdigest()[:10]

    @cached_property
    def templates(self) -> Environment:
        """Those of the pages, with the filters that write figures."""
        environment = page_templates()
        environment.filters.update({write.__name__: write for write in FILTERS})
        environment.filters["tojson_attribute"] = partial(json.dumps, ensure_ascii=False)
        environment.globals.update(charts=charts)
        return environment


class PageRequest:
    """A request for a page or an answer: its language, what it asks to see alone, and how it is
    answered.
    """

    def __init__(self, site: Site, request: Request) -> None:
        self.site, self.request = site, request
        self.config, self.answers = site.config, site.answers
        self.root = str(request.scope.get("root_path", "")).rstrip("/")

    @property
    def login_name(self) -> str:
        """Of whoever is logged in, as the login before this page says it; else empty."""
        return str(getattr(self.request.state, "login_name", "") or "")

    @cached_property
    def t(self) -> PageText:
        """The texts in the reader's language, for the store's windows."""
        return self.words(unit_shown(self.answers))

    def words(self, unit: str) -> PageText:
        """The same for windows of a unit, for whom the store cannot be asked."""
        request, accepted = self.request, self.request.headers.get("accept-language", "")
        remembered = request.cookies.get(LANGUAGE_COOKIE)
        return PageText(choose(request.query_params.get("lang"), remembered, accepted), unit)

    @cached_property
    def links(self) -> PagePaths:
        return PagePaths(self.root, self.site.version, self._usable.pairs)

    @cached_property
    def reading(self) -> Reading:
        """For whom an answer is: language, and whole addresses of pages."""
        origin = f"{self.request.url.scheme}://{self.request.url.netloc}"
        return Reading(self.t, absolute(self.links, origin))

    @cached_property
    def filter(self) -> PageFilter:
        """What is asked to be seen alone; raises KeyedError."""
        return PageFilter.of(self.request.query_params)

    @cached_property
    def _usable(self) -> PageFilter:
        """The same, with nothing left out where it cannot be used: its error has links, too."""
        try:
            return self.filter
        except KeyedError:
            return PageFilter()

    def refs(self) -> tuple[SnapshotRef, ...]:
        """The windows that were asked for; NothingChosenError where the store has none of them."""
        listed = self.answers.listing().refs
        chosen = self.filter.refs(listed)
        if listed and not chosen:
            raise NothingChosenError
        return chosen

    def near_topic(self, id: str) -> frozenset[str]:
        """Words that a window uses as it uses the topic that was asked for."""
        return self.answers.about(id, self.filter.topic)

    def filtered(self, report: TrendReport) -> TrendReport:
        """The report with what was asked to be seen alone."""
        return self.filter.report(report, self.near_topic(report.snapshot.id))

    def history(self, history: WordHistory) -> WordHistory:
        """Of a word's history what was asked for; NothingChosenError where that is no window."""
        chosen = self.filter.history(history)
        if not chosen.points:
            raise NothingChosenError
        return chosen

    def may(self, needed: str) -> bool:
        """Whether the role of whoever is logged in allows what `needed` may do."""
        return allows(str(getattr(self.request.state, "role", READER)), needed)

    def shared(self) -> TeamShared | None:
        """What the team shares; nothing where the file cannot be read, which the log says."""
        try:
            return None if self.site.team is None else self.site.team.read()
        except SnapshotError as error:
            log.warning("%s", error)
            return TeamShared()

    def _whole(self, t: PageText) -> str:
        """The windows that hold the days of the filter, as they are shown whole; empty: none."""
        refs = self._usable.refs(self.answers.listing().refs)
        ends = dict.fromkeys(t.window(ref.label) for ref in (*refs[:1], *refs[-1:]))
        return t("filter_whole", windows=" – ".join(ends)) if ends else ""

    def _with_language(self, language: str) -> str:
        items = self.request.query_params.multi_items()
        others = [(name, value) for name, value in items if name not in {"lang", "next"}]
        return "?" + urlencode([*others, ("lang", language)])

    def render(self, template: str, code: int = 200, **values: object) -> HTMLResponse:
        """A page; a language asked for in the address is kept in a cookie."""
        t = self.words("period") if code >= 500 else self.t
        query, answers = self.request.query_params, self.answers
        rest = [item for item in query.multi_items() if item[0] not in {*FILTER_NAMES, "lang"}]
        html = self.site.templates.get_template(template).render(
            t=t,
            links=self.links,
            window_name=t.window,
            languages=[(tag, t.name_of(tag), self._with_language(tag)) for tag in t.others],
            row_sentences=lambda name, row, report: findings.row_sentences(name, row, report, t),
            use_sentences=lambda row, first, second: findings.use_sentences(row, first, second, t),
            sureness=lambda q, significant: findings.sureness(q, t, significant=significant),
            filter=self._usable,
            filter_sources=answers.sources,
            filter_days=answers.window_days,
            timezone=answers.timezone,
            filter_whole=lambda: self._whole(t),
            filter_nothing="?" + urlencode(rest),
            filter_rest=rest,
            gloss_values={"share": f"{100 * self.config.trends.false_discovery:g}"},
            search_example=lambda words: answers.vocabulary().example(words),
            headlines=self.site.headlines,
            team=self.shared(),
            channels=self.site.channels,
            login_name=self.login_name,
            may_write=self.may(ANALYST),
            typed_name=_typed_name(self.request),
            here=self._here(),
            longest_note=LONGEST_NOTE,
            can_leave=self.site.login is not None,
            has_stream=self.config.status_url is not None,
            **{"query": "", "days_alone": False, **values},
        )
        response = HTMLResponse(html, status_code=code)
        if query.get("lang") in LANGUAGES:
            self.remember(response, LANGUAGE_COOKIE, t.language)
        return response

    def remember(self, response: Response, name: str, value: str) -> None:
        """Have the browser keep a value for a year."""
        response.set_cookie(
            name,
            value,
            max_age=365 * 24 * 3600,
            path=self.root or "/",
            httponly=True,
            samesite="strict",
        )

    def _here(self) -> str:
        """The address of this page below the mount, for a form that comes back."""
        plain = self.request.url.path
        plain = plain.removeprefix(self.root) if self.root else plain
        path = quote(plain, safe="/%:@!$&'()*+,;=~-._") or "/"
        return path + (f"?{self.request.url.query}" if self.request.url.query else "")


async def _asked(request: Request) -> PageRequest:
    return PageRequest(request.app.state.site, request)


AskedPage = Annotated[PageRequest, Depends(_asked)]
"""What a route is asked."""


def _typed_name(request: Request) -> str:
    typed = request.cookies.get(NAME_COOKIE, "")
    try:
        return typed.encode("ascii").decode("unicode_escape")[:LONGEST_NAME]
    except UnicodeError:
        return ""


KEPT_S = 2.0


class Stream:
    """Asks `/status`, at most every two seconds."""

    def __init__(self, url: str | None, timeout_s: float = 1.5) -> None:
        self._url = url
        self._timeout = timeout_s
        self._kept: Fresh[dict[str, Any]] = Fresh(KEPT_S)

    def read(self) -> dict[str, Any]:
        """`{"state": "off" | "unreachable" | "live", …}`, never raises."""
        url = self._url
        return {"state": "off"} if url is None else self._kept.get(lambda: self._ask(url))

    def _ask(self, url: str) -> dict[str, Any]:
        try:
            # The server is on this machine or network: a proxy of the environment must not see it.
            with httpx.Client(timeout=self._timeout, trust_env=False) as client:
                answer = client.get(url)
            answer.raise_for_status()
            return summary(answer.json())
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, TypeError, AttributeError):
            return {"state": "unreachable"}


def summary(status: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of the panel; what the server does not say is None."""
    lag = status.get("lag") or {}
    sources = status.get("sources") or {}
    windows = status.get("windows") or {}
    return {
        "state": "live",
        "words_per_second": _number(status.get("words_per_second")),
        "lag_p50_s": _number(lag.get("p50_s")),
        "lag_p95_s": _number(lag.get("p95_s")),
        "documents": _number(status.get("documents")),
        "watermark": status.get("watermark"),
        "nodes": len(status.get("nodes") or {}),
        "snapshots": sum(1 for window in windows.values() if window.get("snapshot")),
        "sources": [
            {
                "source": str(name),
                "documents": _number(figures.get("documents")),
                "idle_s": _number(figures.get("idle_s")),
                "lag_p50_s": _number(figures.get("lag_p50_s")),
            }
            for name, figures in sorted(sources.items())
        ],
        "faults": status.get("faults") or {},
    }


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return None


ADDRESSED = {"window": "id", "word": "w", "first": "a", "second": "b"}
"""Fields that an address calls otherwise."""
PAGE_WAIT_S = 3.0
"""Seconds that a reader waits before the page says that it is being computed."""
ShowAnswer = Callable[[PageRequest, Question[Any]], Response]


def route_of(
    question: type[Question[Any]], name: str, show: ShowAnswer, path: str = "", **fixed: str
) -> Callable[..., Response]:
    """What answers at an address: its parameters are the fields of the question.

    path   the parts of the address in braces that are fields
    fixed  fields that the address does not say
    """
    fields = get_type_hints(question, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("page", keyword, annotation=AskedPage)]
    for field in inspect.signature(question).parameters.values():
        if field.name in fixed:
            continue
        kind = fields[field.name]
        if f"{{{field.name}" not in path:
            extras = (
                extra for extra in getattr(kind, "__metadata__", ()) if isinstance(extra, FieldInfo)
            )
            about = next(extras, FieldInfo()).description
            alias = ADDRESSED.get(field.name, field.name)
            kind = Annotated[kind, Query(alias=alias, description=about)]
        parameters.append(field.replace(kind=keyword, annotation=kind))

    def answered(page: PageRequest, **given: Any) -> Response:
        return show(page, question(**given, **fixed))

    answered.__name__ = name
    answered.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return answered


def page_of(
    question: type[Question[Any]],
    template: str,
    show: Callable[[PageRequest, Any], dict[str, Any]] | None = None,
) -> Callable[..., Response]:
    """A page that shows an answer: the template has `asked`, the question, and `answer`.

    show  what else the template has
    """

    def shown(page: PageRequest, asked: Question[Any]) -> Response:
        answer = asked.answer(page.answers, PAGE_WAIT_S)
        more = {} if show is None else show(page, answer)
        return page.render(template, asked=asked, answer=answer, **more)

    return route_of(question, template.partition(".")[0], shown)
