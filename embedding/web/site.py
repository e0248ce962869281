"""What all routes share: reader, live stream, templates, shipped files, login."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import httpx
from fastapi import Depends, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from embedding.ask.answers import Answers
from embedding.ask.reader import Reader
from embedding.kernel.errors import KeyedError, SnapshotError
from embedding.show.team import LONGEST_NAME, LONGEST_NOTE, TeamShared, TeamStore
from embedding.trends.recent import Fresh
from embedding.web import charts, findings, formats
from embedding.web.answering import Reading, absolute
from embedding.web.config import WebConfig
from embedding.web.filters import FILTER_NAMES, PageFilter
from embedding.web.headlines import Headlines
from embedding.web.links import PagePaths
from embedding.web.login import Login
from embedding.web.text import LANGUAGES, PageText, choose, unit_shown
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
        """Jinja with autoescape; an unknown name in a template is an error."""
        environment = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        for filter_ in FILTERS:
            environment.filters[filter_.__name__] = filter_
        environment.globals.update(charts=charts)
        environment.filters["tojson_attribute"] = lambda value: json.dumps(
            value, ensure_ascii=False
        )
        return environment

    @property
    def reader(self) -> Reader:
        return self.answers.reader

    def reading(self, request: Request) -> Reading:
        """For whom an answer of this request is: language, and whole addresses of pages."""
        origin = f"{request.url.scheme}://{request.url.netloc}"
        return Reading(self.words(request), absolute(self.links(request), origin))

    def links(self, request: Request) -> PagePaths:
        root = str(request.scope.get("root_path", "")).rstrip("/")
        return PagePaths(root, self.version, self._usable(request).pairs)

    def filter(self, request: Request) -> PageFilter:
        """What this request asks to see alone; raises KeyedError."""
        return PageFilter.of(request.query_params)

    @staticmethod
    def login_name(request: Request) -> str:
        """The name of whoever is logged in, as the login before this page says it; else empty."""
        return str(getattr(request.state, "login_name", "") or "")

    @staticmethod
    def may(request: Request, needed: str) -> bool:
        """Whether the role of whoever is logged in allows what `needed` may do."""
        return allows(str(getattr(request.state, "role", READER)), needed)

    def shared(self) -> TeamShared:
        """What the team shares; nothing where the file cannot be read, which the log says."""
        if self.team is None:
            return TeamShared()
        try:
            return self.team.read()
        except SnapshotError as error:
            log.warning("%s", error)
            return TeamShared()

    @staticmethod
    def _usable(request: Request) -> PageFilter:
        """The same, with nothing left out where it cannot be used: its error has links, too."""
        try:
            return PageFilter.of(request.query_params)
        except KeyedError:
            return PageFilter()

    def _whole(self, request: Request, t: PageText) -> str:
        """The windows that hold the days of the filter, as they are shown whole; empty: none."""
        refs = self._usable(request).refs(self.reader.listing().refs)
        ends = dict.fromkeys(t.window(ref.label) for ref in (*refs[:1], *refs[-1:]))
        return t("filter_whole", windows=" – ".join(ends)) if ends else ""

    def words(self, request: Request, unit: str | None = None) -> PageText:
        """The texts in the reader's language, for windows of `unit`: the store's if not given."""
        return PageText(
            choose(
                request.query_params.get("lang"),
                request.cookies.get(LANGUAGE_COOKIE),
                request.headers.get("accept-language", ""),
            ),
            unit_shown(self.reader) if unit is None else unit,
        )

    def render(
        self, request: Request, template: str, code: int = 200, **values: object
    ) -> HTMLResponse:
        """A page; a language asked for in the address is kept in a cookie."""
        t, links = self.words(request, "period" if code >= 500 else None), self.links(request)
        html = self.templates.get_template(template).render(
            t=t,
            links=links,
            window_name=t.window,
            languages=[(one, t.name_of(one), _with_language(request, one)) for one in t.others],
            row_sentences=lambda name, row, report: findings.row_sentences(name, row, report, t),
            use_sentences=lambda row, first, second: findings.use_sentences(row, first, second, t),
            sureness=lambda q, significant: findings.sureness(q, t, significant=significant),
            filter=self._usable(request),
            filter_sources=self.reader.sources,
            filter_days=self.reader.days,
            timezone=self.reader.timezone,
            filter_whole=lambda: self._whole(request, t),
            filter_nothing="?" + urlencode(_other(request)),
            filter_rest=_other(request),
            gloss_values={"share": f"{100 * self.config.trends.false_discovery:g}"},
            search_example=lambda words: self.reader.vocabulary().example(words),
            headlines=self.headlines,
            team=None if self.team is None else self.shared(),
            channels=self.channels,
            login_name=self.login_name(request),
            may_write=self.may(request, ANALYST),
            typed_name=_typed_name(request),
            here=_here(request),
            longest_note=LONGEST_NOTE,
            can_leave=self.login is not None,
            has_stream=self.config.status_url is not None,
            **{"query": "", "days_alone": False, **values},
        )
        response = HTMLResponse(html, status_code=code)
        if request.query_params.get("lang") in LANGUAGES:
            response.set_cookie(
                LANGUAGE_COOKIE,
                t.language,
                max_age=365 * 24 * 3600,
                path=links.root or "/",
                httponly=True,
                samesite="strict",
            )
        return response


async def _site_of(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


PageSite = Annotated[Site, Depends(_site_of)]
"""Of the application that a route is asked by."""


def _typed_name(request: Request) -> str:
    kept = request.cookies.get(NAME_COOKIE, "")
    try:
        return kept.encode("ascii").decode("unicode_escape")[:LONGEST_NAME]
    except UnicodeError:
        return ""


def _here(request: Request) -> str:
    """The address of this page below the mount, for a form that comes back."""
    root, path = str(request.scope.get("root_path", "")), request.url.path
    plain = path.removeprefix(root) if root else path
    path = quote(plain, safe="/%:@!$&'()*+,;=~-._") or "/"
    return path + (f"?{request.url.query}" if request.url.query else "")


def _other(request: Request) -> list[tuple[str, str]]:
    """What the address says beside the filter."""
    items = request.query_params.multi_items()
    return [(name, value) for name, value in items if name not in {*FILTER_NAMES, "lang"}]


def _with_language(request: Request, language: str) -> str:
    kept = [(k, v) for k, v in request.query_params.multi_items() if k not in {"lang", "next"}]
    return "?" + urlencode([*kept, ("lang", language)])


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
        "snapshots": sum(1 for one in windows.values() if one.get("snapshot")),
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
