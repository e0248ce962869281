"""Why nothing, or less, can be said of the words of a window: one sentence for each cause."""

from __future__ import annotations

import numpy as np

from embedding.snapshots.lacking import LACK_REASONS, sentence
from embedding.trends.copies import LEAST_COPIED, few_texts
from embedding.trends.material import ReportInput
from embedding.trends.permutation import MIN_DOCUMENTS
from embedding.trends.rows import BEFORE, Note

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
            one.reason if one.reason in LACK_REASONS else "other",
            sentence(one, manifest.window.label),
            words=", ".join(one.where),
            documents=one.documents,
        )
        for one in manifest.lacking
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
        one.usage is not None for one in material.earlier[-_BACK:]
    )


def silenced(material: ReportInput) -> Note | None:
    """The sentence for a window of one author or of copies of one text; None for any other."""
    label = material.snapshot.manifest.window.label
    read = int(material.now.total_documents.sum())
    if read < FEW:
        return None
    held = material.now.columns[3].sum(axis=1)
    if held.max(initial=0) < MIN_DOCUMENTS:
        sentence = (
            f"{label}: its {read:,} documents are of too few authors to say whether anything "
            "changed."
        )
        return Note("one_author", sentence)
    if held[held >= LEAST_COPIED].sum() >= _COPIES * max(_texts(material), 1.0):
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
    held, read = material.now.columns[3].sum(axis=1), int(material.now.total_documents.sum())
    return 0.0 if untold(material) and few_texts(held, read) else np.inf
