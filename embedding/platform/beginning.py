"""`yeoron init`: sources.toml and yeoron.toml for one's own sites; each answer is checked."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from embedding.crawl.config import CrawlConfig, DiscoverConfig
from embedding.crawl.fetcher import Fetcher
from embedding.discovery.searching import Discoverer
from embedding.kernel.config import toml_of, validate
from embedding.kernel.durable import replaced
from embedding.kernel.errors import ConfigError, FetchError
from embedding.settings import FIRST_SETTINGS, Settings
from embedding.sources.config import SourceConfig, load_sources, source_table
from embedding.text.tokenizers import AUTO_TOKENIZER

SOURCES_FILE, SETTINGS_FILE = "sources.toml", "yeoron.toml"
LANGUAGE_TOKENIZERS = {"ko": AUTO_TOKENIZER, "": AUTO_TOKENIZER}
"""Tokenizer that is proposed by language; `script` for the others."""
LANGUAGE_ZONES = {"ko": "Asia/Seoul"}
"""Time zone of windows by language; UTC for the others."""
_NAME = re.compile(r"[\w.-]{1,40}")
_KINDS = ("feed", "sitemap", "page")
"""The better first: a feed says when its articles appeared, and costs one request."""


class _Budget(DiscoverConfig):
    """How far a site is searched for its feed."""

    pages: ClassVar = 4
    depth: ClassVar = 1
    candidates: ClassVar = 3
    samples: ClassVar = 1
    least_new: ClassVar = 0.0


@dataclass
class Beginning:
    """The answers so far."""

    name: str
    sources: list[SourceConfig] = field(default_factory=list)
    language: str = "ko"
    tokenizer: str = AUTO_TOKENIZER
    window: str = "day"
    timezone: str = "UTC"
    home: Path = Path("var")
    contact: str = ""


def check_new(folder: Path) -> None:
    """Raises ConfigError where one of the two files is there: nothing is written over."""
    for name in (SETTINGS_FILE, SOURCES_FILE):
        if (folder / name).exists():
            raise ConfigError(
                f"{folder / name}: is there already and is not written over; move it, or begin in "
                "another folder."
            )


def check_name(name: str) -> str:
    """The name without space around it; ConfigError for what is none."""
    if not _NAME.fullmatch(name.strip()):
        raise ConfigError(f"name {name[:60]!r}: at most 40 letters, digits, . - _ are accepted.")
    return name.strip()


def check_language(code: str) -> str:
    """A code of two letters, or nothing where languages are mixed."""
    if not re.fullmatch(r"(?:[a-z]{2})?", code.strip()):
        raise ConfigError(f"language {code[:20]!r}: two letters such as ko, or mixed, is accepted.")
    return code.strip()


def checked(path: str, value: str) -> str:
    """A value of the setting `section.name`; ConfigError where it is none."""
    section, name = path.split(".")
    kind: Any = Settings.model_fields[section].annotation
    return str(getattr(validate(kind, {name: value.strip()}, "init"), name))


def check_home(home: Path) -> Path:
    """A folder that is there and can be written, or can be made."""
    target = home.expanduser().absolute()
    nearest = next(folder for folder in (target, *target.parents) if folder.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise ConfigError(f"{home}: {nearest} cannot be written; a folder that can be is accepted.")
    return home


def find_source(url: str, crawl: CrawlConfig, taken: Sequence[str]) -> tuple[SourceConfig, str]:
    """What is read of an address, and a sentence about it: it answers, robots.txt allows it, and it
    is or names a listing.

    taken  names that other sources have

    Raises ConfigError, one sentence, where it cannot be read.
    """
    url = url.strip()
    if "://" not in url:
        url = f"https://{url}"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{url[:200]}: an http or https address is accepted.")
    config = crawl.model_copy(update={"replay_clock_url": None})
    return asyncio.run(_look(url, config, taken))


async def _look(url: str, crawl: CrawlConfig, taken: Sequence[str]) -> tuple[SourceConfig, str]:
    await _ask_robots(url, crawl)
    search = Discoverer(
        crawl, _Budget(requests=30), lambda text: dict.fromkeys(text.split(), 1), str
    )
    search_result = await search.search([url])
    listings = [listing for listing in search_result.candidates if listing.kind in _KINDS]
    if not listings:
        why = next(iter(search_result.dropped.values()), "")
        refused = ", ".join(sorted(search_result.refused))
        because = why or (f"it failed with {refused}" if refused else "none is named there")
        raise ConfigError(f"{url}: no feed, sitemap or list of articles was found: {because}.")
    best = min(listings, key=lambda listing: (_KINDS.index(listing.kind), listing.url != url))
    values = {**best.settings, "name": _free(urlsplit(url).hostname or "site", taken)}
    source = validate(SourceConfig, {**values, "kind": best.kind, "url": best.url}, url)
    return source, f"{best.kind} {best.url}, {best.listed} articles"


async def _ask_robots(url: str, crawl: CrawlConfig) -> None:
    fetcher = Fetcher(crawl)
    try:
        verdict = await fetcher.robots.verdict(url, None)
    except FetchError as error:
        raise ConfigError(f"{url}: cannot be reached: {error}") from error
    finally:
        await fetcher.close()
    if verdict.trouble:
        raise ConfigError(
            f"{url}: cannot be reached, or its robots.txt cannot be read; look at the address, or "
            "write sources.toml yourself and try it with `yeoron sources check`."
        )
    if not verdict.allowed:
        raise ConfigError(f"{url}: its robots.txt forbids it; another address is accepted.")


def _free(host: str, taken: Sequence[str]) -> str:
    name = re.sub(r"[^\w.-]", "-", host.removeprefix("www."))[:70]
    number = 1
    while (made := name if number == 1 else f"{name}-{number}") in taken:
        number += 1
    return made


_OTHERS = "# Others that many set, with their defaults; docs/reference/settings.md has all.\n"


def write_beginning(folder: Path, answers: Beginning) -> tuple[Path, Path]:
    """Write both files, the settings last; raises ConfigError where one is there or is wrong."""
    check_new(folder)
    settings, sources = folder / SETTINGS_FILE, folder / SOURCES_FILE
    name = answers.name.encode("ascii", "replace").decode()
    contact = f"; {answers.contact}" if answers.contact else ""
    sections: dict[str, dict[str, Any]] = {
        "paths": {"home": str(answers.home), "sources": SOURCES_FILE},
        "text": {"tokenizer": answers.tokenizer},
        "server": {"window": answers.window, "timezone": answers.timezone},
        "crawl": {"user_agent": f"Yeoron/0.1 ({name}{contact})"},
    }
    validate(Settings, sections, SETTINGS_FILE)
    with replaced(sources) as file:
        tables = "\n".join(source_table(source) for source in answers.sources)
        file.write(f"# The sources of {answers.name}.\n\n{tables}".encode())
        file.flush()
        load_sources(Path(file.name))
    with replaced(settings) as file:
        defaults = Settings.model_construct().model_dump(mode="json")
        others = "".join(
            f"# {path} = {json.dumps(defaults[section][setting], ensure_ascii=False)}\n"
            for path in FIRST_SETTINGS
            for section, _, setting in [path.partition(".")]
            if section not in sections
        )
        file.write(f"# {answers.name}\n\n{_OTHERS}{others}\n{toml_of(sections)}".encode())
    return settings, sources
