"""What comes in from a node as JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from pydantic import ValidationError

from embedding.crawl.origins import doubtful
from embedding.exchange.config import Setup

if TYPE_CHECKING:
    from embedding.server.figures.meters import Meters


def read_report(report: dict[str, Any]) -> tuple[dict[str, int] | None, float | None]:
    """`sources.*.pending` and `event_now` of a node's report; anything else is only shown."""
    sources = report.get("sources")
    pending: dict[str, int] | None = {} if isinstance(sources, dict) else None
    for name, figures in (sources if isinstance(sources, dict) else {}).items():
        count = figures.get("pending") if isinstance(figures, dict) else None
        if type(count) is int and count >= 0 and pending is not None:
            pending[str(name)] = count
    event_now = report.get("event_now")
    if isinstance(event_now, (int, float)) and abs(event_now) < 1e12:
        return pending, float(event_now)
    return pending, None


def read_weights(reports: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Weight in training by source, the mean over the nodes that report weights; else empty."""
    weights = (report.get("source_weights") for report in reports)
    reported = (pair for each in weights if isinstance(each, dict) for pair in each.items())
    return dict(sorted(_means(reported, below=1e12).items()))


def read_held_out(reports: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Figures of held-out text by name, the mean over the nodes that report them; of plain text,
    of which nothing is held out, the loss of what was learnt last.

    Of a corpus those of the last window that was rehearsed to the end: the next one is under way.
    """
    names = {
        "held_out": "held_out_loss",
        "loss": "loss",
        "held_out_untrained": "held_out_untrained",
        "held_out_unigram": "held_out_unigram",
    }
    figures = []
    for report in reports:
        rehearsed = report.get("rehearsed") or report.get("rehearsal")
        if isinstance(rehearsed, dict):
            plain = {"loss": report.get("loss")} if rehearsed.get("plain") else {}
            figures.append(rehearsed | plain)
    means = _means(
        ((name, each.get(key)) for each in figures for name, key in names.items()), below=1e6
    )
    return means if {"held_out", "loss"} & set(means) else {}


def read_setup(reports: Iterable[dict[str, Any]]) -> dict[str, object]:
    """What the nodes that report it train with (`Setup`), by name; else empty.

    Where they differ all values are named, as `fp16, onebit`.
    """
    reported: list[dict[str, object]] = []
    for report in reports:
        try:
            reported.append(Setup.model_validate(report.get("setup")).model_dump(mode="json"))
        except ValidationError:
            continue
    return {
        name: _one([each[name] for each in reported]) for name in Setup.model_fields if reported
    }


def lasting(reports: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What a snapshot needs of each node's report, where it has it: its setup and its weights.

    A checkpoint keeps this, so that a window cut after a restart, before nodes report again, says
    what they trained with.
    """
    reported = {
        node: {"setup": read_setup([report]), "source_weights": read_weights([report])}
        for node, report in reports.items()
    }
    kept = {
        node: {name: value for name, value in each.items() if value}
        for node, each in reported.items()
    }
    return {node: each for node, each in kept.items() if each}


def _means(reported: Iterable[tuple[object, object]], *, below: float) -> dict[str, float]:
    """The mean of what was reported by each name, of numbers above 0 and below this."""
    values: dict[str, list[float]] = {}
    for name, value in reported:
        if isinstance(value, (int, float)) and 0 < value < below:
            values.setdefault(str(name), []).append(float(value))
    return {name: sum(each) / len(each) for name, each in values.items()}


def _one(values: list[object]) -> object:
    alike = all(value == values[0] for value in values)
    return values[0] if alike else ", ".join(sorted({str(value) for value in values}))


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
    faults: dict[str, Counter[str]] = {}
    for each in crawl_figures(nodes):
        faults.setdefault(each.source, Counter()).update(each.faults)
    return {source: dict(counts.most_common()) for source, counts in sorted(faults.items())}


def _alarm(value: Any) -> dict[str, str] | None:
    if not isinstance(value, dict) or not _NAME.fullmatch(str(value.get("event"))):
        return None
    return {key: str(value.get(key, ""))[:_LONGEST] for key in ("event", "since", "sentence")}


def _counts(value: Any) -> dict[str, int]:
    pairs = value.items() if isinstance(value, dict) else ()
    return {str(name): _count(n) for name, n in pairs if _NAME.fullmatch(str(name))}


def _count(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0


def topology(
    reports: Mapping[str, Mapping[str, Any]],
    meters: Meters,
    shards: Sequence[Mapping[str, Any]] = (),
    groups: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """JSON-safe; the server's part is that of all its shards, and of all server groups.

    kind        topology of the nodes, ps when none has reported one
    bytes       by transport: `server` as the server meters both directions, `groups` between server
                groups, `allreduce` and `host` (between nodes and the aggregator of their group) as
                the nodes sent them
    rows        by transport: those that the server took and sent; those of blocks that were summed
                by all-reduce; those that reached an aggregator
    dense_rows  by table, rows that go by all-reduce
    density     by table, mean share of the known rows that a block moves
    regrouped, lost_tokens, from_server   of nodes that all-reduce (docs/concepts/topologies.md), as
                as the one reports that has seen most
    """
    topologies = [report["topology"] for report in reports.values() if "topology" in report]
    topologies = [each for each in topologies if isinstance(each, dict)]
    rows = {"server": meters.rows_in + meters.rows_out + total(shards, "rows_in", "rows_out")}
    sent = {"server": meters.bytes_in + meters.bytes_out + total(shards, "bytes_in", "bytes_out")}
    if groups:
        rows["server"] += total(groups, "node_rows_in", "node_rows_out")
        # What groups merge is added like pushes.
        rows["server"] -= total(groups, "rows_in")
        rows["groups"] = total(groups, "rows_in", "rows_out")
        sent["server"] += total(groups, "node_bytes_in", "node_bytes_out")
        sent["groups"] = total(groups, "bytes_in", "bytes_out")
    for each in topologies:
        _add_sent(rows, each.get("rows"))
        _add_sent(sent, each.get("bytes"))
    densities = [each["density"] for each in topologies if isinstance(each.get("density"), dict)]
    tables = sorted({table for each in densities for table in each})
    seen = {
        name: max((int(each[name]) for each in topologies if is_number(each.get(name))), default=0)
        for name in ("regrouped", "lost_tokens", "from_server")
    }
    return {
        **seen,
        "kind": str(topologies[0].get("kind", "ps")) if topologies else "ps",
        "groups": len({str(each["group"]) for each in topologies if "group" in each}),
        "bytes": sent,
        "rows": rows,
        "dense_rows": next((each["dense_rows"] for each in topologies if "dense_rows" in each), {}),
        "density": {
            table: sum(known) / len(known)
            for table in tables
            if (known := [float(each[table]) for each in densities if is_number(each.get(table))])
        },
    }


def total(parts: Sequence[Mapping[str, Any]], *figures: str) -> int:
    """The sum of figures over all shards, or over all groups that follow."""
    values: list[Any] = [part.get(figure) for part in parts for figure in figures]
    return sum(int(each) for each in values if is_number(each))


def _add_sent(totals: dict[str, int], part: object) -> None:
    """What the server meters itself is not added again."""
    if isinstance(part, dict):
        for way, n in part.items():
            if way != "server" and is_number(n):
                totals[str(way)] = totals.get(str(way), 0) + int(n)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a figure is a number; a truth value is none, and NaN neither."""
    return type(value) in (int, float) and value == value
