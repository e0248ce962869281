"""What all routes share: reader, live stream, templates, shipped files, login."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlencode

from fastapi import Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from embedding.web import charts, findings, formats
from embedding.web.answering import ProgramAnswers, Reading, absolute
from embedding.web.answers import Answers
from embedding.web.config import WebConfig
from embedding.web.links import PagePaths
from embedding.web.live import Stream
from embedding.web.login import Login
from embedding.web.reader import Reader
from embedding.web.text import LANGUAGES, PageText, choose

_HERE = Path(__file__).parent
_FOLDERS = ("static", "vendor")
LANGUAGE_COOKIE = "yeoron_lang"
FILTERS: tuple[Callable[..., str], ...] = (
    formats.number,
    formats.rate,
    formats.chance,
    formats.change,
    formats.day,
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
    """One application's parts; `login` is None where somebody else guards the routes."""

    config: WebConfig
    reader: Reader
    answers: Answers
    stream: Stream
    login: Login | None

    @cached_property
    def static(self) -> dict[str, bytes]:
        """The shipped files by name."""
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

    @cached_property
    def programs(self) -> ProgramAnswers:
        """What programs are answered."""
        return ProgramAnswers(self.reader, self.answers)

    def reading(self, request: Request) -> Reading:
        """For whom an answer of this request is: language, and whole addresses of pages."""
        origin = f"{request.url.scheme}://{request.url.netloc}"
        return Reading(self.words(request), absolute(self.links(request), origin))

    def links(self, request: Request) -> PagePaths:
        """Addresses under the prefix of this request."""
        return PagePaths(str(request.scope.get("root_path", "")).rstrip("/"), self.version)

    def words(self, request: Request, unit: str | None = None) -> PageText:
        """The texts in the reader's language, for windows of `unit`: the store's if not given."""
        return PageText(
            choose(
                request.query_params.get("lang"),
                request.cookies.get(LANGUAGE_COOKIE),
                request.headers.get("accept-language", ""),
            ),
            self.reader.unit() if unit is None else unit,
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
            said_row=lambda name, row, report: findings.said_of_row(name, row, report, t),
            said_use=lambda row, first, second: findings.said_of_use(row, first, second, t),
            sureness=lambda q, significant: findings.sureness(q, t, significant=significant),
            gloss_values={"share": f"{100 * self.config.trends.false_discovery:g}"},
            can_leave=self.login is not None,
            has_stream=self.config.status_url is not None,
            **{"query": "", **values},
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


def _with_language(request: Request, language: str) -> str:
    """The query string of this page in another language."""
    kept = [(k, v) for k, v in request.query_params.multi_items() if k not in {"lang", "next"}]
    return "?" + urlencode([*kept, ("lang", language)])
