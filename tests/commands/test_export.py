"""`yeoron export`: files that other programs open, whole or not there."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import networkx as nx
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from embedding.cli import app
from embedding.kernel.errors import ConfigError, InputError
from embedding.snapshots.store import SnapshotStore

FORMULAS = ("=HYPERLINK(A1)", "+cmd", "-cmd", "@SUM(A1)")


@pytest.fixture(scope="module")
def store(planted, tmp_path_factory) -> Path:
    """Four windows; words that a spreadsheet would run are born in the last."""
    folder = tmp_path_factory.mktemp("export") / "store"
    born = {"신천지": ("바이러스", 3), **dict.fromkeys(FORMULAS, ("정치", 3))}
    planted.make_store(str(folder), planted.Plan(born=born, fillers=200))
    return folder


def run(*words: object) -> str:
    found = CliRunner().invoke(app, ["export", *map(str, words)])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    assert found.exit_code == 0, found.output
    return found.output


@pytest.mark.parametrize("what", ["findings", "scores"])
def test_one_table_in_three_formats(store, tmp_path, what):
    for name in ("parquet", "csv", "jsonld"):
        run(what, "--snapshots", store, "-o", tmp_path / f"t.{name}")
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.num_rows
    text = (tmp_path / "t.csv").read_text("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == table.schema.names
    words = table["word"].to_pylist()
    assert [row["word"].removeprefix("'") for row in rows] == words
    linked = json.loads((tmp_path / "t.jsonld").read_text("utf-8"))
    assert [one["observationAbout"]["name"] for one in linked["hasPart"]] == words
    assert {"코로나"} <= set(words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv", "t.jsonld", "t.parquet"]


def test_no_cell_of_a_table_starts_a_formula(store, tmp_path):
    run("findings", "--snapshots", store, "-o", tmp_path / "t.csv")
    text = (tmp_path / "t.csv").read_text("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {f"'{word}" for word in FORMULAS} <= {row["word"] for row in rows}
    figures = {"z", "score", "log_odds", "shift"}
    for row in rows:
        for name, cell in row.items():
            assert name in figures or cell[:1] not in set("=+-@")


def test_findings_say_what_they_are_of(store, tmp_path):
    run("findings", "2020-02", "--snapshots", store, "-o", tmp_path / "f.parquet")
    rows = pq.read_table(tmp_path / "f.parquet").to_pylist()
    moved = next(row for row in rows if row["ranking"] == "moved")
    assert (moved["word"], moved["window"], moved["compared_with"]) == (
        "코로나",
        "2020-02",
        "2020-01",
    )
    assert moved["neighbours"]
    assert moved["q"] < 0.05
    assert moved["story"]


def test_linked_data_has_terms_that_are_known(store, tmp_path):
    run("findings", "--snapshots", store, "-o", tmp_path / "f.jsonld")
    found = json.loads((tmp_path / "f.jsonld").read_text("utf-8"))
    assert found["@context"]["@vocab"] == "https://schema.org/"
    schema = {"name", "temporalCoverage", "measurementTechnique", "hasPart"}
    schema |= {"observationAbout", "measuredProperty", "citation"}

    def look(value) -> None:
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                assert {k for k in one if k[0] != "@" and not k.startswith("yeoron:")} <= schema
                for each in one.values():
                    look(each)

    look({name: value for name, value in found.items() if name != "@context"})
    ids = [one["@id"] for one in found["hasPart"]]
    assert len(set(ids)) == len(ids)


def test_gephi_opens_the_neighbours(store, tmp_path):
    run("neighbours", "--snapshots", store, "-o", tmp_path / "g.gexf", "--words", 60, "-n", 5)
    graph = nx.read_gexf(tmp_path / "g.gexf")
    assert graph.number_of_nodes() == 60
    assert max(dict(graph.out_degree()).values()) == 5
    words = nx.get_node_attributes(graph, "label")
    counts = nx.get_node_attributes(graph, "count")
    snapshot = SnapshotStore(store).open()
    assert counts["0"] == max(snapshot.counts)
    at = next(node for node, word in words.items() if word == "코로나")
    near = {words[other] for other in graph.successors(at)}
    # Those of the whole vocabulary that are among the words of the graph come first.
    among = [word for word, _ in snapshot.neighbours("코로나", 200) if word in words.values()]
    assert near == set(among[: len(near)])
    run("neighbours", "--snapshots", store, "-o", tmp_path / "g.csv", "--words", 60, "-n", 5)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "g.csv").read_text("utf-8-sig"))))
    assert len(rows) == 300


def test_vectors_of_a_window_open_in_gensim(store, tmp_path):
    gensim = pytest.importorskip("gensim.models")
    run("vectors", "2020-01", "--snapshots", store, "-o", tmp_path / "v.kv")
    run("vectors", store, "-o", tmp_path / "latest.bin")
    found = gensim.KeyedVectors.load(str(tmp_path / "v.kv"))
    named = SnapshotStore(store)
    snapshot = named.open(named.named("2020-01"))
    assert (found["코로나"] == snapshot.vectors[snapshot.index("코로나")]).all()
    latest = gensim.KeyedVectors.load_word2vec_format(str(tmp_path / "latest.bin"), binary=True)
    assert "신천지" in latest


@pytest.mark.parametrize(
    ("what", "accepted"),
    [
        ("findings", "parquet, csv, jsonld"),
        ("scores", "parquet, csv, jsonld"),
        ("vectors", "word2vec, word2vec-text, "),
    ],
)
def test_a_refused_format_names_those_accepted(store, tmp_path, what, accepted):
    out = tmp_path / "new" / "x.doc"
    for words in (["-o", out], ["-o", out, "--format", "doc"], ["--snapshots", store]):
        with pytest.raises(ConfigError, match=accepted):
            run(what, *words)
    assert not out.parent.exists()


@pytest.mark.parametrize(
    ("words", "kind", "part"),
    [
        (("nothing",), ConfigError, "findings, scores, vectors, neighbours"),
        (("findings", "2031-01"), InputError, "2031-01"),
        (("vectors", "2031-01", "--format", "word2vec"), InputError, "2031-01"),
    ],
)
def test_what_is_not_there_gets_a_sentence(store, tmp_path, words, kind, part):
    with pytest.raises(kind, match=part):
        run(*words, "--snapshots", store, "-o", tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(store, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be written"):
        run("findings", "--snapshots", store, "-o", tmp_path / "file" / "x.csv")
