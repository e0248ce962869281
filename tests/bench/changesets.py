"""A small set in the layout of SemEval-2020 task 1, with changes that are known."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

TOPICS, WORDS = 4, 25
STRENGTHS = (0.0, 0.0, 0.0, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
TARGETS = [f"Zug{chr(97 + at)}_nn" for at in range(len(STRENGTHS))]
GRADED = dict(zip(TARGETS, STRENGTHS, strict=True))


def write(folder: Path, sentences: int = 1_500, seed: int = 0) -> Path:
    """Each target is written about one topic before, and afterwards in part about the next one."""
    random = np.random.default_rng(seed)
    for which in (1, 2):
        lines = []
        for at in range(sentences):
            target = TARGETS[at % len(TARGETS)]
            topic = at % len(TARGETS) % TOPICS
            if which == 2 and random.random() < GRADED[target]:
                topic = (topic + 1) % TOPICS
            words = [f"t{topic}w{word}" for word in random.integers(WORDS, size=8)]
            lines.append(" ".join([*words[:4], target, *words[4:]]))
        lemma = folder / f"corpus{which}" / "lemma"
        lemma.mkdir(parents=True)
        half = len(lines) // 2
        (lemma / "a.txt").write_text("\n".join(lines[:half]) + "\n", encoding="utf-8")
        with gzip.open(lemma / "b.txt.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join(lines[half:]) + "\n")
    (folder / "targets.txt").write_text("\n".join(TARGETS) + "\n", encoding="utf-8")
    truth = folder / "truth"
    truth.mkdir()
    for name, of in (("graded", float), ("binary", lambda x: int(x > 0))):
        rows = [f"{word}\t{of(value)}\n" for word, value in GRADED.items()]
        (truth / f"{name}.txt").write_text("".join(rows), encoding="utf-8")
    return folder
