"""The table of a server's figures: Prometheus' text format, docs/reference/metrics.md and the
tables of `yeoron status` are made of it. It reads the status, so that all of them say the same.

Names follow prometheus.io/docs/practices/naming: `yeoron_`, base units (`_seconds`, `_bytes`,
`_ratio`), `_total` for counters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from embedding import __version__
from embedding.kernel.registry import NoTraits, Registry
from embedding.server.figures.reports import crawl_figures, is_number

if TYPE_CHECKING:
    from prometheus_client import Metric

Scrape = Mapping[str, Any]
"""The status of a server, and its `Meters` by name under `meters`."""
SampleValues = Iterable[tuple[object, Any]]
"""The value of the label, of several a tuple, and a figure; what is no number is left out."""
GAUGE, COUNTER, SHOWN = "gauge", "counter", "shown"
"""A figure that is `SHOWN` is in the terminal alone."""
_Reads = str | Callable[[Any], Any]
Named = Mapping[str, Sequence[Any]]
"""By name its figure, a key (behind those that lead to it, with dots between) or a function of what
has it, its help, and the head of its column in the terminal."""


@dataclass(frozen=True)
class Figure:
    """One family of Prometheus, or a column of the terminal.

    kind    gauge, counter, info, histogram or shown
    name    behind `yeoron_`, without `_total` and `_info`
    labels  their names, with spaces between
    values  finds its samples, None where there is nothing of it; of an info its labels, of a
            histogram its buckets and the sum
    head    of its column in the terminal, or of its row where it has no labels; "": it has none
    table   title of the table there
    """

    kind: str
    name: str
    text: str
    labels: str
    values: Callable[[Scrape], Any]
    head: str = ""
    table: str = ""

    def family(self, shown: Scrape) -> Metric | None:
        """As it is now; None where there is nothing of it. Samples of a counter with the same
        labels, such as of a source that two nodes have read, are added up.
        """
        from prometheus_client import core

        name = f"yeoron_{self.name}"
        if self.kind == SHOWN or (samples := self.values(shown)) is None:
            return None
        if self.kind == "info":
            return core.InfoMetricFamily(name, self.text, samples)
        if self.kind == "histogram":
            histogram = core.HistogramMetricFamily(name, self.text)
            histogram.add_metric([], *samples)
            return histogram
        sums: dict[tuple[str, ...], float] = {}
        for of, figure in samples:
            if is_number(figure):
                labels = tuple(str(label) for label in (of if isinstance(of, tuple) else (of,)))
                before = sums.get(labels, 0) if self.kind == COUNTER else 0
                sums[labels] = before + figure
        make = core.CounterMetricFamily if self.kind == COUNTER else core.GaugeMetricFamily
        family = make(name, self.text, labels=self.labels.split())
        for labels, figure in sums.items():
            family.add_metric(labels, figure)
        return family


def plain(kind: str, figures: Named, at: str = "", table: str = "") -> tuple[Figure, ...]:
    """Without labels; of a figure that is None there is none. `at`: keys of what has them."""

    def values(reads: _Reads, shown: Scrape) -> SampleValues | None:
        value = None if (of := _at(shown, at)) is None else _read(of, reads)
        return None if value is None else [((), value)]

    return tuple(
        Figure(kind, name, text, "", partial(values, reads), "".join(head), table)
        for name, (reads, text, *head) in figures.items()
    )


def by(
    label: str,
    kind: str,
    figures: Named,
    things: Callable[[Scrape], Mapping[Any, Any] | None],
    table: str = "",
) -> tuple[Figure, ...]:
    """With a sample for each thing, by the value of the label; names begin with it."""

    def values(reads: _Reads, shown: Scrape) -> SampleValues | None:
        rows = things(shown)
        return None if rows is None else [(name, _read(row, reads)) for name, row in rows.items()]

    return tuple(
        Figure(kind, f"{label}_{name}", text, label, partial(values, reads), "".join(head), table)
        for name, (reads, text, *head) in figures.items()
    )


def _at(shown: Any, path: str) -> Any:
    for name in path.split(".") if path else ():
        shown = (shown or {}).get(name)
    return shown


def _read(thing: Mapping[str, Any], reads: _Reads) -> Any:
    return _at(thing, reads) if isinstance(reads, str) else reads(thing)


SOURCES = "Sources"
_BUCKETS = (0, 1, 2, 4, 8, 16, 32, 64, 128)

_TOTALS: Named = {
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

_GAUGES: Named = {
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
_COUNTERS: Named = {
    "policy_switches": ("sync.switched", "Changes of the ruling policy"),
    "source_moves": ("reading.moves", "Sources that changed nodes"),
}
"""Both of the status."""

_NODE_GAUGES: Named = {
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
_NODE_COUNTERS: Named = {"tokens": ("tokens", "Tokens learnt of what the node pushed")}

_SOURCE_RATE: Named = {"words_per_second": ("words_per_second", "", "words/s")}
_SOURCE_COUNTERS: Named = {
    "documents": ("documents", "Documents learnt", "documents"),
    "tokens": ("tokens", "Tokens learnt", "tokens"),
    "late_documents": ("late_documents", "Documents learnt after the cut of their window"),
}
_SOURCE_GAUGES: Named = {"nll": ("nll", "Mean loss before learning, in nats a pair")}
_SOURCE_TIMES: Named = {
    "latest": (lambda of: (of["published_at"] or "–").replace("T", " ")[:16], "", "latest"),
    "lag_p50_seconds": ("lag_p50_s", "", "lag p50"),
    "lag_p95_seconds": ("lag_p95_s", "", "lag p95"),
}

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


def _sources(shown: Scrape) -> dict[str, Any]:
    return dict(sorted(shown.get("sources", {}).items()))


def _read_by(shown: Scrape) -> SampleValues:
    reading = (shown.get("reading") or {}).get("sources", {})
    return ((name, (reading.get(name) or {}).get("node")) for name in _sources(shown))


def _source_lags(shown: Scrape) -> SampleValues:
    for name, source in shown["sources"].items():
        yield (name, "0.5"), source["lag_p50_s"]
        yield (name, "0.95"), source["lag_p95_s"]


def _crawled(counts: str) -> Callable[[Scrape], SampleValues]:
    return lambda shown: (
        ((of.source, name), n)
        for of in crawl_figures(shown["nodes"])
        for name, n in sorted(getattr(of, counts).items())
    )


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
        lambda shown: {"version": __version__, "device": shown["device"], "dim": str(shown["dim"])},
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
    Figure(SHOWN, "source_read_by", "", "source", _read_by, "read by", SOURCES),
    *by("source", SHOWN, _SOURCE_RATE, _sources, SOURCES),
    *by("source", COUNTER, _SOURCE_COUNTERS, _sources, SOURCES),
    *by("source", SHOWN, _SOURCE_TIMES, _sources, SOURCES),
    *by("source", GAUGE, _SOURCE_GAUGES, _sources),
    Figure(GAUGE, "source_lag_seconds", _LAG, "source quantile", _source_lags),
    Figure(
        GAUGE,
        "source_read_tokens_per_second",
        "Tokens read a second, by source and the node that reads it",
        "source node",
        lambda shown: (
            ((name, read["node"]), read["tokens_per_second"])
            for name, read in shown["reading"]["sources"].items()
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
        _crawled("faults"),
    ),
    Figure(COUNTER, "source_alarms", "Alarms raised, by event", "source event", _crawled("alarms")),
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
"""Of every server."""


SERVER_FIGURES: Registry[Callable[[], Sequence[Figure]], NoTraits] = Registry(
    "figures of a server", "yeoron.status"
)
"""What other packages add to the table; the core has none of its own."""


def all_figures() -> list[Figure]:
    """The whole table."""
    return [
        *METRIC_FAMILIES,
        *(figure for name in SERVER_FIGURES for figure in SERVER_FIGURES.get(name)()),
    ]


def render(status: dict[str, Any], meters: object) -> bytes:
    """The metrics page; meters  the server's `Meters`."""
    from prometheus_client import ProcessCollector, generate_latest

    shown = {**status, "meters": vars(meters)}
    families = [family for figure in all_figures() if (family := figure.family(shown)) is not None]
    everything = [*ProcessCollector(registry=None).collect(), *families]
    page: bytes = generate_latest(SimpleNamespace(collect=lambda: everything))
    return page
