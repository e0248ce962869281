"""The trend report of one window: what moved, was born, rose and fell, with its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from embedding.kernel.errors import InputError
from embedding.kernel.records import SnapshotRef
from embedding.snapshots.format import LACK_REASONS, sentence
from embedding.snapshots.readability import missing_words
from embedding.snapshots.snapshot import Snapshot
from embedding.trends.arrivals import rank_arrivals
from embedding.trends.bias import bias_of
from embedding.trends.config import TrendsConfig
from embedding.trends.copies import LEAST_COPIED, few_texts, with_copies_once
from embedding.trends.estimators import ESTIMATORS
from embedding.trends.evidence import RowWriter
from embedding.trends.material import ReportInput, Snapshots, figures, gather, lineage
from embedding.trends.moved import (
    ShiftRanking,
    by_use,
    held_out_of,
    just_short,
    no_scores,
    pair_in,
    rank_moved,
)
from embedding.trends.online import FAMILIES, OnlineTests, in_one_window, limits_of
from embedding.trends.pair import usage_apart
from embedding.trends.permutation import MIN_DOCUMENTS
from embedding.trends.rows import BEFORE, Note, TrendReport
from embedding.trends.storage import FinishedReports
from embedding.trends.stories import continued, stories

NOT_ADJACENT = "not_adjacent"
"""Code of the note of a report whose windows are no neighbours, so that no word `moved`."""


def build_report(
    store: Snapshots,
    id: str = "latest",
    config: TrendsConfig | None = None,
    saved: Path | None = None,
) -> TrendReport:
    """Compare the window of snapshot `id` with the ones before it.

    saved  folder of reports: stories go on with those of the window before, where it has that one.
           So do late calls, and what was called so far with `trends.control = "stream"`

    Raises SnapshotError when that snapshot cannot be read; an earlier one that cannot be read is
    left out and noted. With nothing to compare with, the rankings are empty and a note says why.
    """
    config = config or TrendsConfig()
    material = gather(store, id)
    if not material.earlier or material.now.empty:
        return _bare(material, config)
    if silence := silenced(material):
        return _bare(material, config, silence)
    before = material.earlier[-1]
    once = with_copies_once(material, config.baseline_windows)
    writer = RowWriter(material, once, config)
    finished = FinishedReports(store.list(), config, saved)
    earlier, scores = finished.report(before.id), finished.scores(before.id)
    tested = _tested(earlier, len(material.earlier) - 1, config)
    limits = limits_of(tested)
    unread = [s for s in (before, material.snapshot) if s.unreadable is not None]
    judged = material.snapshot.manifest.judgeable
    apart = not_adjacent(material, config)
    held_out = held_out_of(material)
    pair = None if apart or not judged or untold(material) else pair_in(material)
    by_documents = pair is not None and by_use(pair, config)
    if pair is None or (unread and not by_documents):
        moved = ShiftRanking()
    else:
        moved = rank_moved(
            *(material, pair, writer, config, limits["moved"]),
            short=() if scores is None else just_short(scores),
            held_out=held_out,
            readable=not unread,
        )
    del pair  # its vectors: what follows looks at those of the snapshots
    for snapshot in (before, material.snapshot):
        snapshot.release()
    arrivals = rank_arrivals(material, once, writer, config, limits)
    report = TrendReport(
        snapshot=figures(material.snapshot),
        compared_with=figures(before),
        baseline=tuple(s.id for s in material.earlier[-config.baseline_windows :]),
        estimator=config.estimator,
        config_digest=config.digest(),
        moved=moved.rows,
        born=arrivals.born,
        risen=arrivals.risen,
        fallen=arrivals.fallen,
        notes=(
            *material.notes,
            *lacking(material),
            *(_unread(s, by_documents) for s in unread),
            *apart,
            *(
                []
                if (unread and not by_documents) or apart or moved.judged or not judged
                else [nothing_to_judge(material)]
            ),
            *arrivals.notes,
            *_remarks(material, arrivals.pooled, config),
        ),
        windows=writer.windows,
        floor=moved.floor,
        held_out=tuple(sorted(held_out)),
        ranked={"moved": moved.compared, "born": arrivals.new, "emergence": arrivals.compared},
        bias=bias_of(material.snapshot.manifest),
        scores=moved.scores or no_scores(material, config),
    )
    found_stories = stories(report, material.snapshot, limits)
    material.snapshot.release()
    return replace(
        report,
        stories=continued(found_stories, () if earlier is None else earlier.stories),
        control=_decided(tested, report) if config.control == "stream" else {},
    )


def _tested(
    earlier: TrendReport | None, windows: int, config: TrendsConfig
) -> dict[str, OnlineTests]:
    """How sure words of this window must be, by family of tests.

    earlier  the saved report of the window before, which says what was called so far. Without one
             the `windows` that were compared before count as tested, and as calling nothing
    """
    alpha = config.false_discovery
    if config.control == "window":
        return in_one_window(alpha)
    known = {} if earlier is None else earlier.control
    return {
        family: known.get(family, OnlineTests(windows)).next(alpha) for family in FAMILIES.values()
    }


def _decided(tested: Mapping[str, OnlineTests], report: TrendReport) -> dict[str, OnlineTests]:
    called = {FAMILIES[name] for name in FAMILIES if report.significant(name)}
    return {family: tests.decided(family in called) for family, tests in tested.items()}


def not_adjacent(material: ReportInput, config: TrendsConfig) -> list[Note]:
    """That uses are not compared, where other windows lie between these two; else nothing.

    The sums of a snapshot are by its own vectors and by those of the window just before it.
    """
    before, after = material.earlier[-1], material.snapshot
    if not (ESTIMATORS.traits(config.estimator).needs_usage and usage_apart(before, after)):
        return []
    first, last = (snapshot.manifest.window.label for snapshot in (before, after))
    sentence = (
        f"{first} and {last} cannot be compared by how words were used: that shows only between a "
        "window and the one just before it. Compare neighbouring windows."
    )
    return [Note(NOT_ADJACENT, sentence)]


def _unread(snapshot: Snapshot, by_documents: bool) -> Note:
    """by_documents: whether words are judged all the same, by how they were used in documents."""
    manifest = snapshot.manifest
    code, end = "unread_model", "No word is compared with it."
    if by_documents:
        code, end = "unread_vectors", "What changed is told by how words were used."
    sentence = f"{manifest.window.label}: {snapshot.unreadable} {end}"
    return Note(code, sentence, needed=missing_words(manifest.quality))


def _remarks(material: ReportInput, pooled: bool, config: TrendsConfig) -> list[Note]:
    before, after = material.earlier[-1].manifest, material.snapshot.manifest
    notes = []
    if material.past[-1].empty:
        notes.append(
            Note("empty_before", f"nothing was read in the window before, {before.window.label}.")
        )
    if before.tokenizer_digest != after.tokenizer_digest:
        notes.append(
            Note(
                "tokenizer_changed",
                f"the tokenizer changed between {before.window.label} and {after.window.label}: "
                "words that it splits in another way may appear as new, and are held out of the "
                "moved ones.",
            )
        )
    if config.control == "stream":
        notes.append(
            Note(
                "stream_control",
                "false findings are kept few over the life of the stream, not in each window "
                "(trends.control): fewer words are called.",
            )
        )
    if pooled and not material.past[-1].empty:
        notes.append(
            Note("sources_changed", "no source was read in both windows; all were pooled.")
        )
    return notes


def _bare(material: ReportInput, config: TrendsConfig, *why: Note) -> TrendReport:
    """A report with nothing to compare: what was read, and why there is no ranking."""
    label = material.snapshot.manifest.window.label
    notes = [*material.notes, *lacking(material), *why]
    if material.now.empty:
        notes.append(Note("empty_window", f"nothing was read in the window {label}."))
    if not material.earlier:
        notes.append(
            Note(
                "one_snapshot",
                f"{label} is the first window: what changed shows when a second one is cut.",
            )
        )
    compared = figures(material.earlier[-1]) if material.earlier else None
    return TrendReport(
        snapshot=figures(material.snapshot),
        compared_with=compared,
        baseline=(),
        estimator=config.estimator,
        config_digest=config.digest(),
        notes=tuple(notes),
        windows=(label,),
        bias=bias_of(material.snapshot.manifest),
        scores=no_scores(material, config),
    )


FEW = 30
"""Documents of a window below which it says nothing, whoever wrote them."""
_COPIES = 10.0
"""Documents for each text, over all words, from which on a window is one of copies."""
_BACK = 3
"""Windows before of which one says how words were used, if the model says it at all."""


def lacking(material: ReportInput) -> list[Note]:
    """What the snapshot lacks of its window, and that the window before it could not be judged."""
    manifest = material.snapshot.manifest
    notes = [
        Note(
            missing.reason if missing.reason in LACK_REASONS else "other",
            sentence(missing, manifest.window.label),
            words=", ".join(missing.where),
            documents=missing.documents,
        )
        for missing in manifest.lacking
    ]
    if not material.earlier or material.earlier[-1].manifest.judgeable:
        return notes
    then = material.earlier[-1].manifest.window.label
    text = (
        f"{then} could not be judged: what changed its meaning in it is named neither there nor in "
        f"{manifest.window.label}. `yeoron snapshot amend {then}` has it read again."
    )
    return [*notes, Note(BEFORE, text, window=then)]


def untold(material: ReportInput) -> bool:
    """Whether too little, or one text, was read in the window to say how words were used in it.

    Vectors do not say what changed in it then, either.
    """
    return material.snapshot.usage is None and any(
        snapshot.usage is not None for snapshot in material.earlier[-_BACK:]
    )


def silenced(material: ReportInput) -> Note | None:
    """The sentence for a window of one author or of copies of one text; None for any other."""
    label = material.snapshot.manifest.window.label
    read = int(material.now.total_documents.sum())
    if read < FEW:
        return None
    documents = material.now.columns[3].sum(axis=1)
    if documents.max(initial=0) < MIN_DOCUMENTS:
        sentence = (
            f"{label}: its {read:,} documents are of too few authors to say whether anything "
            "changed."
        )
        return Note("one_author", sentence)
    if documents[documents >= LEAST_COPIED].sum() >= _COPIES * max(_texts(material), 1.0):
        sentence = (
            f"{label}: its {read:,} documents are copies of few texts, and copies count once: too "
            "few to say whether anything changed."
        )
        return Note("only_copies", sentence)
    return None


def nothing_to_judge(material: ReportInput) -> Note:
    """The sentence for a window in which the use of no word was judged."""
    label = material.snapshot.manifest.window.label
    read = int(material.now.total_documents.sum())
    if read < FEW:
        n = "one document was" if read == 1 else f"only {read} documents were"
        sentence = f"{label}: {n} read, too few to say whether the use of any word changed."
        return Note("few_documents", sentence)
    sentence = (
        f"{label}: no word is used in enough documents of different authors, before it and in it, "
        "to say whether its use changed."
    )
    return Note("too_few_documents", sentence)


def _texts(material: ReportInput) -> float:
    """Texts that use a word, summed over words; infinite where no window says it."""
    usage = material.snapshot.usage
    if usage is not None:
        return float(usage.pairs.sum(dtype=np.float64))
    documents, read = material.now.columns[3].sum(axis=1), int(material.now.total_documents.sum())
    return 0.0 if untold(material) and few_texts(documents, read) else np.inf


@dataclass(frozen=True)
class TwoSnapshots:
    """A store that holds two snapshots alone."""

    before: Snapshot
    after: Snapshot

    def list(self) -> list[SnapshotRef]:
        return [self.before.ref, self.after.ref]

    def open(self, id: str = "latest") -> Snapshot:
        return self.before if id == self.before.id else self.after


def build_between(
    store: Snapshots, before: str, after: str, config: TrendsConfig | None = None
) -> TrendReport:
    """Compare snapshot `after` with the earlier snapshot `before`.

    Words that are born were in neither the vocabulary nor the texts of `before`. Which words
    changed in meaning shows only between neighbours: else the note NOT_ADJACENT says so and names
    the pairs of neighbours. Raises InputError unless `before` has the earlier window; SnapshotError
    when one cannot be read.
    """
    old, new = store.open(before), store.open(after)
    if old.ref.window_start >= new.ref.window_start:
        raise InputError(
            f"{old.manifest.window.label} does not lie before {new.manifest.window.label}; "
            "the earlier window comes first."
        )
    report = build_report(TwoSnapshots(old, new), new.id, config)
    start = old.ref.window_start
    between = [ref for ref in lineage(store.list(), new.ref) if ref.window_start > start]
    labels = [ref.label for ref in (old.ref, *between)]
    steps = "; ".join(f"{ref} {other}" for ref, other in pairwise(labels))
    notes = [
        replace(note, text=f"{note.text[:-1]}: {steps}.") if note.code == NOT_ADJACENT else note
        for note in report.notes
    ]
    return replace(report, notes=tuple(notes))


def steps_between(
    report: TrendReport, refs: Sequence[SnapshotRef]
) -> list[tuple[SnapshotRef, SnapshotRef]]:
    """The pairs of neighbours from one window of a report to the other, where only these can be
    compared; else none.

    refs  all snapshots by window start
    """
    before = report.compared_with
    if before is None or all(note.code != NOT_ADJACENT for note in report.notes):
        return []
    ids = [ref.id for ref in refs]
    return [*pairwise(refs[ids.index(before.id) : ids.index(report.snapshot.id) + 1])]


def refuse_apart(report: TrendReport) -> None:
    """InputError where windows are no neighbours, so that nothing is known of meanings."""
    for note in report.notes:
        if note.code == NOT_ADJACENT:
            raise InputError(note.text)
