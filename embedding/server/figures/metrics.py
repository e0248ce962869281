"""The status in Prometheus' text format, from a registry of its own on each request.

Names follow prometheus.io/docs/practices/naming: `yeoron_`, base units, `_total` for counters.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from embedding.server.figures.alarms import crawl_figures
from embedding.server.figures.families import labelled
from embedding.server.figures.groupmetrics import following_metrics, group_metrics
from embedding.server.figures.meters import Meters
from embedding.server.figures.textmetrics import text_metrics

_BUCKETS = (0, 1, 2, 4, 8, 16, 32, 64, 128)

_TOTALS = {
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
"""Name → field of Meters and help."""

_ROUNDS = {
    "rounds": "Rounds of L-BFGS",
    "iterations": "Steps of L-BFGS",
    "evaluations": "Looks at a whole batch",
    "copies": "Portions given out twice at the end of a batch",
    "copies_won": "Portions whose copy was answered first",
    "lost_portions": "Portions that went with their node",
    "tokens": "Tokens whose loss was computed, as often as it was",
}
"""Name, a key of the status, and help."""

_NODE_GAUGES = {
    "clock": ("clock", "Clocks the node has finished"),
    "block_share": ("block_share", "Factor on the node's block size, by its speed"),
    "sequence": ("sequence", "Last push taken"),
    "durable_sequence": ("durable", "Last push in a checkpoint"),
    "words_per_second": ("words_per_second", "Tokens learnt a second, over ten seconds"),
    "last_seen_seconds": ("last_seen_s", "Seconds since the node's last heartbeat"),
}
"""Name → key of a node in the status and help."""

_SHARD_GAUGES = {
    "rows": "Rows held",
    "bytes": "Memory of rows and their places",
    "position": "Entries of the primary's log carried out",
    "behind": "Entries of the primary's log to be carried out",
}
_SHARD = {
    "pushes": "Pushes applied",
    "duplicates": "Pushes that had been taken before",
    "lost_pushes": "Pushes lost with their node",
    "repeated_pushes": "Pushes whose text is read again and not applied again",
    "rows_in": "Rows received in pushes",
    "rows_out": "Rows sent in pulls",
    "bytes_in": "Bytes received from nodes",
    "bytes_out": "Bytes sent to nodes",
    "bytes_led": "Bytes between shard and primary",
}


class _StatusCollector(Collector):
    """One scrape."""

    def __init__(self, status: dict[str, Any], meters: Meters) -> None:
        self._status = status
        self._meters = meters

    def collect(self) -> Iterator[Metric]:
        yield from self._infos()
        yield from self._totals()
        yield from self._gauges()
        yield from self._rates()
        yield from self._checkpoints()
        yield self._staleness()
        yield from self._nodes()
        yield from self._sources()
        yield from self._crawl()
        yield from self._reading()
        yield from text_metrics(self._status["nodes"])
        yield from self._shards()
        yield from group_metrics(self._status["groups"])
        yield from following_metrics(self._status.get("following"))
        yield from self._transports()
        yield from self._rounds()

    def _rounds(self) -> Iterator[Metric]:
        rounds = self._status["sync"]["rounds"]
        for name, text in _ROUNDS.items():
            family = f"yeoron_lbfgs_{name}"
            yield CounterMetricFamily(family, text, value=rounds[name])
        yield labelled(
            CounterMetricFamily,
            "lbfgs_node_portions",
            "Portions that counted, by node",
            "node",
            rounds["by_node"].items(),
        )
        if rounds["last"] is not None:
            text = "Loss of the last batch at its end, nats a pair"
            yield GaugeMetricFamily("yeoron_lbfgs_loss", text, value=rounds["last"])

    def _infos(self) -> Iterator[Metric]:
        status = self._status
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

    def _reading(self) -> Iterator[Metric]:
        """Which node reads which source."""
        reading = self._status["reading"]
        rates = GaugeMetricFamily(
            "yeoron_source_read_tokens_per_second",
            "Tokens read a second, by source and the node that reads it",
            labels=["source", "node"],
        )
        for name, one in reading["sources"].items():
            rates.add_metric([name, one["node"]], one["tokens_per_second"])
        yield rates
        if reading["imbalance"] is not None:
            yield GaugeMetricFamily(
                "yeoron_read_imbalance",
                "Largest token rate of a node over the mean of the nodes",
                value=reading["imbalance"],
            )
        yield CounterMetricFamily(
            "yeoron_source_moves", "Sources that changed nodes", value=reading["moves"]
        )

    def _transports(self) -> Iterator[Metric]:
        for name, text in (
            ("bytes", "Bytes sent, by transport (server: both directions)"),
            ("rows", "Rows sent, by transport"),
        ):
            sent = self._status["topology"][name].items()
            yield labelled(CounterMetricFamily, f"transport_{name}", text, "transport", sent)
            former = f"Former name of transport_{name}"
            yield labelled(CounterMetricFamily, f"way_{name}", former, "way", sent)

    def _totals(self) -> Iterator[Metric]:
        for name, (field, text) in _TOTALS.items():
            value = getattr(self._meters, field)
            yield CounterMetricFamily(f"yeoron_{name}", text, value=value)
        yield labelled(
            CounterMetricFamily,
            "refused_messages",
            "Messages refused since the start",
            "kind",
            sorted(self._meters.refusals.items()),
        )

    def _gauges(self) -> Iterator[Metric]:
        status = self._status
        windows = list(status["windows"].values())
        nodes = list(status["nodes"].values())
        for name, text, value in (
            ("vocabulary_words", "Words that have a row", status["vocabulary"]),
            ("vocabulary_candidates", "Words counted without a row", status["candidates"]),
            (
                "words_per_second",
                "Tokens learnt a second, over ten seconds",
                status["words_per_second"],
            ),
            ("uptime_seconds", "Seconds since the start", status["uptime_s"]),
            ("snapshots", "Snapshots published", len(status["snapshots"])),
            (
                "open_windows",
                "Windows read that are in no snapshot",
                sum(window["snapshot"] is None for window in windows),
            ),
            (
                "rare_words",
                "Words with context sums, shown with an inferred vector",
                status["rare_words"]["held"],
            ),
            ("young_words", "Former name of rare_words", status["rare_words"]["held"]),
            (
                "usage_words",
                "Words whose contexts are added up by window and source",
                status["usage"]["held"],
            ),
            (
                "ailing_reasons",
                "Reasons why the server does not do all of its work; /health has them",
                len(status.get("ailing", ())),
            ),
            ("active_nodes", "Nodes that take part", sum(n["state"] == "active" for n in nodes)),
        ):
            yield GaugeMetricFamily(f"yeoron_{name}", text, value=value)
        sync = status["sync"]
        yield CounterMetricFamily(
            "yeoron_policy_switches", "Changes of the ruling policy", value=sync["switched"]
        )
        if sync["variation"] is not None:
            yield GaugeMetricFamily(
                "yeoron_rate_variation_ratio",
                "Coefficient of variation of the sources' token rates",
                value=sync["variation"],
            )
        yield _quantiles("yeoron_lag_seconds", "Lag from publication", [({}, status["lag"])])

    def _rates(self) -> Iterator[Metric]:
        rates = self._status["rows_per_second"]
        for name, direction, text in (
            ("pushed", "in", "Rows received a second, over ten seconds"),
            ("pulled", "out", "Rows sent a second, over ten seconds"),
        ):
            yield GaugeMetricFamily(f"yeoron_{name}_rows_per_second", text, value=rates[direction])

    def _checkpoints(self) -> Iterator[Metric]:
        pauses = self._status["pause_ms"]
        for name, text in (
            ("checkpoint", "Longest time the last checkpoint held training up"),
            ("cut", "Longest time the last snapshot held training up"),
        ):
            value = pauses[name] / 1000
            yield GaugeMetricFamily(f"yeoron_{name}_pause_seconds", text, value=value)
        age = self._status.get("checkpoint_age_s")
        if age is not None:
            text = "Seconds since the last checkpoint was complete"
            yield GaugeMetricFamily("yeoron_checkpoint_age_seconds", text, value=age)

    def _staleness(self) -> Metric:
        seen = dict(self._meters.staleness)
        buckets = [(f"{le}.0", sum(n for s, n in seen.items() if s <= le)) for le in _BUCKETS]
        buckets.append(("+Inf", sum(seen.values())))
        family = HistogramMetricFamily(
            "yeoron_push_staleness", "Other pushes applied between a node's pull and its push"
        )
        family.add_metric([], buckets, sum(s * n for s, n in seen.items()))
        return family

    def _nodes(self) -> Iterator[Metric]:
        nodes = self._status["nodes"].items()
        for name, (key, text) in _NODE_GAUGES.items():
            values = ((node, figures[key]) for node, figures in nodes)
            yield labelled(GaugeMetricFamily, f"node_{name}", text, "node", values)
        tokens = ((node, figures["tokens"]) for node, figures in nodes)
        yield labelled(
            CounterMetricFamily, "node_tokens", "Tokens that the node pushed", "node", tokens
        )
        active = ((node, int(figures["state"] == "active")) for node, figures in nodes)
        yield labelled(
            GaugeMetricFamily, "node_active", "Whether the node takes part", "node", active
        )
        queues = ((node, figures["report"].get("queue")) for node, figures in nodes)
        yield labelled(
            GaugeMetricFamily,
            "node_queue_tokens",
            "Tokens waiting in the node's queue",
            "node",
            ((node, q.get("depth") if isinstance(q, dict) else q) for node, q in queues),
        )
        yield labelled(
            GaugeMetricFamily,
            "node_frontier_away_seconds",
            "Seconds that the node waits for its frontier's database by now",
            "node",
            ((node, figures["report"].get("frontier_away_s")) for node, figures in nodes),
        )

    def _shards(self) -> Iterator[Metric]:
        shards = self._status["shards"]
        if not shards:
            return
        up = ((shard["shard"], int(shard["state"] == "up")) for shard in shards)
        yield labelled(GaugeMetricFamily, "shard_up", "Whether the shard is used", "shard", up)
        for kind, figures in ((GaugeMetricFamily, _SHARD_GAUGES), (CounterMetricFamily, _SHARD)):
            for name, text in figures.items():
                values = ((shard["shard"], shard.get(name)) for shard in shards)
                yield labelled(kind, f"shard_{name}", text, "shard", values)

    def _crawl(self) -> Iterator[Metric]:
        fetched = CounterMetricFamily(
            "yeoron_source_fetched_pages", "Pages the crawler read", labels=["source"]
        )
        faults = CounterMetricFamily(
            "yeoron_source_faults",
            "Failures of the crawler, by reason",
            labels=["source", "reason"],
        )
        raised = CounterMetricFamily(
            "yeoron_source_alarms", "Alarms raised, by event", labels=["source", "event"]
        )
        stands = GaugeMetricFamily(
            "yeoron_source_alarm", "1 while the alarm stands", labels=["source", "event"]
        )
        for each in crawl_figures(self._status["nodes"]):
            fetched.add_metric([each.source], each.fetched)
            for reason, n in sorted(each.faults.items()):
                faults.add_metric([each.source, reason], n)
            for event, n in sorted(each.alarms.items()):
                raised.add_metric([each.source, event], n)
            if each.alarm is not None:
                stands.add_metric([each.source, each.alarm["event"]], 1)
        yield from (fetched, faults, raised, stands)

    def _sources(self) -> Iterator[Metric]:
        sources = self._status["sources"]
        for name, text in (
            ("documents", "Documents learnt"),
            ("tokens", "Tokens learnt"),
            ("late_documents", "Documents learnt after the cut of their window"),
        ):
            values = ((source, figures[name]) for source, figures in sources.items())
            yield labelled(CounterMetricFamily, f"source_{name}", text, "source", values)
        yield labelled(
            GaugeMetricFamily,
            "source_nll",
            "Mean loss before learning, in nats a pair",
            "source",
            ((source, figures["nll"]) for source, figures in sources.items()),
        )
        lags = [
            ({"source": name}, {"p50_s": f["lag_p50_s"], "p95_s": f["lag_p95_s"]})
            for name, f in sources.items()
        ]
        yield _quantiles("yeoron_source_lag_seconds", "Lag from publication", lags, ["source"])


def _quantiles(
    name: str,
    text: str,
    rows: list[tuple[dict[str, str], dict[str, float | None]]],
    labels: list[str] | None = None,
) -> Metric:
    """Quantiles `p50_s` and `p95_s` of each row, as far as there are any."""
    names = labels or []
    family = GaugeMetricFamily(
        name, f"{text}, by quantile of a sample", labels=[*names, "quantile"]
    )
    for of, figures in rows:
        for key, quantile in (("p50_s", "0.5"), ("p95_s", "0.95")):
            value = figures[key]
            if value is not None:
                family.add_metric([*(of[each] for each in names), quantile], value)
    return family


def render(status: dict[str, Any], meters: Meters) -> bytes:
    """The metrics page."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_StatusCollector(status, meters))
    page: bytes = generate_latest(registry)
    return page
