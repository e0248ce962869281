"""Words whose change of meaning people have judged, in the layout of SemEval-2020 task 1.

    DIR/corpus1/lemma/*.txt[.gz]    sentences before, one a line, lemmas with a blank between
    DIR/corpus2/lemma/*.txt[.gz]    sentences after
    DIR/targets.txt                 one target a line, spelt as in the corpora (English: word_nn)
    DIR/truth/graded.txt            target TAB how much it changed, a number
    DIR/truth/binary.txt            target TAB 1 (it lost or gained a sense) or 0

Schlechtweg et al. 2020, "SemEval-2020 Task 1: Unsupervised Lexical Semantic Change Detection".
"""

from __future__ import annotations

import math
import unicodedata
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embedding.kernel.errors import InputError
from embedding.kernel.records import CodeArray, FloatArray, IntArray
from yeoron_bench.corpora import lines_of

_FEWEST = 3
"""Targets below which a rank correlation says nothing."""
_NAMED = 5
"""Targets that a sentence names at most."""


@dataclass(frozen=True)
class Sentences:
    """One side: tokens int32 [n], rows of `ChangeSet.words`; offsets int64 [sentences + 1]."""

    tokens: CodeArray
    offsets: IntArray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def counts(self, words: int) -> IntArray:
        """int64 [words]: mentions of each word."""
        return np.bincount(self.tokens, minlength=words).astype(np.int64)

    def draw(self, tokens: int, seed: int) -> Sentences:
        """Sentences drawn by chance without repetition until there are `tokens`, in their order."""
        if tokens >= len(self.tokens):
            return self
        order = np.random.default_rng(seed).permutation(len(self))
        lengths = np.diff(self.offsets)
        enough = int(np.searchsorted(np.cumsum(lengths[order]), tokens)) + 1
        chosen = np.sort(order[:enough])
        inside = np.repeat(np.isin(np.arange(len(self)), chosen), lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths[chosen])]).astype(np.int64)
        return Sentences(self.tokens[inside], offsets)


@dataclass(frozen=True)
class ChangeSet:
    """Two corpora, and how much each of t targets changed between them.

    words    every word of both corpora; tokens of the sides are rows of it
    targets  int64 [t], rows of `words`
    graded   float32 [t], higher: changed more
    binary   bool [t]
    """

    name: str
    words: tuple[str, ...]
    before: Sentences
    after: Sentences
    targets: IntArray
    graded: FloatArray
    binary: npt.NDArray[np.bool_]


def read_change_set(folder: Path) -> ChangeSet:
    """Read a folder of this layout; words are brought to Unicode NFC.

    Raises InputError in one sentence with the file, the line and what is accepted when a file is
    missing or malformed, or a target does not occur in a corpus.
    """
    if not folder.is_dir():
        raise InputError(
            f"{folder}: there is no such folder; one with corpus1/lemma, corpus2/lemma, "
            "targets.txt and truth is expected."
        )
    targets = _targets(folder / "targets.txt")
    graded = _truth(folder / "truth" / "graded.txt", targets, "a number")
    binary = _truth(folder / "truth" / "binary.txt", targets, "0 or 1", {"0", "1"})
    rows: dict[str, int] = {}
    sides = [_side(folder / f"corpus{which}" / "lemma", rows) for which in (1, 2)]
    for which, side in enumerate(sides, start=1):
        counts = side.counts(len(rows))
        missing = [target for target in targets if target not in rows or not counts[rows[target]]]
        if missing:
            raise InputError(
                f"{folder / 'targets.txt'}: {_some(missing)} does not occur in corpus{which}; "
                "each target must occur in both corpora, spelt as there."
            )
    return ChangeSet(
        name=folder.resolve().name,
        words=tuple(rows),
        before=sides[0],
        after=sides[1],
        targets=np.array([rows[target] for target in targets], dtype=np.int64),
        graded=np.array(graded, dtype=np.float32),
        binary=np.array(binary) > 0,
    )


def _side(folder: Path, rows: dict[str, int]) -> Sentences:
    files = sorted(path for path in folder.glob("*") if path.name.endswith((".txt", ".txt.gz")))
    if not files:
        raise InputError(
            f"{folder}: it holds no corpus; files *.txt or *.txt.gz with one sentence a line are "
            "expected."
        )
    tokens, offsets = array("i"), array("q", [0])
    for path in files:
        for _, line in _lines(path):
            tokens.extend(rows.setdefault(word, len(rows)) for word in line.split())
            offsets.append(len(tokens))
    if not tokens:
        raise InputError(f"{folder}: its files hold no word; one sentence a line is expected.")
    return Sentences(np.frombuffer(tokens, dtype=np.int32), np.frombuffer(offsets, dtype=np.int64))


def _targets(path: Path) -> list[str]:
    numbers: dict[str, int] = {}
    for number, line in _lines(path):
        if len(line.split()) != 1:
            raise InputError(f"{path}, line {number}: one target a line is expected.")
        if line in numbers:
            raise InputError(
                f"{path}, line {number}: {line} stands in line {numbers[line]} too; each target is "
                "listed once."
            )
        numbers[line] = number
    if len(numbers) < _FEWEST:
        raise InputError(
            f"{path}: {len(numbers)} targets; a rank correlation needs at least {_FEWEST}."
        )
    return list(numbers)


def _truth(
    path: Path, targets: Sequence[str], accepted: str, values: set[str] | None = None
) -> list[float]:
    values_by_word: dict[str, float] = {}
    known = set(targets)
    for number, line in _lines(path):
        cells = line.split("\t")
        value = _number(cells[-1].strip(), values) if len(cells) == 2 else None
        if value is None:
            raise InputError(f"{path}, line {number}: a target, a tab and {accepted} are expected.")
        word = cells[0].strip()
        if word not in known:
            raise InputError(f"{path}, line {number}: {word[:80]} is no target of targets.txt.")
        if word in values_by_word:
            raise InputError(f"{path}, line {number}: {word} has a value already.")
        values_by_word[word] = value
    missing = [target for target in targets if target not in values_by_word]
    if missing:
        raise InputError(f"{path}: {_some(missing)} has no value; each target needs one.")
    return [values_by_word[target] for target in targets]


def _number(cell: str, values: set[str] | None) -> float | None:
    if values is not None and cell not in values:
        return None
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is not empty."""
    for number, line in enumerate(lines_of(path, "text"), start=1):
        text = line.strip() if line.isascii() else unicodedata.normalize("NFC", line.strip())
        if text:
            yield number, text


def _some(words: Sequence[str]) -> str:
    more = f" and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return ", ".join(words[:_NAMED]) + more
