"""Reading a set of judged words: what is there, and one sentence for what is not."""

from __future__ import annotations

import shutil
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from embedding.kernel.errors import InputError
from yeoron_bench.changeset import Sentences, read_change_set

sys.path.insert(0, str(Path(__file__).parent))

import changesets


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return changesets.write(tmp_path / "set", sentences=90)


def test_both_corpora_are_read_whole_and_targets_in_their_order(folder: Path) -> None:
    found = read_change_set(folder)
    assert found.name == "set"
    assert [found.words[at] for at in found.targets] == changesets.TARGETS
    assert found.graded.tolist() == pytest.approx(changesets.STRENGTHS)
    assert found.binary.tolist() == [one > 0 for one in changesets.STRENGTHS]
    for which, side in ((1, found.before), (2, found.after)):
        assert len(side) == 90  # a.txt and b.txt.gz
        first = (folder / f"corpus{which}" / "lemma" / "a.txt").read_text().split("\n")[0].split()
        assert [found.words[at] for at in side.tokens[: side.offsets[1]]] == first
        assert side.counts(len(found.words))[found.targets].tolist() == [10] * 9


def test_words_are_the_same_however_their_letters_are_composed(folder: Path) -> None:
    for path in (folder / "targets.txt", *(folder / "truth").iterdir()):
        path.write_text(path.read_text().replace("Zuga", "Züga"), encoding="utf-8")
    for path in folder.glob("corpus*/lemma/a.txt"):
        text = path.read_text().replace("Zuga", unicodedata.normalize("NFD", "Züga"))
        path.write_text(text, encoding="utf-8")
    found = read_change_set(folder)
    assert found.words[found.targets[0]] == "Züga_nn"


def test_a_draw_keeps_whole_sentences_and_depends_on_its_seed_alone() -> None:
    lengths = [3, 1, 4, 1, 5, 9, 2, 6]
    side = Sentences(
        np.repeat(np.arange(8), lengths).astype(np.int32), np.cumsum([0, *lengths]).astype(np.int64)
    )
    drawn = side.draw(12, seed=1)
    assert 12 <= len(drawn.tokens) < len(side.tokens)
    for start, end in zip(drawn.offsets[:-1], drawn.offsets[1:], strict=True):
        assert set(drawn.tokens[start:end]) == {drawn.tokens[start]}
        assert end - start == lengths[drawn.tokens[start]]
    assert np.array_equal(drawn.tokens, side.draw(12, seed=1).tokens)
    assert any(not np.array_equal(drawn.tokens, side.draw(12, seed=at).tokens) for at in (2, 3))
    assert side.draw(31, seed=1) is side


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda f: shutil.rmtree(f), "there is no such folder"),
        (lambda f: (f / "targets.txt").unlink(), "targets.txt: there is no such file"),
        (lambda f: (f / "truth" / "binary.txt").unlink(), "binary.txt: there is no such file"),
        (lambda f: shutil.rmtree(f / "corpus2"), "lemma: it holds no corpus"),
        (lambda f: _write(f / "targets.txt", "Zuga_nn\nZugb_nn\n"), "at least 3"),
        (lambda f: _write(f / "targets.txt", "a b\n"), "line 1: one target a line"),
        (lambda f: _append(f / "targets.txt", "Zuga_nn\n"), "line 10: Zuga_nn stands in line 1"),
        (lambda f: _append(f / "truth" / "graded.txt", "Zuga_nn\t1\n"), "has a value already"),
        (lambda f: _append(f / "truth" / "graded.txt", "none\t1\n"), "line 10: none is no target"),
        (lambda f: _write(f / "truth" / "graded.txt", "Zuga_nn 1\n"), "line 1: a target, a tab"),
        (lambda f: _write(f / "truth" / "graded.txt", "Zuga_nn\tnan\n"), "and a number"),
        (lambda f: _write(f / "truth" / "binary.txt", "Zuga_nn\t0.5\n"), "and 0 or 1"),
        (lambda f: _write(f / "truth" / "binary.txt", "Zuga_nn\t1\n"), "and 3 more has no value"),
        (lambda f: _replaced(f, 2, "Zugc_nn"), "Zugc_nn does not occur in corpus2"),
        (lambda f: (f / "targets.txt").write_bytes(b"\xff\xfe\x00"), "not UTF-8"),
        (lambda f: _damaged(f / "corpus1" / "lemma" / "b.txt.gz"), "b.txt.gz: it cannot be read"),
    ],
)
def test_what_is_missing_or_malformed_is_said_in_one_sentence(folder, spoil, sentence) -> None:
    spoil(folder)
    with pytest.raises(InputError) as raised:
        read_change_set(folder)
    said = str(raised.value)
    assert sentence in said
    assert said.endswith(".")
    assert "\n" not in said


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _append(path: Path, text: str) -> None:
    _write(path, path.read_text(encoding="utf-8") + text)


def _replaced(folder: Path, which: int, word: str) -> None:
    import gzip

    lemma = folder / f"corpus{which}" / "lemma"
    _write(lemma / "a.txt", (lemma / "a.txt").read_text().replace(word, "other"))
    with gzip.open(lemma / "b.txt.gz", "rt") as file:
        text = file.read()
    with gzip.open(lemma / "b.txt.gz", "wt") as file:
        file.write(text.replace(word, "other"))


def _damaged(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])
