"""A document's spans from several processes meet in one trace; off, nothing is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

from embedding.kernel.errors import ConfigError
from embedding.kernel.tracing import Traces, open_traces

ENDPOINT_VARIABLE = "YEORON_TRACE__ENDPOINT"

exporting = pytest.importorskip(
    "opentelemetry.sdk.trace.export.in_memory_span_exporter", reason="the extra `otel`"
)
WINDOW = 1_700_000_000
KEY = "https://example.org/비밀/1"


def test_spans_of_three_processes_are_one_trace_and_the_snapshot_is_linked() -> None:
    exporters = [exporting.InMemorySpanExporter() for _ in range(3)]
    crawler, gradient, server = (
        Traces(exporter, process, node, 1.0)
        for exporter, process, node in zip(
            exporters, ("crawler", "gradient", "server"), ("n0", "n0", ""), strict=True
        )
    )
    crawler.document("fetch", (KEY,), 10.0, 11.0)
    crawler.document("prepare", (KEY,), 11.0, 12.0)
    crawler.document("queue", (KEY,), 12.0, 12.5)
    gradient.document("learn", (KEY,), 13.0, 14.0, window=WINDOW)
    server.snapshot(WINDOW, 20.0, 25.0, words=7)
    for traces in (crawler, gradient, server):
        traces.close()
    spans = [span for exporter in exporters for span in exporter.get_finished_spans()]
    assert [span.name for span in spans] == ["fetch", "prepare", "queue", "learn", "snapshot"]
    assert len({span.context.trace_id for span in spans[:4]}) == 1
    assert len({span.context.span_id for span in spans}) == 5
    assert (spans[0].start_time, spans[0].end_time) == (10_000_000_000, 11_000_000_000)
    (link,) = spans[3].links
    assert link.context.trace_id == spans[4].context.trace_id != spans[3].context.trace_id
    assert spans[0].resource.attributes["service.name"] == "yeoron-crawler"
    assert not any("비밀" in span.to_json() or "example.org" in span.to_json() for span in spans)


def test_each_process_traces_the_same_share_of_documents() -> None:
    keys = [f"https://example.org/{n}" for n in range(2_000)]
    one, other = (Traces(exporting.InMemorySpanExporter(), "x", "", 0.1) for _ in range(2))
    assert one.sampled(keys) == other.sampled(keys)
    assert 120 < len(one.sampled(keys)) < 280
    one.close()
    other.close()


def test_without_an_endpoint_nothing_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENDPOINT_VARIABLE, raising=False)
    assert open_traces("server").sampled([KEY]) == []
    code = (
        "import sys; from embedding.kernel.tracing import open_traces; open_traces('x'); "
        "import embedding.worker.process.gradient, embedding.worker.crawling.crawling; "
        "sys.exit(any(name.startswith('opentelemetry.exporter') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=120)
    assert done.returncode == 0


def test_an_endpoint_without_opentelemetry_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT_VARIABLE, "http://127.0.0.1:1/v1/traces")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(ConfigError, match=r"yeoron\[otel\]"):
        open_traces("server")
