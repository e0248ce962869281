"""What a source is: one `[[source]]` of sources.toml; and reading that file, and adding to it."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from embedding.kernel.config import (
    WITH_SECRETS,
    Config,
    Secret,
    ZoneName,
    read_toml,
    validate,
)
from embedding.kernel.durable import replaced
from embedding.kernel.errors import ConfigError
from embedding.sources.kinds import SOURCES

_WEB = ("http", "https")
AUTO = "auto"
"""The value of `answers` by which lists are found by their shape."""


def _check_cookie(value: SecretStr) -> SecretStr:
    if not re.fullmatch(r"[^\x00-\x1f\x7f;]*", value.get_secret_value()):
        raise ValueError("a cookie without control characters and semicolons is accepted")
    return value


class SourceConfig(Config):
    """One source. Which settings a kind understands its traits say (`kinds.py`);
    others are refused.

    `items id link title time text author` say where things are inside a listing: CSS selectors
    for `page` and `rendered` (all but `items` relative to one item), dotted JSON names for
    `comments` and `replayed`.
    """

    name: str = Field(pattern=r"^[\w.-]{1,80}$")
    """Unique short name, by which reports and trends call the source."""
    kind: Annotated[str, AfterValidator(SOURCES.check)]
    """feed, sitemap, page, rendered, comments, mastodon, redis, kafka or replayed, or one that
    another package adds (docs/extending.md)."""
    url: str = ""
    """Address of the listing (http or https), of a server (redis://host:6379/0, kafka://host:9092);
    every kind but `replayed` needs it."""
    group: str = Field("default", pattern=r"^[\w.-]{1,80}$")
    """Sources of one group are scheduled together and shown together."""
    language: str | None = "ko"
    """ISO 639-1 code of the texts, such as ko; empty when mixed."""
    timezone: ZoneName = "Asia/Seoul"
    """Zone of times that are written without one."""
    undated: Literal["unknown", "fetched"] = "unknown"
    """What a text without a readable date counts for: `unknown`, no window; `fetched`, the time at
    which it was fetched, for a source that shows what is new and no dates."""
    every: float = Field(30.0, gt=0)
    """Seconds between two polls of the listing while it keeps changing."""
    weight: float = Field(1.0, gt=0, le=1000)
    """How much the freshness of this source counts, where not all can be polled often enough."""
    rate: float | None = Field(None, gt=0)
    """Most requests per second to one host for this source; null: the crawler's."""
    max_items: int = Field(500, gt=0)
    """Most items taken from one poll."""
    links: str | None = None
    """Regular expression that an article's address must match (searched, not anchored)."""
    pages: int = Field(10, gt=0)
    """Most listing pages, child sitemaps, cursors or scrolls read in one poll."""
    items: str | None = None
    """Selector of one item (page, rendered), or dotted name of the list (comments)."""
    id: str | None = None
    """Where an item's own id is: `selector@attribute` (rendered), dotted name (comments)."""
    link: str | None = None
    """Where an item's address is; for comments the address of the page they belong to."""
    title: str | None = None
    """Where an item's title is."""
    time: str | None = None
    """Where an item's time is; for selectors a `datetime` attribute wins over the text."""
    text: str | None = None
    """Where an item's text is; a rendered source without it lists links to articles."""
    author: str | None = None
    """Where an item's author is; only a keyed hash of it leaves the adapter."""
    next: str | None = None
    """Selector of the link to the next page (page), dotted name of the cursor (comments)."""
    cursor: str | None = None
    """Query parameter that carries the cursor (comments)."""
    order: Literal["newest", "oldest"] = "newest"
    """Which comments come first; with `oldest` the next poll goes on at the last cursor."""
    answers: str | None = None
    """Which JSON answers of a rendered page hold its items: a regular expression of their
    addresses, or `auto`, which finds them by their shape; null reads the shown page. With an
    expression `items id link …` are dotted names in the answer (found by shape when left out);
    with `auto` they are selectors, used where no answer has the shape."""
    stream: str | None = Field(None, min_length=1, max_length=250)
    """Key of a Redis stream (redis), or name of a topic (kafka)."""
    password: Secret | None = None
    """Password of a Redis server."""
    path: Path | None = None
    """Dated JSONL file (plain, .gz or .xz) that a `replayed` source plays back."""
    proxy: Secret | None = None
    """Proxy for this source, http or https, e.g. http://proxy.example:3128."""
    cookies: dict[str, Annotated[Secret, AfterValidator(_check_cookie)]] = Field(
        default_factory=dict
    )
    """Cookies sent to this source's own host; of a rendered page only with requests that read and
    that its own frames make."""
    post_cookies: bool = False
    """Whether POST requests of a rendered page carry them, too: some boards ask for items that way.
    A script of the page can then write in your name."""

    @property
    def on_the_web(self) -> bool:
        """Whether it is fetched by HTTP, so that robots.txt has a word."""
        return urlsplit(self.url).scheme in _WEB

    @property
    def proxy_address(self) -> str | None:
        return None if self.proxy is None else self.proxy.get_secret_value()

    @property
    def cookie_values(self) -> dict[str, str]:
        return {name: value.get_secret_value() for name, value in self.cookies.items()}

    @property
    def named_answers(self) -> bool:
        """Whether `items` is a name in JSON; there it may be empty: the answer itself."""
        return self.answers not in (None, AUTO) and self.items is not None

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("kind") in SOURCES:
            return {**SOURCES.traits(data["kind"]).defaults, **data}
        return data

    @field_validator("links", "answers")
    @classmethod
    def _regex(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ValueError(f"not a regular expression ({error})") from error
        return value

    @field_validator("language")
    @classmethod
    def _code(cls, value: str | None) -> str | None:
        if value and not re.fullmatch(r"[a-z]{2}", value):
            raise ValueError("not a code of two letters such as ko, nor empty for mixed texts")
        return value or None

    @field_validator("url")
    @classmethod
    def _address(cls, value: str, info: ValidationInfo) -> str:
        if value:
            kind = info.data.get("kind")
            check_address(value, SOURCES.traits(kind).schemes if kind else _WEB)
        return value

    @field_validator("proxy")
    @classmethod
    def _proxy_address(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and value.get_secret_value():
            check_address(value.get_secret_value())
        return value

    @model_validator(mode="after")
    def _complete(self) -> SourceConfig:
        traits = SOURCES.traits(self.kind)
        if "path" in traits.settings:
            if self.path is None:
                raise ValueError(f"a {self.kind} source needs `path`, a dated JSONL file")
            return self
        if not self.url:
            raise ValueError(f"a {self.kind} source needs `url`, an http or https address")
        if urlsplit(self.url).username is not None:
            raise ValueError("a name and password in `url` are never sent; take them out")
        traits.check(self)
        return self


def check_address(url: str, schemes: Sequence[str] = _WEB) -> None:
    """Raise ValueError, which says why, for what is no address of these with a host."""
    parts = urlsplit(url)
    if parts.scheme not in schemes or not parts.hostname:
        article = "an" if schemes[0].startswith("http") else "a"
        raise ValueError(f"not {article} {' or '.join(schemes)} address")
    if any(c.isspace() for c in url):
        raise ValueError("an address without spaces is expected")
    if parts.port == 0:
        raise ValueError("port 0 cannot be reached")


def load_sources(path: Path | str) -> tuple[SourceConfig, ...]:
    """Read `[[source]]` tables; relative `path` settings are relative to the file.

    Raises ConfigError that names the file, the source and what is accepted.
    """
    file = Path(path)
    data = read_toml(file)
    unknown = sorted(set(data) - {"source"})
    if unknown:
        raise ConfigError(f"{file}: unknown table {unknown[0]!r}; only [[source]] is accepted.")
    tables = data.get("source", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigError(f"{file}: `source` must be written as [[source]] tables.")
    sources: dict[str, SourceConfig] = {}
    for position, table in enumerate(tables, start=1):
        source = _read(file, position, table)
        if source.name in sources:
            raise ConfigError(f"{file}: source {source.name!r} is named twice; names are unique.")
        sources[source.name] = source
    if not sources:
        raise ConfigError(f"{file}: no [[source]] in it; at least one is needed.")
    return tuple(sources.values())


def _read(file: Path, position: int, table: dict[str, Any]) -> SourceConfig:
    where = f"{file}: source {table.get('name', f'number {position}')!r}"
    kind = str(table.get("kind"))
    if kind not in SOURCES:
        raise ConfigError(f"{where}: kind {kind!r} is unknown; accepted are {', '.join(SOURCES)}.")
    accepted = SOURCES.traits(kind).settings
    unknown = [key for key in table if key not in accepted]
    if unknown:
        raise ConfigError(
            f"{where}: unknown setting {unknown[0]!r}; a {kind} source accepts "
            f"{', '.join(accepted)}."
        )
    source = validate(SourceConfig, table, where)
    if source.path is not None and not source.path.is_absolute():
        source = source.model_copy(update={"path": file.parent / source.path})
    return source


def add_sources(path: Path, sources: Sequence[SourceConfig]) -> list[str]:
    """Append `[[source]]` tables; names of those that were not there already (by name or address).

    Everything else in the file is kept, comments too. Raises ConfigError when the result would be
    no valid file; then nothing has changed.
    """
    with _locked(path):
        known = load_sources(path)
        names, urls = {source.name for source in known}, {s.url for s in known if s.url}
        fresh = [new for new in sources if new.name not in names and new.url not in urls]
        if not fresh:
            return []
        text = path.read_text(encoding="utf-8").rstrip("\n") + "\n"
        text += "".join("\n" + source_table(source) for source in fresh)
        with replaced(path) as file:
            file.write(text.encode())
            file.flush()
            load_sources(Path(file.name))
        return [source.name for source in fresh]


def source_table(source: SourceConfig) -> str:
    """One `[[source]]` with what differs from the defaults."""
    values = source.model_dump(mode="json", exclude_defaults=True, context=WITH_SECRETS)
    # What has a default and is None is written as nothing: a language that is mixed.
    lines = [f"{key} = {_value('' if value is None else value)}" for key, value in values.items()]
    return "\n".join(["[[source]]", *lines]) + "\n"


def _value(value: object) -> str:
    """A TOML value; JSON's strings and numbers are TOML's too, apart from DEL."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_value(k)} = {_value(v)}" for k, v in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Nobody else adds to the file meanwhile: its folder is locked, for the file is replaced."""
    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; a sources.toml is expected.") from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
