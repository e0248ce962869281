"""`yeoron bench text` and `yeoron bench mask`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embedding.commands.common import measurement
from embedding.kernel.errors import ConfigError

CONTEXTS = ("both", "left", "none")
TOKENIZERS = ("kiwi", "mecab")


def register(group: typer.Typer) -> None:
    """Add these commands."""
    group.command("text")(text)
    group.command("mask")(mask)


def text(
    corpus: Annotated[
        list[Path], typer.Argument(help="JSONL, or text with one document a line (.xz is read).")
    ],
    documents: Annotated[
        int | None, typer.Option(help="Documents of each corpus; all unless given.", min=8)
    ] = None,
    every: Annotated[
        int, typer.Option(help="Plain Kiwi reads each so many-th document.", min=1)
    ] = 8,
    context: Annotated[
        list[str] | None,
        typer.Option(help="both, left or none (neighbours analysed with an unknown eojeol)."),
    ] = None,
    new_words: Annotated[int, typer.Option(help="Most new words to find.", min=0)] = 0,
    tokenizer: Annotated[
        str, typer.Option(help="Measured against plain Kiwi: kiwi (behind its cache) or mecab.")
    ] = "kiwi",
) -> None:
    """Text preparation against plain Kiwi: morphemes/s of one core and identical words.

    Example: `yeoron bench text petitions.jsonl.xz reviews.jsonl.xz --every 8`
    """
    if tokenizer not in TOKENIZERS:
        raise ConfigError(f"--tokenizer {tokenizer}: {', '.join(TOKENIZERS)} are accepted.")
    unknown = sorted(set(context or ()) - set(CONTEXTS))
    if unknown:
        raise ConfigError(f"--context {unknown[0]}: {', '.join(CONTEXTS)} are accepted.")
    measurement("text").bench_text(
        corpus,
        documents=documents,
        every=every,
        contexts=tuple(context or ("both",)),
        new_words=new_words,
        tokenizer=tokenizer,
    )


def mask(
    corpus: Annotated[
        list[Path] | None,
        typer.Argument(help="Corpora to count masked pieces in (JSONL or lines; .xz is read)."),
    ] = None,
    count: Annotated[
        int, typer.Option(help="Generated texts with and without personal data.", min=100)
    ] = 20_000,
    documents: Annotated[
        int | None, typer.Option(help="Documents of each corpus; all unless given.", min=1)
    ] = None,
) -> None:
    """Recall and precision of masking personal data on generated texts, in two styles.

    Example: `yeoron bench mask petitions.jsonl.xz`
    """
    measurement("mask").bench_mask(corpus or (), count=count, documents=documents)
