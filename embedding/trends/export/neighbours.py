"""Which words of a snapshot are used alike, as a graph: for Gephi (GEXF 1.3), or as a table."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Container
from dataclasses import dataclass
from typing import IO

import numpy as np
import pyarrow as pa

from embedding.kernel.errors import InputError
from embedding.kernel.records import FloatArray, IntArray
from embedding.snapshots.nearness import directions_of, sureness
from embedding.snapshots.snapshot import Snapshot
from embedding.trends.plain import in_xml

_GEXF = "http://gexf.net/1.3"
_BLOCK = 512
"""Words whose neighbours are looked for at once."""


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
    k = min(nearest, len(rows) - 1)
    targets, weights = [], []
    for at in range(0, len(rows), _BLOCK):
        figures = (units[at : at + _BLOCK] @ units.T) * sure
        own = np.arange(len(figures))
        figures[own, own + at] = -np.inf
        best = np.argsort(-figures, axis=1, kind="stable")[:, :k]
        targets.append(best)
        weights.append(np.take_along_axis(figures, best, axis=1))
    return NeighbourGraph(
        words=tuple(all_words[at] for at in rows),
        counts=counts,
        source=np.repeat(np.arange(len(rows)), k),
        target=np.concatenate(targets).reshape(-1).astype(np.int64),
        weight=np.concatenate(weights).reshape(-1).astype(np.float32),
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
            places = {"id": str(at), "source": str(source), "target": str(target)}
            ET.SubElement(edges, "edge", {**places, "weight": f"{weight:.6f}"})
    ET.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
