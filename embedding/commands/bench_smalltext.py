"""`yeoron bench smalltext`: what little text gives, window by window, against gensim."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embedding.commands.common import measurement


def register(group: typer.Typer) -> None:
    """Add this command."""
    group.command("smalltext")(smalltext)


def smalltext(
    corpus: Annotated[Path, typer.Argument(help="Dated JSONL of Korean text (.xz is read).")],
    cache: Annotated[
        Path, typer.Option(help="Folder in which the cut corpus and gensim's models are kept.")
    ],
    size: Annotated[
        list[int] | None,
        typer.Option(help="First tokens of the corpus; may be repeated.", min=10_000),
    ] = None,
    passes: Annotated[
        list[int] | None, typer.Option(help="Passes of gensim; may be repeated.", min=1)
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Trainings of each side; 3, with --quick 1.", min=1)
    ] = None,
    unit: Annotated[str, typer.Option(help="hour, day, week or month.")] = "month",
    windows: Annotated[
        int | None,
        typer.Option(
            help="Ends of windows judged of each size, 0 for all. All up to 300,000 tokens and 3 "
            "beyond when not given.",
            min=0,
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE of `yeoron train`, as in nodes=2; may be repeated."),
    ] = None,
    workers: Annotated[int, typer.Option(help="Workers of gensim.", min=1)] = 1,
    gold: Annotated[
        list[Path] | None,
        typer.Option(help="Word pairs or analogies to judge by; may be repeated."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="100,000 tokens, one seed, and no result file.")
    ] = False,
) -> None:
    """The first tokens of a corpus, window by window: `yeoron train --dated` against gensim.

    Examples:

    `yeoron bench smalltext petitions.jsonl.xz --cache kept --gold ws353_ko.tsv`

    `yeoron bench smalltext petitions.jsonl.xz --cache kept --quick --passes 20`
    """
    arguments = [str(corpus), f"--cache={cache}", f"--unit={unit}", f"--workers={workers}"]
    arguments += [f"--size={one}" for one in size or ()]
    arguments += [f"--passes={one}" for one in passes or ()]
    arguments += [] if seeds is None else [f"--seeds={seeds}"]
    arguments += [] if windows is None else [f"--windows={windows}"]
    arguments += [f"--option={one}" for one in option or ()]
    arguments += [f"--gold={one}" for one in gold or ()]
    arguments += ["--quick"] * quick
    raise typer.Exit(measurement("smalltext").main(arguments))
