"""`yeoron bench lsc`: words whose change of meaning people have judged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embedding.commands.common import measurement


def register(group: typer.Typer) -> None:
    """Add this command."""
    group.command("lsc")(lsc)


def lsc(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder laid out as SemEval-2020 task 1: corpus1/lemma and corpus2/lemma with "
            "*.txt or *.txt.gz, targets.txt, truth/graded.txt, truth/binary.txt."
        ),
    ],
    tokens: Annotated[
        int | None,
        typer.Option(help="Draw sentences of so many tokens a side, others each seed.", min=1_000),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Draws and trainings.", min=1)] = 3,
    first: Annotated[int, typer.Option(help="The first seed.", min=0)] = 1,
    dim: Annotated[int, typer.Option(help="Length of the vectors.", min=1)] = 100,
    min_count: Annotated[
        int, typer.Option(help="Occurrences before a word gets a vector.", min=1)
    ] = 3,
    rehearsal: Annotated[
        float, typer.Option(help="Passes of ours over the text, at most.", min=0)
    ] = 30.0,
    deviations: Annotated[
        float,
        typer.Option(
            help="A target is called changed that lies so many standard deviations of other words "
            "above their mean."
        ),
    ] = 1.0,
    peers: Annotated[bool, typer.Option(help="Measure gensim as well.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    results: Annotated[
        Path | None,
        typer.Option(help="Folder of the result file; benchmarks/results unless given."),
    ] = None,
) -> None:
    """Lexical semantic change: rank correlation and accuracy of every estimator, beside gensim.

    Examples:

    `yeoron bench lsc semeval2020_ulscd_ger`

    `yeoron bench lsc semeval2020_ulscd_swe --tokens 150000 --seeds 5`
    """
    arguments = [str(folder), f"--seeds={seeds}", f"--first={first}", f"--dim={dim}"]
    arguments += [f"--min-count={min_count}", f"--rehearsal={rehearsal}"]
    arguments += [f"--deviations={deviations}"]
    arguments += [] if tokens is None else [f"--tokens={tokens}"]
    arguments += [] if results is None else [f"--results={results}"]
    arguments += ["--no-peers"] * (not peers) + ["--json"] * as_json
    raise typer.Exit(measurement("lsc").main(arguments))
