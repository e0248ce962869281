"""`yeoron bench drift`: who finds planted changes of meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embedding.commands.common import measurement


def register(group: typer.Typer) -> None:
    """Add these commands."""
    group.command("drift")(drift)


def drift(
    corpus: Annotated[Path, typer.Argument(help="Dated JSONL (.xz is read).")],
    tokenizer: Annotated[str, typer.Option(help="whitespace, kiwi or mecab.")] = "whitespace",
    documents: Annotated[
        int | None, typer.Option(help="About so many documents, spread over all dates.")
    ] = None,
    windows: Annotated[int, typer.Option(help="Windows of equally many documents.")] = 6,
    seeds: Annotated[int, typer.Option(help="Plantings and trainings.")] = 1,
    least: Annotated[int, typer.Option(help="Mentions a word needs in both windows.")] = 20,
    null: Annotated[
        bool, typer.Option("--null", help="Plant nothing: all finds are false.")
    ] = False,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Keep the corpus' own order of time.")
    ] = False,
    peers: Annotated[bool, typer.Option(help="Measure gensim's ways as well.")] = True,
) -> None:
    """Planted changes of meaning: who finds them, how surely, how soon.

    Example: `yeoron bench drift reviews.jsonl --tokenizer kiwi --seeds 3`
    """
    arguments = [str(corpus), f"--tokenizer={tokenizer}", f"--windows={windows}"]
    arguments += [f"--seeds={seeds}", f"--least={least}"]
    arguments += [] if documents is None else [f"--documents={documents}"]
    arguments += ["--null"] * null + ["--ordered"] * ordered + ["--no-peers"] * (not peers)
    raise typer.Exit(measurement("drift").main(arguments))
