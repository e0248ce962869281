"""The first tokens of a dated corpus, window by window: `yeoron train --dated` against gensim.

    python -m benchmarks smalltext petitions.jsonl.xz --cache FOLDER --gold ws353_ko.tsv
    python -m benchmarks smalltext petitions.jsonl.xz --cache FOLDER --quick

The corpus is cut into content words once (benchmarks/smalltextcorpus.py) and cut off after the
first 100,000, 300,000, 1 million and 3 million of them. Ours learns them with the command a user
types and is judged by the snapshot of each window; gensim (skip-gram, the same settings) learns all
tokens up to the end of the same window with 1, 5, 20 and 50 passes. Both are judged by the same
code (benchmarks/smalltextjudging.py) over the words that all of them know; the reference is gensim
with 20 passes over the whole corpus and a seed of its own.

Time: of ours the process `yeoron train` for all windows, imports and all; of gensim the counting,
training and saving of each end of a window alone, without Python's start. Processor seconds are of
all processes of either, imports and all: on a busy machine they tell more.

gensim's models are kept in the cache folder by the text and the settings, and are not trained again
there; ours is always trained.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kept import RESULTS
from benchmarks.smalltextcorpus import TokenCorpus, WindowEnd, digest, spread, tokenised
from benchmarks.smalltextjudging import SPREAD, Model, Shared, best, choose, judge, summary
from embedding.evaluation.gold import read_gold
from embedding.kernel.errors import InputError
from embedding.kernel.records import WindowUnit
from embedding.snapshots.store import SnapshotStore
from yeoron_bench.results import ended, facts, hardware, keep
from yeoron_bench.train import Setting, call

PACKAGES = ("yeoron", "numpy", "numba", "pyarrow", "torch", "gensim", "scipy", "kiwipiepy")
SIZES = (100_000, 300_000, 1_000_000, 3_000_000)
PASSES = (1, 5, 20, 50)
REFERENCE_PASSES, REFERENCE_SEED = 20, 1_000
SMALL = 300_000
"""Up to so many tokens every window is judged, beyond them `FEW`, unless the user says."""
FEW = 3
LEAST_WORDS = 200
"""Words that all models must know before anything can be said."""
WARM_TOKENS = 3_000
OURS = "ours"
SETTING = Setting(sample=1e-4)
Run = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What is measured.

    windows  ends of windows judged of each size, 0: all; None: all of small sizes, `FEW` of others
    options  further options of `yeoron train`, NAME or NAME=VALUE
    workers  of gensim
    """

    sizes: Sequence[int] = SIZES
    passes: Sequence[int] = PASSES
    seeds: int = 3
    unit: WindowUnit = WindowUnit.MONTH
    windows: int | None = None
    options: Sequence[str] = ()
    workers: int = 1


class Peers:
    """Trained models of gensim, kept in a folder."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder, self._workers = folder, workers
        folder.mkdir(parents=True, exist_ok=True)

    def train(self, lines: Sequence[str], passes: int, seed: int) -> tuple[Model, Run]:
        """The model, and seconds and load of its training."""
        setting = replace(SETTING, epochs=passes)
        options = [*setting.options(), f"--seed={seed}", f"--workers={self._workers}"]
        name = digest([*options, *lines])[:16]
        vectors, contexts, figures = (
            self._folder / f"{name}{end}" for end in (".bin", ".npy", ".json")
        )
        if not figures.exists():
            with tempfile.TemporaryDirectory(dir=self._folder) as folder:
                scratch = Path(folder)
                text = scratch / "text.txt"
                text.write_text("\n".join(lines) + "\n", encoding="utf-8")
                new = [scratch / path.name for path in (vectors, contexts)]
                load = os.getloadavg()[0]
                run, process, cpu = timed(
                    "yeoron_bench.peers",
                    str(text),
                    *options,
                    f"--out={new[0]}",
                    f"--contexts={new[1]}",
                )
                run |= {"process_seconds": process, "cpu_seconds": cpu, "load_1min": load}
                for path in new:
                    path.rename(self._folder / path.name)
            # Last: where it is, the model is whole.
            figures.write_text(json.dumps({**run, "options": options}))
        return _gensim(vectors, contexts), json.loads(figures.read_text())


def _gensim(vectors: Path, contexts: Path) -> Model:
    from gensim.models import KeyedVectors

    read = KeyedVectors.load_word2vec_format(str(vectors), binary=True)
    # The binary file has no counts; the caller puts those of the text in.
    return Model(read.index_to_key, np.zeros(len(read), np.int64), read.vectors, np.load(contexts))


def timed(module: str, *arguments: str) -> tuple[Run, float, float]:
    """Run a module; its JSON, wall seconds, and processor seconds of it and all its processes."""
    before = os.times()
    run, seconds = call(module, *arguments)
    after = os.times()
    user = after.children_user - before.children_user
    return run, seconds, user + after.children_system - before.children_system


def train_ours(cut: TokenCorpus, plan: Plan, seed: int, folder: Path) -> tuple[SnapshotStore, Run]:
    """The command a user types; the store that it wrote, and its seconds."""
    corpus, out = folder / "tokens.jsonl", folder / f"store-{seed}"
    cut.write(corpus)
    load = os.getloadavg()[0]
    run, process, cpu = timed(
        "embedding.cli",
        "train",
        str(corpus),
        "--dated",
        f"--window={plan.unit.value}",
        f"--out={out}",
        f"--seed={seed}",
        "--json",
        *(f"--{option}" for option in plan.options),
    )
    names = ("tokens_trained", "vocabulary", "train_seconds", "words_per_second", "loss")
    figures = {name: run[name] for name in names}
    return SnapshotStore(out), {
        **figures,
        "seconds": process,
        "cpu_seconds": cpu,
        "load_1min": load,
    }


def snapshot_of(store: SnapshotStore, end: WindowEnd) -> Model:
    """The snapshot of a window."""
    refs = [ref for ref in store.list() if ref.window_start == end.start]
    if not refs:
        raise InputError(f"{store.uri}: no snapshot of the window from {end.start:%Y-%m-%d}.")
    opened = store.open(refs[-1].id)
    # Copies: the files are gone before the models of the next window are judged.
    return Model(opened.words, opened.counts.copy(), opened.vectors.copy(), opened.contexts.copy())


def share(
    models: Sequence[Model], reference: Model, corpus: TokenCorpus, end: WindowEnd, unit: WindowUnit
) -> tuple[list[str], dict[str, int], list[str]]:
    """Words that all know by falling count, all counts of the text, the lines behind it."""
    counts = Counter(word for line in corpus.lines(0, end.documents) for word in line.split())
    known = set.intersection(*(set(model.words) for model in (*models, reference)))
    words = sorted(known & counts.keys(), key=lambda word: (-counts[word], word))
    if len(words) < LEAST_WORDS:
        raise InputError(
            f"{end.tokens:,} tokens: {len(words)} words are known to all; at least {LEAST_WORDS} "
            "are needed, so a larger --size."
        )
    return words, dict(counts), corpus.behind(end.documents, unit)


class Bench:
    """Measures the sizes of one corpus."""

    def __init__(self, corpus: TokenCorpus, plan: Plan, folder: Path, gold: Sequence[Path]) -> None:
        self._corpus, self._plan = corpus, plan
        self._gold = [read_gold(path) for path in gold]
        self._peers = Peers(folder / "gensim", plan.workers)
        self._reference, self.reference = self._peers.train(
            corpus.lines(), REFERENCE_PASSES, REFERENCE_SEED
        )

    def measure(self, size: int) -> Run:
        """One size: its windows, each with its sides."""
        plan = self._plan
        cut = self._corpus.first(size)
        few = plan.windows if plan.windows is not None else (0 if size <= SMALL else FEW)
        ends = spread(cut.ends(plan.unit), few)
        with tempfile.TemporaryDirectory() as folder:
            trained = [
                train_ours(cut, plan, seed, Path(folder)) for seed in range(1, plan.seeds + 1)
            ]
            stores = [store for store, _ in trained]
            windows = [self._window(end, stores) for end in ends]
        return {
            "size": size,
            "tokens": cut.read[-1],
            "documents": len(cut.documents),
            "ours": [run for _, run in trained],
            "windows": windows,
        }

    def _window(self, end: WindowEnd, stores: Sequence[SnapshotStore]) -> Run:
        plan = self._plan
        lines = self._corpus.lines(0, end.documents)
        models = {OURS: [snapshot_of(store, end) for store in stores]}
        times: dict[str, list[Run]] = {}
        for passes in plan.passes:
            done = [self._peers.train(lines, passes, seed) for seed in range(1, plan.seeds + 1)]
            models[f"gensim-{passes}"] = [model for model, _ in done]
            times[f"gensim-{passes}"] = [run for _, run in done]
        every = [model for each in models.values() for model in each]
        words, counts, behind = share(every, self._reference, self._corpus, end, plan.unit)
        count = np.array([counts[word] for word in words])
        shared = Shared(
            words=words,
            counts=count,
            asked=choose(words, count, self._corpus.content),
            reference=self._reference.among(words).vectors,
            behind=behind,
            gold=self._gold,
        )
        figures = {}
        for side, each in models.items():
            own = each if side == OURS else [_counted(model, counts) for model in each]
            figures[side] = [judge(model, shared) for model in own]
            _say(f"{end.tokens:>9,} tokens  {side:<10}", figures[side][0])
        return {
            "start": f"{end.start:%Y-%m-%d}",
            "tokens": end.tokens,
            "documents": end.documents,
            "words": len(words),
            "known": {side: len(each[0].words) for side, each in models.items()},
            "asked": len(shared.asked),
            "tokens_behind": sum(line.count(" ") + 1 for line in behind),
            "figures": figures,
            "summary": {side: summary(each) for side, each in figures.items()},
            "gensim": times,
        }


def _counted(model: Model, counts: Mapping[str, int]) -> Model:
    return replace(model, counts=np.array([counts[word] for word in model.words]))


def _say(head: str, figures: Mapping[str, float]) -> None:
    shown = (f"{name} {value:.3f}" for name, value in figures.items() if "/" not in name)
    print(head, *shown, sep="  ", file=sys.stderr, flush=True)


def warm_up(corpus: TokenCorpus, plan: Plan) -> None:
    """Compile the kernels (once a machine and version) before a clock runs."""
    with tempfile.TemporaryDirectory() as folder:
        train_ours(corpus.first(WARM_TOKENS), plan, 1, Path(folder))


def bench_smalltext(
    corpus: Path,
    cache: Path,
    plan: Plan | None = None,
    *,
    gold: Sequence[Path] = (),
    quick: bool = False,
    results: Path = RESULTS,
) -> Run:
    """Measure, print a table, write a dated JSON and Markdown file; returns what was written.

    cache  folder of the corpus in content words and of gensim's models
    quick  no warm-up and no files
    """
    plan = plan or Plan()
    machine = hardware()
    tokens = tokenised(corpus, cache)
    bench = Bench(tokens, plan, cache, gold)
    if not quick:
        warm_up(tokens, plan)
    sizes = []
    for size in plan.sizes:
        sizes.append(bench.measure(size))
        if size >= tokens.read[-1]:
            break  # There is no more text, so a larger size would be the same one.
    report = {
        **facts("smalltext", PACKAGES, machine),
        "corpus": {
            "file": corpus.name,
            "tokens": tokens.read[-1],
            "documents": len(tokens.documents),
            "sha256": digest(tokens.lines()),
            "nouns_verbs_adjectives": len(tokens.content),
        },
        "config": {**asdict(plan), "unit": plan.unit.value, "gensim": asdict(SETTING)},
        "reference": {
            "passes": REFERENCE_PASSES,
            "seed": REFERENCE_SEED,
            **bench.reference,
        },
        "sizes": sizes,
    }
    text = table(report)
    print(text)
    if not quick:
        keep(report, text, results=results, part=tokens.name)
    return report


COLUMNS = {
    "agreement": "agreement",
    "agreement_shown": "agreement as shown",
    "next_loss": "loss behind",
    "mean_cosine": "mean cosine",
    "first_axis": "first axis",
}


def table(report: Run) -> str:
    """The report for readers."""
    corpus, config, hard = report["corpus"], report["config"], report["hardware"]
    options = " ".join(f"--{option}" for option in config["options"])
    about = (
        f"{hard['cpu']}, {hard['cores']} cores, load {hard['load_1min']:.1f} at the start. "
        f"{corpus['tokens']:,} content words by Kiwi of {corpus['documents']:,} documents; "
        f"`yeoron train --dated --window {config['unit']}{' ' + options if options else ''}` "
        f"against gensim (skip-gram, dimension {SETTING.dim}, context {SETTING.context}, "
        f"{SETTING.negative} negatives, sample {SETTING.sample}, min_count {SETTING.min_count}, "
        f"workers {config['workers']}). Median of {config['seeds']} seeds (least – most). "
        "Agreement: share of the ten nearest that are among the ten nearest of gensim with "
        f"{REFERENCE_PASSES} passes over all; as shown: by nearness instead of the cosine. Lower "
        "is better of the loss. s: of gensim counting, "
        "training and saving."
    )
    head = f"# Little text against gensim: {corpus['file']}, {report['when'][:10]}"
    text = [head, "", about, ""]
    for size in report["sizes"]:
        text += _size_table(size)
    return "\n".join(text)


def _size_table(size: Run) -> list[str]:
    seconds = [run["seconds"] for run in size["ours"]]
    spent = (
        f"`yeoron train` took {np.median(seconds):.1f} s for all windows of it "
        f"({min(seconds):.1f} – {max(seconds):.1f}; "
        f"{size['ours'][0]['train_seconds']:.1f} s of them training; "
        f"{np.median([run['cpu_seconds'] for run in size['ours']]):.1f} s of processors)."
    )
    text = [f"## First {size['tokens']:,} tokens", "", spent, ""]
    shared = (name for window in size["windows"] for name in window["summary"][OURS])
    golds = sorted({name for name in shared if name.startswith("gold/")})
    names = [*COLUMNS, *golds]
    heads = [COLUMNS.get(name, name.removeprefix("gold/")) for name in names]
    text += [
        f"| end of window | side | {' | '.join(heads)} | s |",
        "|---" * (len(names) + 3) + "|",
    ]
    for window in size["windows"]:
        place = f"{window['start']}, {window['tokens']:,} tokens, {window['asked']} words asked"
        place += _covered(window["summary"][OURS])
        for side, figures in window["summary"].items():
            cells = [_cell(figures.get(name)) for name in names]
            times = window["gensim"].get(side)
            spent = f"{np.median([run['seconds'] for run in times]):.1f}" if times else ""
            text.append(f"| {place} | {side} | {' | '.join(cells)} | {spent} |")
    about = (
        "Ours divided by gensim's best number of passes; the mean cosine and the first axis "
        "divided by those of the passes that agree best:"
    )
    text += ["", about, ""]
    text += [f"| end of window | {' | '.join(heads)} |", "|---" * (len(names) + 1) + "|"]
    for window in size["windows"]:
        cells = []
        for name in names:
            ratio, side = ratio_of(window["summary"], name)
            cells.append(f"{ratio:.2f} ({side})" if side else "")
        text.append(f"| {window['start']}, {window['tokens']:,} tokens | {' | '.join(cells)} |")
    return [*text, ""]


def ratio_of(sides: Mapping[str, Any], name: str) -> tuple[float, str | None]:
    """Ours divided by gensim's best number of passes, and which that is; None where none has it.

    What the page shows is held against gensim's cosine, as gensim shows its own. The mean cosine
    and the first axis are held against the passes that agree best with the reference: vectors that
    have learnt nothing yet would win otherwise.
    """
    peers = {side: figures for side, figures in sides.items() if side != OURS}
    rival = "agreement" if name == "agreement_shown" else name
    side = best("agreement" if name in SPREAD else rival, peers)
    if side is None or name not in sides[OURS]:
        return 0.0, None
    return sides[OURS][name]["median"] / peers[side][rival]["median"], side


def _covered(figures: Mapping[str, Mapping[str, float]]) -> str:
    """How many pairs or questions of the gold sets could be asked: the same of all sides."""
    prefix = "covered/"
    rows = {name.removeprefix(prefix): each for name, each in figures.items() if prefix in name}
    return "".join(f", {each['median']:.0f} of {name}" for name, each in sorted(rows.items()))


def _cell(figures: Mapping[str, float] | None) -> str:
    if figures is None:
        return ""
    if figures["min"] == figures["max"]:
        return f"{figures['median']:.3f}"
    return f"{figures['median']:.3f} ({figures['min']:.3f} – {figures['max']:.3f})"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, help="dated JSONL of Korean text, plain or .xz")
    parser.add_argument("--cache", type=Path, required=True, help="folder of what is kept")
    parser.add_argument("--size", type=int, action="append", help=f"unless given: {SIZES}")
    parser.add_argument("--passes", type=int, action="append", help=f"unless given: {PASSES}")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--unit", type=WindowUnit, choices=list(WindowUnit), default="month")
    parser.add_argument("--windows", type=int, help="ends of windows judged of a size; 0: all")
    parser.add_argument("--option", action="append", default=[], help="NAME=VALUE of yeoron train")
    parser.add_argument("--workers", type=int, default=1, help="of gensim")
    parser.add_argument("--gold", type=Path, action="append", default=[])
    parser.add_argument("--quick", action="store_true", help="100,000 tokens, one seed, no files")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    plan = Plan(
        sizes=sorted(given.size or (SIZES[:1] if given.quick else SIZES)),
        passes=sorted(given.passes or PASSES),
        seeds=given.seeds or (1 if given.quick else 3),
        unit=WindowUnit(given.unit),
        windows=given.windows,
        options=tuple(given.option),
        workers=given.workers,
    )
    return ended(
        lambda: bench_smalltext(
            given.corpus,
            given.cache,
            plan,
            gold=given.gold,
            quick=given.quick,
            results=given.results,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
