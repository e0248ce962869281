"""`yeoron bench drift` and `bias`: planted changes of meaning; sources that are served worse."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embedding.commands.common import measurement


def register(group: typer.Typer) -> None:
    """Add these commands."""
    group.command("drift")(drift)
    group.command("bias")(bias)


def drift(
    corpus: Annotated[Path, typer.Argument(help="Dated JSONL (.xz is read).")],
    tokenizer: Annotated[str, typer.Option(help="whitespace, kiwi or mecab.")] = "whitespace",
    documents: Annotated[
        int | None, typer.Option(help="About so many documents, spread over all dates.")
    ] = None,
    windows: Annotated[int, typer.Option(help="Windows of equally many documents.")] = 6,
    seeds: Annotated[int, typer.Option(help="Plantings and trainings.")] = 1,
    thin: Annotated[
        str, typer.Option(help="Decoys leave out or move texts, or sentences of long texts.")
    ] = "texts",
    first: Annotated[int, typer.Option(help="Seed of the first planting.")] = 0,
    overlap: Annotated[
        bool, typer.Option("--overlap", help="Train twice on each and compare the rankings.")
    ] = False,
    stores: Annotated[
        Path | None, typer.Option(help="Keep trainings in this folder; judge those that are there.")
    ] = None,
    least: Annotated[int, typer.Option(help="Mentions a word needs in both windows.")] = 20,
    null: Annotated[
        str | None,
        typer.Option(
            help="Plant nothing, so that all finds are false: shuffled, or same-window (each "
            "window dealt out to two; the second is judged by the first)."
        ),
    ] = None,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Keep the corpus' own order of time.")
    ] = False,
    peers: Annotated[bool, typer.Option(help="Measure gensim's ways as well.")] = True,
) -> None:
    """Planted changes of meaning: who finds them, how surely, how soon.

    Examples:

    `yeoron bench drift reviews.jsonl --tokenizer kiwi --seeds 3`

    `yeoron bench drift reviews.jsonl --null same-window --no-peers`
    """
    arguments = [str(corpus), f"--tokenizer={tokenizer}", f"--windows={windows}"]
    arguments += [f"--seeds={seeds}", f"--least={least}", f"--first={first}"]
    arguments += [] if stores is None else [f"--stores={stores}"]
    arguments += ["--overlap"] * overlap + [f"--thin={thin}"]
    arguments += [] if documents is None else [f"--documents={documents}"]
    arguments += [] if null is None else [f"--null={null}"]
    arguments += ["--ordered"] * ordered + ["--no-peers"] * (not peers)
    raise typer.Exit(measurement("drift").main(arguments))


def bias(
    first: Annotated[Path, typer.Argument(help="Text, a sentence a line, words as they stand.")],
    second: Annotated[Path, typer.Argument(help="Another source.")],
    words: Annotated[int, typer.Option(help="Words of the first source.")] = 600_000,
    second_words: Annotated[int, typer.Option(help="Words of the second.")] = 200_000,
    step: Annotated[
        list[float] | None, typer.Option(help="Step of `trends.bias_step`; may be repeated.")
    ] = None,
    rise: Annotated[
        list[float] | None, typer.Option(help="Limit `trends.bias_rise`; may be repeated.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Trainings of each step.")] = 1,
) -> None:
    """Two unlike sources: the worst one's excess loss without and with proposed weights.

    Example: `yeoron bench bias reviews.txt petitions.txt --seeds 2`
    """
    arguments = [str(first), str(second), f"--words={words}", f"--second-words={second_words}"]
    arguments += [f"--seeds={seeds}", *(f"--step={one}" for one in step or ())]
    arguments += [f"--rise={one}" for one in rise or ()]
    raise typer.Exit(measurement("bias").main(arguments))
