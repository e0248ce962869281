"""The search for sources with the platform's settings, and what a person decided about it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from embedding.cluster import publish_sources
from embedding.crawl.config import DiscoverConfig
from embedding.discovery.searching import Discoverer, Discovery
from embedding.kernel.config import validate
from embedding.kernel.durable import replaced
from embedding.kernel.errors import ConfigError
from embedding.settings import Settings
from embedding.sources.config import SourceConfig, add_sources, load_sources
from embedding.text.mask import mask
from embedding.text.normalise import normalise
from embedding.text.pipeline import TextPipeline


def rejected(path: Path) -> dict[str, str]:
    """Time (ISO, UTC) of the rejection by address; empty when there is no file."""
    try:
        rejections = json.loads(path.read_text(encoding="utf-8"))
        return {str(url): str(when) for url, when in rejections.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError) as error:
        raise ConfigError(f"{path}: not a JSON object of addresses and times.") from error


def reject(path: Path, urls: Sequence[str]) -> None:
    """Remember these addresses, in one atomic switch."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    known = rejected(path)
    text = json.dumps({**known, **{url: known.get(url, now) for url in urls}}, indent=1)
    with replaced(path) as file:
        file.write(text.encode() + b"\n")


@dataclass(frozen=True)
class Decided:
    """What became of proposals, by name."""

    added: tuple[str, ...]
    rejected: tuple[str, ...]


def discover(
    settings: Settings,
    seeds: Sequence[str] = (),
    *,
    file: Path | None = None,
    config: DiscoverConfig | None = None,
) -> Discovery:
    """Search from `seeds`, else from the settings', else from the sites of the sources.

    Raises ConfigError when there is nothing to start from, InputError for a bad seed.
    """
    chosen = config or settings.discover
    path = file or settings.paths.sources
    known = load_sources(path) if path.exists() or file is not None else ()
    begin = (
        tuple(seeds)
        or chosen.seeds
        or tuple(sorted({urljoin(source.url, "/") for source in known if source.on_the_web}))
    )
    if not begin:
        raise ConfigError(
            "nothing to start from: give addresses, or set discover.seeds or paths.sources."
        )
    pipeline = TextPipeline(settings.text)

    def words(text: str) -> Mapping[str, int]:
        return Counter(word for sentence in pipeline.words(text) for word in sentence)

    crawl = settings.crawl.model_copy(update={"replay_clock_url": None})
    search = Discoverer(crawl, chosen, words, lambda title: mask(normalise(title)).text)
    return asyncio.run(search.search(begin, known, list(rejected(settings.paths.rejected))))


def source_of(proposal: Mapping[str, Any]) -> SourceConfig:
    """The source that a proposal (`Candidate.to_dict`) stands for; ConfigError when it is none."""
    try:
        values = {key: proposal[key] for key in ("name", "kind", "url")}
        settings = dict(proposal.get("settings") or {})
    except (KeyError, TypeError) as error:
        raise ConfigError("a proposal has name, kind, url and settings.") from error
    return validate(SourceConfig, {**settings, "group": "discovered", **values}, str(values["url"]))


def decide(
    settings: Settings, proposals: Sequence[Mapping[str, Any]], approved: Sequence[str]
) -> Decided:
    """Add the approved ones to the sources file and remember the others as rejected.

    The pool's nodes, if any run, hear of the new sources within seconds.
    """
    wanted = [proposal for proposal in proposals if proposal["name"] in approved]
    others = [proposal for proposal in proposals if proposal["name"] not in approved]
    added = add_sources(settings.paths.sources, list(map(source_of, wanted)))
    if others:
        reject(settings.paths.rejected, [str(proposal["url"]) for proposal in others])
    if added:
        publish_sources(settings, load_sources(settings.paths.sources))
    return Decided(tuple(added), tuple(str(proposal["name"]) for proposal in others))
