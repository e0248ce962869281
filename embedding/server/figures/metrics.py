"""The status in Prometheus' text format, from a registry of its own on each request.

Names follow prometheus.io/docs/practices/naming: `yeoron_`, base units, `_total` for counters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from embedding import __version__
from embedding.server.figures.meters import Meters
from embedding.server.figures.reports import crawl_figures, is_number
from embedding.server.parts import SERVER_PARTS

Family = CounterMetricFamily | GaugeMetricFamily
Figures = Mapping[str, tuple[str | Callable[[Any], Any], str]]
"""By name of a metric its figure, a key (behind those that lead to it, with dots between) or a
function of what has it, and its help."""
MoreMetrics = Callable[[Mapping[str, Any]], Iterator[Metric]]
"""Metrics from a status."""


def plain(kind: type[Family], figures: Figures, of: Mapping[str, Any]) -> Iterator[Family]:
    """Metrics without labels; of a figure that is None there is none."""
    for name, (figure, text) in figures.items():
        value = _read(of, figure)
        if value is not None:
            yield kind(f"yeoron_{name}", text, value=value)


def by(
    label: str, kind: type[Family], figures: Figures, things: Mapping[Any, Any]
) -> Iterator[Family]:
    """Metrics with a sample for each thing, by the value of the label; names begin with it."""
    for name, (figure, text) in figures.items():
        values = ((of, _read(thing, figure)) for of, thing in things.items())
        yield labelled(kind, f"{label}_{name}", text, label, values)


def labelled(
    kind: type[Family], name: str, text: str, labels: str, values: Iterable[tuple[object, Any]]
) -> Family:
    """A metric of (value of the label, figure); what is no number is left out.

    labels  their names; of several the value is a tuple
    """
    family = kind(f"yeoron_{name}", text, labels=labels.split())
    for of, figure in values:
        if is_number(figure):
            of_labels = of if isinstance(of, tuple) else (of,)
            family.add_metric([str(each) for each in of_labels], figure)
    return family


def _read(thing: Mapping[str, Any], figure: str | Callable[[Any], Any]) -> Any:
    if not isinstance(figure, str):
        return figure(thing)
    *path, last = figure.split(".")
    for name in path:
        thing = thing[name]
    return thing.get(last)


_BUCKETS = (0, 1, 2, 4, 8, 16, 32, 64, 128)

_TOTALS: Figures = {
    "tokens": ("tokens", "Fresh tokens learnt"),
    "replayed_tokens": ("replayed_tokens", "Tokens learnt again from replay memories"),
    "documents": ("documents", "Documents learnt"),
    "pushes": ("pushes", "Pushes applied"),
    "duplicate_pushes": ("duplicates", "Pushes that had been taken before, counted once"),
    "dropped_pushes": ("dropped_pushes", "Pushes whose rows came too late for the policy"),
    "dropped_tokens": ("dropped_tokens", "Tokens of pushes whose rows came too late"),
    "dropped_rows": ("dropped_rows", "Rows of pushes whose word had been evicted"),
    "dropped_counts": ("dropped_counts", "Occurrences of words evicted too long ago to name"),
    "pushed_rows": ("rows_in", "Rows received in pushes"),
    "pulled_rows": ("rows_out", "Rows sent in pulls"),
    "received_bytes": ("bytes_in", "Bytes of messages received from nodes"),
    "sent_bytes": ("bytes_out", "Bytes of messages sent to nodes"),
    "checkpoints": ("checkpoints", "Checkpoints completed"),
    "checkpoint_failures": ("checkpoint_failures", "Checkpoints that could not be written"),
}
"""Of Meters."""

_GAUGES: Figures = {
    "vocabulary_words": ("vocabulary", "Words that have a row"),
    "vocabulary_candidates": ("candidates", "Words counted without a row"),
    "words_per_second": ("words_per_second", "Tokens learnt a second, over ten seconds"),
    "uptime_seconds": ("uptime_s", "Seconds since the start"),
    "snapshots": (lambda s: len(s["snapshots"]), "Snapshots published"),
    "open_windows": (
        lambda s: sum(window["snapshot"] is None for window in s["windows"].values()),
        "Windows read that are in no snapshot",
    ),
    "rare_words": (
        "rare_words.held",
        "Words with context sums, shown with an inferred vector",
    ),
    "usage_words": (
        "usage.held",
        "Words whose contexts are added up by window and source",
    ),
    "ailing_reasons": (
        lambda s: len(s.get("ailing", ())),
        "Reasons why the server does not do all of its work; /health has them",
    ),
    "active_nodes": (
        lambda s: sum(node["state"] == "active" for node in s["nodes"].values()),
        "Nodes that take part",
    ),
    "rate_variation_ratio": (
        "sync.variation",
        "Coefficient of variation of the sources' token rates",
    ),
    "pushed_rows_per_second": ("rows_per_second.in", "Rows received a second, over ten seconds"),
    "pulled_rows_per_second": ("rows_per_second.out", "Rows sent a second, over ten seconds"),
    "checkpoint_pause_seconds": (
        lambda s: s["pause_ms"]["checkpoint"] / 1000,
        "Longest time the last checkpoint held training up",
    ),
    "cut_pause_seconds": (
        lambda s: s["pause_ms"]["cut"] / 1000,
        "Longest time the last snapshot held training up",
    ),
    "checkpoint_age_seconds": (
        "checkpoint_age_s",
        "Seconds since the last checkpoint was complete",
    ),
    "read_imbalance": (
        "reading.imbalance",
        "Largest token rate of a node over the mean of the nodes",
    ),
}
_COUNTERS: Figures = {
    "policy_switches": ("sync.switched", "Changes of the ruling policy"),
    "source_moves": ("reading.moves", "Sources that changed nodes"),
}
"""Both of the status."""

_NODE_GAUGES: Figures = {
    "clock": ("clock", "Clocks the node has finished"),
    "block_share": ("block_share", "Factor on the node's block size, by its speed"),
    "sequence": ("sequence", "Last push taken"),
    "durable_sequence": ("durable", "Last push in a checkpoint"),
    "words_per_second": ("words_per_second", "Tokens learnt a second, over ten seconds"),
    "last_seen_seconds": ("last_seen_s", "Seconds since the node's last heartbeat"),
    "active": (lambda node: int(node["state"] == "active"), "Whether the node takes part"),
    "queue_tokens": (
        lambda node: _depth(node["report"].get("queue")),
        "Tokens waiting in the node's queue",
    ),
    "frontier_away_seconds": (
        lambda node: node["report"].get("frontier_away_s"),
        "Seconds that the node waits for its frontier's database by now",
    ),
}
_NODE_COUNTERS: Figures = {"tokens": ("tokens", "Tokens learnt of what the node pushed")}

_SOURCE_COUNTERS: Figures = {
    "documents": ("documents", "Documents learnt"),
    "tokens": ("tokens", "Tokens learnt"),
    "late_documents": ("late_documents", "Documents learnt after the cut of their window"),
}
_SOURCE_GAUGES: Figures = {"nll": ("nll", "Mean loss before learning, in nats a pair")}

_TEXT = {
    "known_ratio": (GaugeMetricFamily, "known_share", "Share of eojeols read without an analysis"),
    "cache_bytes": (GaugeMetricFamily, "cache_bytes", "Memory of the cache, by reckoning"),
    "cached_words": (GaugeMetricFamily, "cached_words", "Eojeols in the cache"),
    "forgotten_words": (
        CounterMetricFamily,
        "forgotten_words",
        "Eojeols that left the cache for others",
    ),
    "morphemes": (CounterMetricFamily, "morphemes", "Morphemes that the analyser found"),
    "given_up_documents": (
        CounterMetricFamily,
        "given_up",
        "Documents that could not be prepared, passed on without a word",
    ),
}
"""Name → family, key of `text` in a node's report, help."""


class _StatusCollector(Collector):
    """One scrape."""

    def __init__(self, status: dict[str, Any], meters: Meters, more: Sequence[MoreMetrics]) -> None:
        self._status = status
        self._meters = meters
        self._more = more

    def collect(self) -> Iterator[Metric]:
        status = self._status
        yield from _infos(status)
        yield from plain(CounterMetricFamily, _TOTALS, vars(self._meters))
        yield labelled(
            CounterMetricFamily,
            "refused_messages",
            "Messages refused since the start",
            "kind",
            sorted(self._meters.refusals.items()),
        )
        yield from plain(GaugeMetricFamily, _GAUGES, status)
        yield from plain(CounterMetricFamily, _COUNTERS, status)
        yield _lacking(status["snapshots"])
        lag = status["lag"]
        yield _quantiles("lag_seconds", "", [((), (lag["p50_s"], lag["p95_s"]))])
        yield _staleness(self._meters)
        yield from by("node", GaugeMetricFamily, _NODE_GAUGES, status["nodes"])
        yield from by("node", CounterMetricFamily, _NODE_COUNTERS, status["nodes"])
        yield from _sources(status)
        yield from _crawl(status["nodes"])
        yield from text_metrics(status["nodes"])
        for metrics in self._more:
            yield from metrics(status)
        yield from _transports(status["topology"])
        for name in SERVER_PARTS:
            yield from SERVER_PARTS.get(name).metrics(status["sync"][name])


def _lacking(refs: Iterable[Mapping[str, Any]]) -> Metric:
    """Of the last snapshot of each window that lacks something."""
    windows = {ref["id"].rpartition("-")[0]: len(ref["lacks"]) for ref in refs}
    return labelled(
        GaugeMetricFamily,
        "window_lacks",
        "Parts of a window that its snapshot lacks; `yeoron snapshot list` says which and why",
        "window",
        ((label, n) for label, n in windows.items() if n),
    )


def _infos(status: Mapping[str, Any]) -> Iterator[Metric]:
    yield InfoMetricFamily(
        "yeoron_server",
        "Version, device and columns of a row",
        {"version": __version__, "device": status["device"], "dim": str(status["dim"])},
    )
    yield InfoMetricFamily(
        "yeoron_policy",
        "The consistency policy",
        {
            "policy": status["policy"],
            "running": status["sync"]["running"],
            "staleness": str(status["staleness"]),
        },
    )


def _staleness(meters: Meters) -> Metric:
    seen = dict(meters.staleness)
    buckets = [(f"{le}.0", sum(n for s, n in seen.items() if s <= le)) for le in _BUCKETS]
    buckets.append(("+Inf", sum(seen.values())))
    family = HistogramMetricFamily(
        "yeoron_push_staleness", "Other pushes applied between a node's pull and its push"
    )
    family.add_metric([], buckets, sum(s * n for s, n in seen.items()))
    return family


def _sources(status: Mapping[str, Any]) -> Iterator[Metric]:
    sources = status["sources"]
    yield from by("source", CounterMetricFamily, _SOURCE_COUNTERS, sources)
    yield from by("source", GaugeMetricFamily, _SOURCE_GAUGES, sources)
    lags = (((name,), (one["lag_p50_s"], one["lag_p95_s"])) for name, one in sources.items())
    yield _quantiles("source_lag_seconds", "source", lags)
    yield labelled(
        GaugeMetricFamily,
        "source_read_tokens_per_second",
        "Tokens read a second, by source and the node that reads it",
        "source node",
        (
            ((name, one["node"]), one["tokens_per_second"])
            for name, one in status["reading"]["sources"].items()
        ),
    )


def _quantiles(
    name: str, labels: str, rows: Iterable[tuple[tuple[str, ...], tuple[Any, Any]]]
) -> Metric:
    """Median and 95th percentile of each row, as far as there are any."""
    return labelled(
        GaugeMetricFamily,
        name,
        "Lag from publication, by quantile of a sample",
        f"{labels} quantile",
        (
            ((*of, quantile), figure)
            for of, figures in rows
            for quantile, figure in zip(("0.5", "0.95"), figures, strict=True)
        ),
    )


def _crawl(nodes: Mapping[str, Mapping[str, Any]]) -> Iterator[Metric]:
    found = list(crawl_figures(nodes))
    yield labelled(
        CounterMetricFamily,
        "source_fetched_pages",
        "Pages the crawler read",
        "source",
        ((each.source, each.fetched) for each in found),
    )
    yield labelled(
        CounterMetricFamily,
        "source_faults",
        "Documents and tries that failed, were left out or dated by a guess, by reason",
        "source reason",
        (((each.source, why), n) for each in found for why, n in sorted(each.faults.items())),
    )
    yield labelled(
        CounterMetricFamily,
        "source_alarms",
        "Alarms raised, by event",
        "source event",
        (((each.source, event), n) for each in found for event, n in sorted(each.alarms.items())),
    )
    yield labelled(
        GaugeMetricFamily,
        "source_alarm",
        "1 while the alarm stands",
        "source event",
        (((each.source, each.alarm["event"]), 1) for each in found if each.alarm is not None),
    )


def text_metrics(nodes: Mapping[str, Mapping[str, Any]]) -> Iterator[Metric]:
    """Figures of the text preparation of each node whose report tells of it."""
    reported = {node: status["report"].get("text") for node, status in nodes.items()}
    texts = {node: text for node, text in reported.items() if text and isinstance(text, Mapping)}
    for name, (kind, key, help_text) in _TEXT.items():
        values = ((node, text.get(key)) for node, text in texts.items())
        yield labelled(kind, f"text_{name}", help_text, "node", values)
    masked = {node: text.get("masked") for node, text in texts.items()}
    yield labelled(
        CounterMetricFamily,
        "text_masked",
        "Pieces of personal data masked",
        "node kind",
        (
            ((node, kind), n)
            for node, kinds in masked.items()
            for kind, n in (sorted(kinds.items()) if isinstance(kinds, Mapping) else ())
        ),
    )


def _transports(topology: Mapping[str, Mapping[str, Any]]) -> Iterator[Metric]:
    for name, text in (
        ("bytes", "Bytes sent, by transport (server: both directions)"),
        ("rows", "Rows sent, by transport"),
    ):
        sent = topology[name].items()
        yield labelled(CounterMetricFamily, f"transport_{name}", text, "transport", sent)


def _depth(queue: Any) -> Any:
    """Tokens that wait, as a number or in a record of the queue."""
    return queue.get("depth") if isinstance(queue, dict) else queue


def render(status: dict[str, Any], meters: Meters, more: Sequence[MoreMetrics] = ()) -> bytes:
    """The metrics page; `more` gives metrics of other packages."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_StatusCollector(status, meters, more))
    page: bytes = generate_latest(registry)
    return page
