"""Dated result files: figures together with hardware, versions and configuration."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from embedding.kernel.errors import InputError

PACKAGES = ("yeoron", "torch", "numba", "pyarrow", "distributed", "apache-airflow", "kiwipiepy")
RESULTS = Path("benchmarks/results")


def hardware() -> dict[str, Any]:
    """Processor, cores and memory of this machine."""
    model = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        pass
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """Versions of the packages that the figures depend on."""
    return {name: version(name) for name in PACKAGES}


def record_demo(summary: Path, folder: Path = RESULTS) -> Path:
    """Write the figures of a demo run (counts and times, no word of a text) as a result file."""
    try:
        run = json.loads(summary.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{summary}: no summary of a demo run; run `make demo` first.") from error
    keys = ("corpus", "documents", "tokens", "tokens_trained", "words_per_second", "lag", "seconds")
    result = {
        "what": "make demo: crawl, train, evaluate and report on one machine",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": hardware(),
        "versions": versions(),
        "config": run.get("config"),
        **{key: run[key] for key in keys},
        "peak_memory_gb": run["peak_memory_gb"],
        "sources": run["sources"],
        "snapshots": run["snapshots"],
    }
    result["corpus"] = Path(run["corpus"]).name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{datetime.now(UTC):%Y-%m-%d}-demo.json"
    path.write_text(json.dumps(result, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    return path
