"""What `yeoron bench` is asked: groups of options, which the measurements take as they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

Epochs = Annotated[int, typer.Option(help="Epochs of each training.")]
Dim = Annotated[int, typer.Option(help="Length of the vectors.", min=1)]
PeersOption = Annotated[bool, typer.Option(help="Measure gensim as well.")]


@dataclass(frozen=True, kw_only=True)
class TrainBenchOptions:
    """What the sides of `bench train` have in common."""

    epochs: Epochs = 1
    sample: Annotated[float, typer.Option(help="Subsampling threshold, 0 for none.")] = 0.0
    dim: Dim = 100
    model: Annotated[str, typer.Option(help="sgns, cbow or fasttext.")] = "sgns"


@dataclass(frozen=True)
class LscSetting:
    """What `bench lsc` measures, and how."""

    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder laid out as SemEval-2020 task 1: corpus1/lemma and corpus2/lemma with "
            "*.txt or *.txt.gz, targets.txt, truth/graded.txt, truth/binary.txt."
        ),
    ]
    tokens: Annotated[
        int | None,
        typer.Option(help="Draw sentences of so many tokens a side, others each seed.", min=1_000),
    ] = None
    seeds: Annotated[int, typer.Option(help="Draws and trainings.", min=1)] = 3
    first: Annotated[int, typer.Option(help="The first seed.", min=0)] = 1
    dim: Dim = 100
    min_count: Annotated[
        int, typer.Option(help="Occurrences before a word gets a vector.", min=1)
    ] = 3
    rehearsal: Annotated[
        float, typer.Option(help="Passes of ours over the text, at most.", min=0)
    ] = 30.0
    deviations: Annotated[
        float,
        typer.Option(
            help="A target is called changed that lies so many standard deviations of other words "
            "above their mean."
        ),
    ] = 1.0
    peers: PeersOption = True


@dataclass(frozen=True)
class DriftOptions:
    """What `bench drift` makes of a corpus, and how it is judged."""

    corpus: Annotated[Path, typer.Argument(help="Dated JSONL (.xz is read).")]
    tokenizer: Annotated[str, typer.Option(help="whitespace, kiwi or mecab.")] = "whitespace"
    documents: Annotated[
        int | None, typer.Option(help="About so many documents, spread over all dates.")
    ] = None
    windows: Annotated[int, typer.Option(help="Windows of equally many documents.")] = 6
    seeds: Annotated[int, typer.Option(help="Plantings and trainings.")] = 1
    first: Annotated[int, typer.Option(help="Seed of the first planting.")] = 0
    thin: Annotated[
        str, typer.Option(help="Decoys leave out or move texts, or sentences of long texts.")
    ] = "texts"
    least: Annotated[int, typer.Option(help="Mentions a word needs in both windows.")] = 20
    peers: PeersOption = True
