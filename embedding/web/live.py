"""The live panel: what the parameter server's /status says about the stream now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from embedding.trends.recent import Fresh

KEPT_S = 2.0


class Stream:
    """Asks `/status`, at most every two seconds."""

    def __init__(self, url: str | None, timeout_s: float = 1.5) -> None:
        self._url = url
        self._timeout = timeout_s
        self._kept: Fresh[dict[str, Any]] = Fresh(KEPT_S)

    def read(self) -> dict[str, Any]:
        """`{"state": "off" | "unreachable" | "live", …}`, never raises."""
        url = self._url
        return {"state": "off"} if url is None else self._kept.get(lambda: self._ask(url))

    def _ask(self, url: str) -> dict[str, Any]:
        try:
            # The server is on this machine or network: a proxy of the environment must not see it.
            with httpx.Client(timeout=self._timeout, trust_env=False) as client:
                answer = client.get(url)
            answer.raise_for_status()
            return summary(answer.json())
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, TypeError, AttributeError):
            return {"state": "unreachable"}


def summary(status: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of the panel; what the server does not say is None."""
    lag = status.get("lag") or {}
    sources = status.get("sources") or {}
    windows = status.get("windows") or {}
    return {
        "state": "live",
        "words_per_second": _number(status.get("words_per_second")),
        "lag_p50_s": _number(lag.get("p50_s")),
        "lag_p95_s": _number(lag.get("p95_s")),
        "documents": _number(status.get("documents")),
        "watermark": status.get("watermark"),
        "nodes": len(status.get("nodes") or {}),
        "snapshots": sum(1 for one in windows.values() if one.get("snapshot")),
        "sources": [
            {
                "source": str(name),
                "documents": _number(figures.get("documents")),
                "idle_s": _number(figures.get("idle_s")),
                "lag_p50_s": _number(figures.get("lag_p50_s")),
            }
            for name, figures in sorted(sources.items())
        ],
        "faults": status.get("faults") or {},
    }


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return None
