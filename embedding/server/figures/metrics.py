"""The table of a server's figures: Prometheus' text format and docs/reference/metrics.md are made
of it, and it reads the status, so that both say the same.

Names follow prometheus.io/docs/practices/naming: `yeoron_`, base units (`_seconds`, `_bytes`,
`_ratio`), `_total` for counters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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

Scrape = Mapping[str, Any]
"""The status of a server, and its `Meters` by name under `meters`."""
SampleValues = Iterable[tuple[object, Any]]
"""The value of the label, of several a tuple, and a figure; what is no number is left out."""
GAUGE, COUNTER = "gauge", "counter"
_KINDS = {GAUGE: GaugeMetricFamily, COUNTER: CounterMetricFamily}
_Named = Mapping[str, tuple[str | Callable[[Any], Any], str]]
"""By name its figure, a key (behind those that lead to it, with dots between) or a function of what
has it, and its help."""


@dataclass(frozen=True)
class Figure:
    """One family of Prometheus.

    kind    gauge, counter, info or histogram
    name    behind `yeoron_`, without `_total` and `_info`
    labels  their names, with spaces between
    values  finds its samples, None where there is nothing of it; of an info its labels, of a
            histogram its buckets and the sum
    """

    kind: str
    name: str
    text: str
    labels: str
    values: Callable[[Scrape], Any]

    def family(self, shown: Scrape) -> Metric | None:
        """As it is now; None where there is nothing of it."""
        name, found = f"yeoron_{self.name}", self.values(shown)
        if found is None:
            return None
        if self.kind == "info":
            return InfoMetricFamily(name, self.text, found)
        if self.kind == "histogram":
            histogram = HistogramMetricFamily(name, self.text)
            histogram.add_metric([], *found)
            return histogram
        family: GaugeMetricFamily | CounterMetricFamily = _KINDS[self.kind](
            name, self.text, labels=self.labels.split()
        )
        for of, figure in found:
            if is_number(figure):
                names = of if isinstance(of, tuple) else (of,)
                family.add_metric([str(each) for each in names], figure)
        return family


def plain(kind: str, figures: _Named, at: str = "") -> tuple[Figure, ...]:
    """Without labels; of a figure that is None there is none. `at`: keys of what has them."""

    def found(figure: str | Callable[[Any], Any], shown: Scrape) -> SampleValues | None:
        thing = _at(shown, at)
        value = None if thing is None else _read(thing, figure)
        return None if value is None else [((), value)]

    return tuple(
        Figure(kind, name, text, "", partial(found, figure))
        for name, (figure, text) in figures.items()
    )


def by(
    label: str,
    kind: str,
    figures: _Named,
    things: Callable[[Scrape], Mapping[Any, Any] | None],
) -> tuple[Figure, ...]:
    """With a sample for each thing, by the value of the label; names begin with it."""

    def found(figure: str | Callable[[Any], Any], shown: Scrape) -> SampleValues | None:
        held = things(shown)
        return None if held is None else [(of, _read(one, figure)) for of, one in held.items()]

    return tuple(
        Figure(kind, f"{label}_{name}", text, label, partial(found, figure))
        for name, (figure, text) in figures.items()
    )


def _at(shown: Mapping[str, Any], path: str) -> Any:
    found: Any = shown
    for name in path.split(".") if path else ():
        found = found.get(name)
    return found


def _read(thing: Mapping[str, Any], figure: str | Callable[[Any], Any]) -> Any:
    return _at(thing, figure) if isinstance(figure, str) else figure(thing)


_BUCKETS = (0, 1, 2, 4, 8, 16, 32, 64, 128)

_TOTALS: _Named = {
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

_GAUGES: _Named = {
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
_COUNTERS: _Named = {
    "policy_switches": ("sync.switched", "Changes of the ruling policy"),
    "source_moves": ("reading.moves", "Sources that changed nodes"),
}
"""Both of the status."""

_NODE_GAUGES: _Named = {
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
_NODE_COUNTERS: _Named = {"tokens": ("tokens", "Tokens learnt of what the node pushed")}

_SOURCE_COUNTERS: _Named = {
    "documents": ("documents", "Documents learnt"),
    "tokens": ("tokens", "Tokens learnt"),
    "late_documents": ("late_documents", "Documents learnt after the cut of their window"),
}
_SOURCE_GAUGES: _Named = {"nll": ("nll", "Mean loss before learning, in nats a pair")}

_TEXT: Mapping[str, tuple[str, str, str]] = {
    "known_ratio": (GAUGE, "known_share", "Share of eojeols read without an analysis"),
    "cache_bytes": (GAUGE, "cache_bytes", "Memory of the cache, by reckoning"),
    "cached_words": (GAUGE, "cached_words", "Eojeols in the cache"),
    "forgotten_words": (COUNTER, "forgotten_words", "Eojeols that left the cache for others"),
    "morphemes": (COUNTER, "morphemes", "Morphemes that the analyser found"),
    "given_up_documents": (
        COUNTER,
        "given_up",
        "Documents that could not be prepared, passed on without a word",
    ),
}
"""Name → kind, key of `text` in a node's report, help."""


def _server(shown: Scrape) -> dict[str, str]:
    return {"version": __version__, "device": shown["device"], "dim": str(shown["dim"])}


def _policy(shown: Scrape) -> dict[str, str]:
    of = {"running": shown["sync"]["running"], "staleness": str(shown["staleness"])}
    return {"policy": shown["policy"], **of}


def _staleness(shown: Scrape) -> tuple[list[tuple[str, int]], int]:
    seen = dict(shown["meters"]["staleness"])
    buckets = [(f"{le}.0", sum(n for s, n in seen.items() if s <= le)) for le in _BUCKETS]
    buckets.append(("+Inf", sum(seen.values())))
    return buckets, sum(s * n for s, n in seen.items())


_LAG = "Lag from publication, by quantile of a sample"


def _lacking(shown: Scrape) -> SampleValues:
    """Of the last snapshot of each window that lacks something."""
    windows = {ref["id"].rpartition("-")[0]: len(ref["lacks"]) for ref in shown["snapshots"]}
    return ((label, n) for label, n in windows.items() if n)


def _source_lags(shown: Scrape) -> SampleValues:
    for name, one in shown["sources"].items():
        yield (name, "0.5"), one["lag_p50_s"]
        yield (name, "0.95"), one["lag_p95_s"]


def _faults(shown: Scrape) -> SampleValues:
    for each in crawl_figures(shown["nodes"]):
        yield from (((each.source, why), n) for why, n in sorted(each.faults.items()))


def _alarms(shown: Scrape) -> SampleValues:
    for each in crawl_figures(shown["nodes"]):
        yield from (((each.source, event), n) for event, n in sorted(each.alarms.items()))


def _texts(shown: Scrape) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What the report of each node tells of its text preparation."""
    for node, status in shown["nodes"].items():
        text = status["report"].get("text")
        if text and isinstance(text, Mapping):
            yield node, text


def _masked(shown: Scrape) -> SampleValues:
    for node, text in _texts(shown):
        kinds = text.get("masked")
        if isinstance(kinds, Mapping):
            yield from (((node, kind), n) for kind, n in sorted(kinds.items()))


def _text(key: str) -> Callable[[Scrape], SampleValues]:
    return lambda shown: ((node, text.get(key)) for node, text in _texts(shown))


def _depth(queue: Any) -> Any:
    """Tokens that wait, as a number or in a record of the queue."""
    return queue.get("depth") if isinstance(queue, dict) else queue


METRIC_FAMILIES: tuple[Figure, ...] = (
    Figure(
        "info",
        "server",
        "Version, device and columns of a row",
        "device dim version",
        _server,
    ),
    Figure("info", "policy", "The consistency policy", "policy running staleness", _policy),
    *plain(COUNTER, _TOTALS, "meters"),
    Figure(
        COUNTER,
        "refused_messages",
        "Messages refused since the start",
        "kind",
        lambda shown: sorted(shown["meters"]["refusals"].items()),
    ),
    *plain(GAUGE, _GAUGES),
    *plain(COUNTER, _COUNTERS),
    Figure(
        GAUGE,
        "window_lacks",
        "Parts of a window that its snapshot lacks; `yeoron snapshot list` says which and why",
        "window",
        _lacking,
    ),
    Figure(
        GAUGE,
        "lag_seconds",
        _LAG,
        "quantile",
        lambda shown: [("0.5", shown["lag"]["p50_s"]), ("0.95", shown["lag"]["p95_s"])],
    ),
    Figure(
        "histogram",
        "push_staleness",
        "Other pushes applied between a node's pull and its push",
        "",
        _staleness,
    ),
    *by("node", GAUGE, _NODE_GAUGES, lambda shown: shown["nodes"]),
    *by("node", COUNTER, _NODE_COUNTERS, lambda shown: shown["nodes"]),
    *by("source", COUNTER, _SOURCE_COUNTERS, lambda shown: shown["sources"]),
    *by("source", GAUGE, _SOURCE_GAUGES, lambda shown: shown["sources"]),
    Figure(GAUGE, "source_lag_seconds", _LAG, "source quantile", _source_lags),
    Figure(
        GAUGE,
        "source_read_tokens_per_second",
        "Tokens read a second, by source and the node that reads it",
        "source node",
        lambda shown: (
            ((name, one["node"]), one["tokens_per_second"])
            for name, one in shown["reading"]["sources"].items()
        ),
    ),
    Figure(
        COUNTER,
        "source_fetched_pages",
        "Pages the crawler read",
        "source",
        lambda shown: ((each.source, each.fetched) for each in crawl_figures(shown["nodes"])),
    ),
    Figure(
        COUNTER,
        "source_faults",
        "Documents and tries that failed, were left out or dated by a guess, by reason",
        "source reason",
        _faults,
    ),
    Figure(COUNTER, "source_alarms", "Alarms raised, by event", "source event", _alarms),
    Figure(
        GAUGE,
        "source_alarm",
        "1 while the alarm stands",
        "source event",
        lambda shown: (
            ((each.source, each.alarm["event"]), 1)
            for each in crawl_figures(shown["nodes"])
            if each.alarm is not None
        ),
    ),
    *(
        Figure(kind, f"text_{name}", text, "node", _text(key))
        for name, (kind, key, text) in _TEXT.items()
    ),
    Figure(COUNTER, "text_masked", "Pieces of personal data masked", "node kind", _masked),
)
"""Of every server, but for what is sent, which comes behind that of other packages."""
_SENT: tuple[Figure, ...] = (
    Figure(
        COUNTER,
        "transport_bytes",
        "Bytes sent, by transport (server: both directions)",
        "transport",
        lambda shown: shown["topology"]["bytes"].items(),
    ),
    Figure(
        COUNTER,
        "transport_rows",
        "Rows sent, by transport",
        "transport",
        lambda shown: shown["topology"]["rows"].items(),
    ),
)


def all_figures(more: Iterable[Sequence[Figure]] = ()) -> list[Figure]:
    """The whole table; `more`: what shards and server groups add to it."""
    parts = (SERVER_PARTS.get(name).figures for name in SERVER_PARTS)
    return [
        *METRIC_FAMILIES,
        *(figure for figures in more for figure in figures),
        *_SENT,
        *(figure for figures in parts for figure in figures),
    ]


class _StatusCollector(Collector):
    """One scrape."""

    def __init__(self, shown: Scrape, figures: Sequence[Figure]) -> None:
        self._shown = shown
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        families = (figure.family(self._shown) for figure in self._figures)
        return (family for family in families if family is not None)


def render(status: dict[str, Any], meters: Meters, more: Iterable[Sequence[Figure]] = ()) -> bytes:
    """The metrics page, see `all_figures`."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_StatusCollector({**status, "meters": vars(meters)}, all_figures(more)))
    page: bytes = generate_latest(registry)
    return page
