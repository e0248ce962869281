"""Where runs of the benchmarks write; what a claim rests on is copied to results (README.md)."""

from __future__ import annotations

from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / "var" / "benchmarks"
