"""Born, risen and fallen words where nothing happened: documents assigned to windows by chance.

    python -m benchmarks nullmonths reviews=reviews.jsonl petitions=petitions.jsonl --seeds 3

Each file is dated JSONL whose text is cut into words already. Every window keeps as many documents
as it has; which ones, chance decides. Then each word that a report calls born, risen or fallen is a
false call. Of windows without any change, at most `trends.false_discovery` should have one in a
ranking (Benjamini and Hochberg 1995: with nothing to find, the rate of false discoveries is the
chance of any). The windows as they are stand above, for comparison; of a ranking the report's rows
are looked at, 50 at most.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from benchmarks.kept import RESULTS
from benchmarks.months import PACKAGES, Bare
from embedding.kernel.errors import InputError, YeoronError
from embedding.kernel.records import IntArray, Phrase
from embedding.snapshots.snapshot import Snapshot
from embedding.trends.arrivals import rank_arrivals
from embedding.trends.config import TrendsConfig
from embedding.trends.copies import with_copies_once
from embedding.trends.frequency import Frequency
from embedding.trends.material import ReportInput
from embedding.worker.spec import CorpusShare
from yeoron_bench.datedlines import dated_lines
from yeoron_bench.results import facts, keep

CONFIG = TrendsConfig()
RANKINGS = ("born", "risen", "fallen")
ROW = 5
"""Documents that give a word its row; `server.min_count` is about mentions."""
LEAST_DOCUMENTS = 100
"""A window of fewer documents is left out."""


@dataclass(frozen=True)
class Corpus:
    """Documents in the order of time, as codes of the distinct words that each holds.

    codes   int32 [n], words of document after document; ends int64 [D + 1]
    months  of the windows; sizes int64 [T], documents of each
    """

    words: list[str]
    codes: IntArray
    ends: IntArray
    months: list[str]
    sizes: IntArray


def read(path: Path, last: int | None = None) -> Corpus:
    """A dated corpus by months, or its `last` so many."""
    texts: dict[str, list[list[int]]] = {}
    rows: dict[str, int] = {}
    for line in dated_lines(CorpusShare(path=str(path))):
        codes = sorted({rows.setdefault(word, len(rows)) for word in line.text.split()})
        month = datetime.fromtimestamp(line.when, UTC).strftime("%Y-%m")
        texts.setdefault(month, []).append(codes)
    months = [month for month in sorted(texts) if len(texts[month]) >= LEAST_DOCUMENTS]
    months = months[-last:] if last else months
    if len(months) < 2:
        raise InputError(f"{path}: two months of {LEAST_DOCUMENTS} documents are needed.")
    documents = [document for month in months for document in texts[month]]
    lengths = [len(document) for document in documents]
    return Corpus(
        words=list(rows),
        codes=np.concatenate([np.asarray(codes_of, dtype=np.int32) for codes_of in documents]),
        ends=np.concatenate([[0], np.cumsum(lengths)]),
        months=months,
        sizes=np.array([len(texts[month]) for month in months]),
    )


def assigned(corpus: Corpus, seed: int | None) -> list[tuple[Frequency, IntArray]]:
    """The windows' counts of words that have a row when it is cut, and int64 [W] of all words.

    seed  None: as they are, else with documents assigned by chance
    """
    lengths = np.diff(corpus.ends)
    window = np.repeat(np.arange(len(corpus.sizes)), corpus.sizes)
    if seed is not None:
        window = np.random.default_rng(seed).permutation(window)
    owners = np.repeat(window, lengths)
    windows, so_far = [], np.zeros(len(corpus.words), dtype=np.int64)
    for at, size in enumerate(corpus.sizes.tolist()):
        by_code = np.bincount(corpus.codes[owners == at], minlength=len(corpus.words))
        so_far += by_code
        rows = np.flatnonzero((by_code > 0) & (so_far >= ROW))
        names = [corpus.words[row] for row in rows.tolist()]
        counts, total = by_code[rows, None].astype(np.int64), np.array([size])
        windows.append((Frequency(names, ("all",), counts, counts, total, total), by_code))
    return windows


class Running:
    """What the rankings ask of a snapshot. counts int64 [W], 0 for a word without a row."""

    def __init__(self, rows: dict[str, int], counts: IntArray, month: str, documents: int) -> None:
        self._rows = rows
        self.counts = counts
        self.usage = None
        self.phrases: dict[str, Phrase] = {}
        start = datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC)
        self.manifest = SimpleNamespace(
            window=SimpleNamespace(label=month, start=start),
            documents={"all": documents},
            words=int((counts > 0).sum()),
            config={"server": {"min_count": ROW}},
        )

    def release(self) -> None:
        """There is no file behind it."""

    def rows(self, words: Sequence[str]) -> IntArray:
        rows = np.array([self._rows[word] for word in words], dtype=np.int64)
        return np.where(self.counts[rows] > 0, rows, -1)


def called(corpus: Corpus, seed: int | None) -> list[dict[str, list[str]]]:
    """For each window but the first: the words called, by ranking."""
    shuffled = assigned(corpus, seed)
    windows = [window for window, _ in shuffled]
    rows = {word: at for at, word in enumerate(corpus.words)}
    so_far = np.zeros(len(rows), dtype=np.int64)
    snapshots: list[Snapshot] = []
    for month, (window, read) in zip(corpus.months, shuffled, strict=True):
        so_far = so_far + read
        counts = np.where(so_far >= ROW, so_far, 0)
        documents = int(window.total_documents[0])
        snapshots.append(cast(Snapshot, Running(rows, counts, month, documents)))
    calls = []
    for at in range(1, len(windows)):
        material = ReportInput(
            snapshots[at], tuple(snapshots[:at]), windows[at], tuple(windows[:at]), ()
        )
        once = with_copies_once(material, CONFIG.baseline_windows)
        came = rank_arrivals(material, once, Bare(material, once, CONFIG), CONFIG)
        calls.append(
            {name: [r.word for r in getattr(came, name) if r.significant] for name in RANKINGS}
            | {"all born": [row.word for row in came.born]}
        )
    return calls


def summary(windows: Sequence[dict[str, list[str]]]) -> dict[str, Any]:
    """Words called in all windows, and windows in which any is."""
    calls: dict[str, Any] = {
        name: sum(len(window[name]) for window in windows) for name in windows[0]
    }
    changed = [bool(window["risen"] or window["fallen"]) for window in windows]
    return {
        "windows": len(windows),
        **calls,
        "windows with born": sum(bool(window["born"]) for window in windows),
        "windows with risen or fallen": sum(changed),
    }


def measure(name: str, path: Path, seeds: int, last: int | None) -> list[dict[str, Any]]:
    """Figures of one corpus, as it is and assigned by each seed."""
    corpus = read(path, last)
    runs = []
    for seed in (None, *range(1, seeds + 1)):
        order = "as they are" if seed is None else f"assigned, seed {seed}"
        runs.append({"corpus": name, "documents": order, **summary(called(corpus, seed))})
        print(runs[-1], flush=True)
    return runs


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpora", nargs="+", help="NAME=FILE: dated JSONL, cut into words")
    parser.add_argument("--seeds", type=int, default=3, help="times documents are assigned")
    parser.add_argument("--last", type=int, help="months, the latest; not given: all")
    given = parser.parse_args(arguments)
    report = facts("nullmonths", PACKAGES)
    report["runs"] = []
    try:
        for corpus in given.corpora:
            name, _, file = corpus.partition("=")
            report["runs"] += measure(name, Path(file), given.seeds, given.last)
    except YeoronError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"Written to {keep(report, results=RESULTS)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
