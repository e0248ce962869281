"""Exports open in gensim."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
from gensim.models import KeyedVectors

from embedding.exchange.protocol import no_counts
from embedding.kernel.errors import InputError
from embedding.show.export import export


def _read(kind, path):
    if kind == "keyedvectors":
        return KeyedVectors.load(str(path))
    return KeyedVectors.load_word2vec_format(str(path), binary=kind == "word2vec")


GENSIM = ["word2vec", "word2vec-text", "keyedvectors"]


@pytest.mark.parametrize("kind", GENSIM)
def test_gensim_reads_what_was_written(folder, make, tmp_path, kind):
    data = make(counts=np.array([5, 9, 1, 7, 3, 2, 4, 8]))
    snapshot = folder.open(folder.publish(data).id)
    out = tmp_path / "new" / "vectors.bin"
    assert export(snapshot, kind, out) == (8, [])
    read = _read(kind, out)
    assert list(read.index_to_key) == [data.words[at] for at in np.argsort(-data.counts)]
    for row, word in enumerate(data.words):
        np.testing.assert_array_equal(read[word], data.vectors[row])
    assert [path.name for path in out.parent.iterdir()] == ["vectors.bin"]
    ours = [word for word, _ in snapshot.neighbours("코로나", 4)]
    assert [word for word, _ in read.most_similar("코로나", topn=4)] == ours
    if kind == "keyedvectors":
        assert read.get_vecattr("마스크", "count") == 9


ODD = ("코로나", "두 낱말", "", "a\nb", "일본", "<phone>", '"', "👍🏽", "\ufeff", "e\u0301", "-0.5")


@pytest.mark.parametrize("kind", ["word2vec", "word2vec-text"])
def test_words_with_white_space_are_left_out_and_named(folder, make, tmp_path, kind):
    data = _of_words(make, ODD)
    snapshot = folder.open(folder.publish(data).id)
    written, left_out = export(snapshot, kind, tmp_path / "out")
    assert (written, sorted(left_out)) == (8, ["", "a\nb", "두 낱말"])
    assert left_out[0] == "두 낱말"
    read = _read(kind, tmp_path / "out")
    assert read.index_to_key == [word for word in ODD if word not in ("두 낱말", "", "a\nb")]
    for word in read.index_to_key:
        np.testing.assert_array_equal(read[word], data.vectors[ODD.index(word)])


def test_gensims_own_file_holds_every_word(folder, make, tmp_path):
    snapshot = folder.open(folder.publish(_of_words(make, ODD)).id)
    assert export(snapshot, "keyedvectors", tmp_path / "out") == (len(ODD), [])
    assert _read("keyedvectors", tmp_path / "out").index_to_key == list(ODD)


def test_parquet_holds_every_word_with_count_and_vector(folder, make, tmp_path):
    data = _of_words(make, ODD)
    snapshot = folder.open(folder.publish(data).id)
    assert export(snapshot, "parquet", tmp_path / "out") == (len(ODD), [])
    table = pq.read_table(tmp_path / "out")
    assert table["word"].to_pylist() == list(ODD)
    assert table["count"].to_pylist() == data.counts.tolist()
    np.testing.assert_array_equal(np.stack(table["vector"].to_numpy()), data.vectors)


def test_nothing_is_written_when_no_word_is_left(folder, make, tmp_path):
    snapshot = folder.open(folder.publish(_of_words(make, ("a b", "c d"))).id)
    with pytest.raises(InputError, match="white space"):
        export(snapshot, "word2vec", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def _of_words(make, words):
    n = len(words)
    return make(words=words, by_source=no_counts(), counts=np.arange(n, 0, -1, dtype=np.int64))


def test_a_place_that_cannot_be_written(folder, make, tmp_path):
    snapshot = folder.open(folder.publish(make()).id)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be written"):
        export(snapshot, "word2vec", tmp_path / "file" / "out")


def test_a_failed_export_keeps_the_old_file(folder, make, tmp_path, monkeypatch):
    snapshot = folder.open(folder.publish(make()).id)
    out = tmp_path / "out"
    out.write_text("old")
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(InputError, match="full"):
        export(snapshot, "word2vec", out)
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "snapshots"]
