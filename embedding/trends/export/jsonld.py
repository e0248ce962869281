"""A table as JSON-LD: a schema.org `Dataset` of one `Observation` a word."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any
from urllib.parse import quote

import pyarrow as pa

from embedding.trends.plain import to_plain
from embedding.trends.rows import TrendReport

CONTEXT = {"@vocab": "https://schema.org/", "yeoron": "urn:yeoron:"}
"""Terms without a prefix are schema.org's; figures are Yeoron's own, named as in its tables."""
_APART = ("window", "start", "end", "snapshot", "compared_with", "ranking", "word", "addresses")
"""Columns that have a term of schema.org, or that the whole has."""


def write_jsonld(table: pa.Table, report: TrendReport, what: str, file: IO[bytes]) -> None:
    """The rows of a table (columns `word` and figures) of a window's report.

    what  names them: findings or scores
    """
    window, before = report.snapshot, report.compared_with
    head: dict[str, Any] = {
        "@context": CONTEXT,
        "@id": f"urn:yeoron:{what}:{quote(window.id, safe='')}",
        "@type": "Dataset",
        "name": f"{what.capitalize()} of {window.label}",
        "temporalCoverage": f"{window.start}/{window.end}",
        "measurementTechnique": report.estimator,
        "yeoron:comparedWith": None if before is None else before.label,
    }
    text = json.dumps(head, ensure_ascii=False)
    file.write(f'{text[:-1]}, "hasPart": ['.encode())
    for at, row in enumerate(table.to_pylist()):
        line = json.dumps(_observation(row, window.id), ensure_ascii=False)
        file.write((("," if at else "") + "\n" + line).encode("utf-8", "replace"))
    file.write(b"\n]}\n")


def _observation(row: Mapping[str, Any], snapshot: str) -> dict[str, Any]:
    word, ranking = str(row["word"]), str(row.get("ranking", "moved"))
    names = (quote(each, safe="") for each in (snapshot, ranking, word))
    figures = {
        f"yeoron:{name}": value
        for name, value in to_plain(row).items()
        if name not in _APART and value is not None
    }
    citation = {"citation": row["addresses"]} if row.get("addresses") else {}
    return {
        "@id": f"urn:yeoron:observation:{':'.join(names)}",
        "@type": "Observation",
        "observationAbout": {"@type": "DefinedTerm", "name": word},
        "measuredProperty": {"@id": f"yeoron:{ranking}"},
        **figures,
        **citation,
    }
