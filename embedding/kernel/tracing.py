"""Traces of documents, from fetching to the snapshot, by OpenTelemetry (extra `otel`).

A document passes through several processes. Each makes its spans by itself, and they meet all the
same: the trace's id is a digest of the document's key, and whether a document is traced at all its
digest says, too. So nothing travels with the text, and no span holds an address or a word. The span
of a window's snapshot is in a trace of the window's, to which what was learnt of it is linked.

Without `trace.endpoint` nothing of OpenTelemetry is imported.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from embedding.kernel.errors import ConfigError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import SpanContext

ENDPOINT_VARIABLE = "YEORON_TRACE__ENDPOINT"
SAMPLE_VARIABLE = "YEORON_TRACE__SAMPLE"
"""The settings of `[trace]`, as every process that is started inherits them."""
DEFAULT_SAMPLE = 0.01


def digest(text: str) -> int:
    """128 bits by which a document or a window is named in traces."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "big")


class Traces:
    """What a process tells of documents that passed through it. Times are Unix seconds.

    exporter  that is given the spans; None: there are none
    sample    share of the documents that are traced
    """

    def __init__(
        self,
        exporter: SpanExporter | None = None,
        process: str = "",
        node: str = "",
        sample: float = 0.0,
    ) -> None:
        self._most = int(sample * 2**128)
        self._provider: TracerProvider | None = None
        if exporter is None:
            return
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        resource = Resource.create(
            {"service.name": f"yeoron-{process}", "service.instance.id": node or process}
        )
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("yeoron")

    def sampled(self, keys: Iterable[str]) -> list[str]:
        """Those of the documents that are traced: the same in each process."""
        return [key for key in keys if digest(key) < self._most] if self._most else []

    def document(
        self,
        name: str,
        keys: Iterable[str],
        began: float,
        ended: float,
        *,
        window: int | None = None,
    ) -> None:
        """A span of each traced document.

        window  start (Unix seconds) of the window that it was learnt for: its snapshot is linked
        """
        linked = () if window is None else (digest(_window(window)),)
        for key in self.sampled(keys):
            trace = digest(key)
            attributes: dict[str, str | int] = {"yeoron.document": f"{trace:032x}"}
            if window is not None:
                attributes["yeoron.window"] = window
            self._span(name, trace, began, ended, attributes, linked)

    def snapshot(self, window: int, began: float, ended: float, words: int) -> None:
        """The span of a snapshot."""
        if self._provider is not None:
            attributes = {"yeoron.window": window, "yeoron.words": words}
            self._span("snapshot", digest(_window(window)), began, ended, attributes)

    def close(self) -> None:
        """Send what is left."""
        if self._provider is not None:
            self._provider.shutdown()

    def _span(
        self,
        name: str,
        trace: int,
        began: float,
        ended: float,
        attributes: Mapping[str, str | int],
        linked: Sequence[int] = (),
    ) -> None:
        from opentelemetry.trace import Link, NonRecordingSpan, set_span_in_context

        span = self._tracer.start_span(
            name,
            context=set_span_in_context(NonRecordingSpan(_context(trace))),
            attributes=attributes,
            links=[Link(_context(other)) for other in linked],
            start_time=int(began * 1e9),
        )
        span.end(int(max(began, ended) * 1e9))


NO_TRACES = Traces()


def _window(start: int) -> str:
    return f"window {start}"


def _context(trace: int) -> SpanContext:
    """What all spans of one trace begin from; it is no span itself."""
    from opentelemetry.trace import SpanContext, TraceFlags

    span = (trace >> 64) or 1
    return SpanContext(trace or 1, span, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def open_traces(process: str, node: str = "") -> Traces:
    """As the environment says; ConfigError where OpenTelemetry is asked for and not installed."""
    endpoint = os.environ.get(ENDPOINT_VARIABLE, "")
    if not endpoint:
        return NO_TRACES
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise ConfigError(
            f"trace.endpoint {endpoint}: OpenTelemetry is not installed; `pip install "
            "yeoron[otel]`, or leave the setting out."
        ) from error
    sample = float(os.environ.get(SAMPLE_VARIABLE) or DEFAULT_SAMPLE)
    return Traces(OTLPSpanExporter(endpoint=endpoint), process, node, sample)
