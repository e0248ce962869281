"""Files for other programs: findings and scores of a window, graphs of neighbours, and vectors in
the formats other tools read."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from embedding.kernel.durable import replaced
from embedding.kernel.errors import ConfigError, InputError
from embedding.kernel.records import FloatArray, IntArray
from embedding.show.columns import as_csv, trend_record
from embedding.snapshots.nearness import directions_of, sureness
from embedding.snapshots.snapshot import Snapshot
from embedding.trends.nearest import nearest as nearest_words
from embedding.trends.plain import in_xml, to_plain
from embedding.trends.rows import RANKINGS, TrendReport

_TEXTS = pa.list_(pa.string())
FINDINGS = pa.schema(
    [
        *((name, pa.string()) for name in ("window", "start", "end", "snapshot", "compared_with")),
        *(("ranking", pa.string()), ("rank", pa.int32()), ("word", pa.string())),
        ("story", pa.string()),
        *((name, pa.float64()) for name in ("q", "p", "z", "score", "shift", "log_odds")),
        ("since", pa.string()),
        *((name, pa.int64()) for name in ("documents_before", "documents")),
        *((name, pa.int64()) for name in ("count_before", "count")),
        *((name, pa.float64()) for name in ("per_1000_before", "per_1000")),
        *((name, _TEXTS) for name in ("sources", "neighbours_before", "neighbours", "addresses")),
    ]
)
"""Columns of findings. `story` is the id of the story that a word is of."""
Addresses = Callable[[str], Sequence[str]]
"""Addresses of documents of the window that hold a word."""


def findings_table(report: TrendReport, addresses: Addresses) -> pa.Table:
    """The significant rows of every ranking, with `FINDINGS`."""
    story_of = {member.word: story.id for story in report.stories for member in story.words}
    before = report.compared_with
    head = {
        "window": report.snapshot.label,
        "start": report.snapshot.start,
        "end": report.snapshot.end,
        "snapshot": report.snapshot.id,
        "compared_with": None if before is None else before.label,
    }
    rows = [
        {
            **head,
            "ranking": name,
            "rank": rank,
            "story": story_of.get(row.word),
            "addresses": list(addresses(row.word)),
            **to_plain(trend_record(row)),
        }
        for name in RANKINGS
        for rank, row in enumerate(report.significant(name), start=1)
    ]
    return pa.Table.from_pylist(rows, schema=FINDINGS)


def write_parquet(table: pa.Table, file: IO[bytes]) -> None:
    """A table as Parquet."""
    pq.write_table(table, file, compression="zstd")


def write_csv(table: pa.Table, file: IO[bytes]) -> None:
    """A table as CSV: lists are joined by spaces, and no cell starts a formula."""
    text = as_csv(table.schema.names, table.to_pylist())
    # A byte order mark: spreadsheets take UTF-8 for another encoding without it.
    file.write(b"\xef\xbb\xbf" + text.encode("utf-8", "replace"))


WRITERS = {"parquet": write_parquet, "csv": write_csv}
"""By the name of a format."""


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
    names = (quote(part, safe="") for part in (snapshot, ranking, word))
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


_GEXF = "http://gexf.net/1.3"


@dataclass(frozen=True)
class NeighbourGraph:
    """n words with their counts, and k edges from a word to one of its nearest.

    words, counts           n of each, most frequent first
    source, target, weight  [k]: places in words, and how near they are (snapshots/nearness.py)
    """

    words: tuple[str, ...]
    counts: IntArray
    source: IntArray
    target: IntArray
    weight: FloatArray


def neighbour_graph(
    snapshot: Snapshot, words: int, nearest: int, without: Container[str] = ()
) -> NeighbourGraph:
    """The `nearest` neighbours of each of the `words` most frequent words, among these.

    without  words that are left out, such as those without a topic
    Raises InputError where the model has not learnt enough, and for fewer than two words.
    """
    if snapshot.unreadable is not None:
        raise InputError(f"snapshot {snapshot.id}: {snapshot.unreadable}")
    order = np.argsort(-np.asarray(snapshot.counts), kind="stable")
    all_words = snapshot.words
    rows = [at for at in order.tolist() if all_words[at] not in without][:words]
    if len(rows) < 2:
        raise InputError(f"snapshot {snapshot.id}: a graph needs two words, it has {len(rows)}.")
    chosen = np.array(rows)
    counts = np.asarray(snapshot.counts)[chosen].astype(np.int64)
    units = directions_of(np.asarray(snapshot.vectors[chosen], np.float32), snapshot.centre)
    sure = sureness(counts)
    every = np.arange(len(rows), dtype=np.int64)
    targets, weights = nearest_words(units, sure, every, every, nearest)
    return NeighbourGraph(
        words=tuple(all_words[at] for at in rows),
        counts=counts,
        source=np.repeat(every, targets.shape[1]),
        target=targets.reshape(-1),
        weight=weights.reshape(-1),
    )


def edges_table(graph: NeighbourGraph) -> pa.Table:
    """A row an edge: word, neighbour, nearness."""
    names = pa.array(graph.words, pa.string())
    return pa.table(
        {
            "word": names.take(pa.array(graph.source)),
            "neighbour": names.take(pa.array(graph.target)),
            "nearness": pa.array(graph.weight),
        }
    )


def write_gexf(graph: NeighbourGraph, file: IO[bytes]) -> None:
    """The graph as Gephi opens it. Edges of no or negative nearness are left out: Gephi takes a
    weight above 0 alone.
    """
    root = ET.Element("gexf", {"xmlns": _GEXF, "version": "1.3"})
    meta = ET.SubElement(root, "meta")
    ET.SubElement(meta, "creator").text = "Yeoron"
    body = ET.SubElement(root, "graph", {"defaultedgetype": "directed", "mode": "static"})
    attributes = ET.SubElement(body, "attributes", {"class": "node"})
    ET.SubElement(attributes, "attribute", {"id": "0", "title": "count", "type": "long"})
    nodes = ET.SubElement(body, "nodes")
    for at, (word, count) in enumerate(zip(graph.words, graph.counts.tolist(), strict=True)):
        label = in_xml(word)
        node = ET.SubElement(nodes, "node", {"id": str(at), "label": label})
        values = ET.SubElement(node, "attvalues")
        ET.SubElement(values, "attvalue", {"for": "0", "value": str(count)})
    edges = ET.SubElement(body, "edges")
    ends = (graph.source.tolist(), graph.target.tolist(), graph.weight.tolist())
    for at, (source, target, weight) in enumerate(zip(*ends, strict=True)):
        if weight > 0:
            edge = {"id": str(at), "source": str(source), "target": str(target)}
            ET.SubElement(edges, "edge", {**edge, "weight": f"{weight:.6f}"})
    ET.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)


def export(snapshot: Snapshot, format: str, out: Path) -> tuple[int, list[str]]:
    """Write `snapshot.vectors`, most frequent word first; how many, and the words left out.

    `out` is replaced in one step when everything is written. An empty word or one with white space
    in it cannot be told apart in the word2vec formats: it is left out there. Raises InputError for
    a file that cannot be written and when no word is left, ConfigError without gensim.
    """
    write = _WRITERS[format]
    order = np.argsort(-snapshot.counts, kind="stable")
    left_out: list[str] = []
    if write not in (_keyedvectors, _parquet):
        words = snapshot.words
        fit = np.array([len(words[row].split()) == 1 for row in order], bool)
        left_out = [words[row] for row in order[~fit]]
        order = order[fit]
    if not len(order):
        raise InputError(
            f"snapshot {snapshot.id}: no word is free of white space, and {format} holds no other; "
            "keyedvectors and parquet are accepted."
        )
    try:
        with replaced(out) as file:
            write(snapshot, order, file)
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror or error}.") from error
    return len(order), left_out


def _binary(snapshot: Snapshot, order: IntArray, file: IO[bytes]) -> None:
    """The binary file of word2vec.c."""
    words, vectors = snapshot.words, snapshot.vectors
    file.write(f"{len(order)} {snapshot.dim}\n".encode())
    for row in order:
        file.write(words[row].encode() + b" " + vectors[row].astype("<f4").tobytes() + b"\n")


def _text(snapshot: Snapshot, order: IntArray, file: IO[bytes]) -> None:
    """Its text file; nine digits, so that float32 survives the round trip."""
    words, vectors = snapshot.words, snapshot.vectors
    line = "%s" + " %.9g" * snapshot.dim + "\n"
    file.write(f"{len(order)} {snapshot.dim}\n".encode())
    for row in order:
        file.write((line % (words[row], *vectors[row].tolist())).encode())


def _keyedvectors(snapshot: Snapshot, order: IntArray, file: IO[bytes]) -> None:
    """gensim's own file (`KeyedVectors.load`), with counts."""
    try:
        from gensim.models import KeyedVectors
    except ImportError as error:
        raise ConfigError(
            "export format keyedvectors: gensim is not installed; install it, or export word2vec."
        ) from error
    vectors = KeyedVectors(snapshot.dim, dtype=np.float32)
    vectors.add_vectors([snapshot.words[row] for row in order], snapshot.vectors[order])
    vectors.expandos["count"] = snapshot.counts[order]
    vectors.save(file)


def _parquet(snapshot: Snapshot, order: IntArray, file: IO[bytes]) -> None:
    """Columns word, count and vector (a list of float32)."""
    vectors = np.ascontiguousarray(snapshot.vectors[order], dtype=np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), snapshot.dim)
    words = [snapshot.words[row] for row in order]
    table = pa.table({"word": words, "count": snapshot.counts[order], "vector": column})
    pq.write_table(table, file, compression="zstd")


_WRITERS: dict[str, Callable[[Snapshot, IntArray, IO[bytes]], None]] = {
    "word2vec": _binary,
    "word2vec-text": _text,
    "keyedvectors": _keyedvectors,
    "parquet": _parquet,
}
