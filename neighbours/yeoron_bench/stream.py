"""The figures of the platform's last demo run as a result file."""

from __future__ import annotations

import json
from pathlib import Path

from embedding.kernel.errors import InputError
from yeoron_bench.results import RESULTS, facts, keep

_PACKAGES = ("yeoron", "torch", "numba", "pyarrow", "distributed", "apache-airflow", "kiwipiepy")
FIGURES = ("documents", "tokens", "tokens_trained", "words_per_second", "lag", "seconds")


def record_demo(summary: Path, results: Path = RESULTS) -> Path:
    """Write counts and times of the run that `summary` is of; no word of a text is among them."""
    try:
        run = json.loads(summary.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{summary}: no summary of a demo run; run `make demo` first.") from error
    report = {
        **facts("stream", _PACKAGES),
        "config": run.get("config"),
        "corpus": Path(run["corpus"]).name,
        **{name: run[name] for name in FIGURES},
        "peak_memory_gb": run["peak_memory_gb"],
        "sources": run["sources"],
        "snapshots": run["snapshots"],
    }
    return keep(report, results=results)
