"""What the nodes' crawlers report of their sources: counts by reason, and alarms that stand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from embedding.crawl.origins import doubtful

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LONGEST = 300
"""Characters of a sentence that are passed on."""


@dataclass(frozen=True)
class SourceFigures:
    """One source as the node that reads it reports it.

    faults   by reason (`commands/reasons.py`) what failed, was left out or dated by a guess, and
    alarms   alarms raised by event, both since its crawler started
    fetched  pages read
    alarm    `event`, `since`, `sentence` of the alarm that stands, None without
    """

    node: str
    source: str
    faults: dict[str, int]
    alarms: dict[str, int]
    fetched: int
    alarm: dict[str, str] | None


def crawl_figures(nodes: Mapping[str, Mapping[str, Any]]) -> Iterator[SourceFigures]:
    """Figures from the `nodes` of a status; a node that is gone reports nothing any more."""
    for name, node in nodes.items():
        sources = (node.get("report") or {}).get("sources")
        if node.get("state") == "gone" or not isinstance(sources, dict):
            continue
        for source, row in sources.items():
            if isinstance(row, dict):
                yield SourceFigures(
                    name,
                    str(source),
                    _counts(row.get("errors")) | doubtful(_counts(row.get("dated"))),
                    _counts(row.get("alarms")),
                    _count(row.get("fetched")),
                    _alarm(row.get("alarm")),
                )


def open_alarms(nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """The alarms that stand, by source: `node`, `event`, `since`, `sentence`."""
    return {
        each.source: {"node": each.node, **each.alarm}
        for each in crawl_figures(nodes)
        if each.alarm is not None
    }


def source_faults(nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """By source and reason, what failed, was left out or was dated by a guess, at all nodes."""
    found: dict[str, Counter[str]] = {}
    for each in crawl_figures(nodes):
        found.setdefault(each.source, Counter()).update(each.faults)
    return {source: dict(counts.most_common()) for source, counts in sorted(found.items())}


def _alarm(value: Any) -> dict[str, str] | None:
    if not isinstance(value, dict) or not _NAME.fullmatch(str(value.get("event"))):
        return None
    return {key: str(value.get(key, ""))[:_LONGEST] for key in ("event", "since", "sentence")}


def _counts(value: Any) -> dict[str, int]:
    pairs = value.items() if isinstance(value, dict) else ()
    return {str(name): _count(n) for name, n in pairs if _NAME.fullmatch(str(name))}


def _count(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0
