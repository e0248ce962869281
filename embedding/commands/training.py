"""`yeoron train` and `evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from embedding.commands.common import Json, console, errors, print_json, settings
from embedding.config import validate

if TYPE_CHECKING:
    from embedding.training import TrainRequest


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(train)
    app.command()(evaluate)


def train(
    corpus: Annotated[Path, typer.Argument(help="Text (a sentence a line) or dated JSONL.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the snapshot store.")] = None,
    model: Annotated[str, typer.Option(help="sgns, cbow, fasttext, glove.")] = "sgns",
    dim: Annotated[int, typer.Option(help="Length of the vectors.")] = 100,
    window: Annotated[int, typer.Option(help="Words on each side that are context.")] = 5,
    negative: Annotated[int, typer.Option(help="Noise words a pair.")] = 5,
    sample: Annotated[float, typer.Option(help="Subsampling threshold, 0 for none.")] = 1e-4,
    min_count: Annotated[int, typer.Option(help="Occurrences before a word gets a row.")] = 5,
    epochs: Annotated[int, typer.Option(help="Times the corpus is read.")] = 1,
    nodes: Annotated[int, typer.Option(help="Nodes that train at the same time.")] = 1,
    sync: Annotated[str, typer.Option(help="bsp, ssp or asp.")] = "ssp",
    tokenizer: Annotated[
        str, typer.Option(help="whitespace, kiwi, mecab, script or auto.")
    ] = "whitespace",
    dated: Annotated[
        str | None, typer.Option(help="A snapshot for each hour, day, week or month.")
    ] = None,
    tokens: Annotated[int | None, typer.Option(help="Stop after so many tokens.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 1,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "cpu",
    as_json: Json = False,
) -> None:
    """Train on a corpus file, through the same nodes and server as the stream.

    Examples: `yeoron train news.txt --out store --nodes 2` ·
    `yeoron train posts.jsonl --tokenizer kiwi --dated month --out store --json`
    """
    given = dict(locals())
    from embedding.training import train_corpus

    request = _request(given)
    with _progress() as bar:
        task = bar.add_task("Starting nodes …", total=None)
        result = train_corpus(request, lambda status: _show(bar, task, status))
    if as_json:
        print_json(result.to_dict())
        return
    console.print(
        f"{result.tokens_trained:,} tokens in {result.train_seconds:.1f} s "
        f"({result.words_per_second:,.0f} words/s), {result.vocabulary:,} words, "
        f"loss {result.loss:.3f}"
    )
    for ref in result.snapshots if out is not None else ():
        console.print(f"{ref.id}  {ref.words:,} words  {ref.uri}", highlight=False)


def _request(given: dict[str, Any]) -> TrainRequest:
    """The options of `yeoron train` as a checked request."""
    from embedding.training import TrainRequest

    top = ("corpus", "out", "nodes", "epochs", "tokens", "dated", "min_count", "device")
    model = ("model", "dim", "window", "negative", "sample", "seed")
    values: dict[str, Any] = {
        **{name: given[name] for name in top},
        "model": {name: given[name] for name in model},
        "text": {"tokenizer": given["tokenizer"], "mask": given["tokenizer"] != "whitespace"},
        "sync": {"policy": given["sync"]},
    }
    return validate(TrainRequest, values, "yeoron train")


def _progress() -> Progress:
    """A progress line on a terminal, nothing elsewhere."""
    return Progress(
        SpinnerColumn(),
        TextColumn("[bold]{task.description}"),
        BarColumn(pulse_style="bar.complete"),
        TimeElapsedColumn(),
        console=errors,
        disable=not errors.is_terminal,
    )


def _show(bar: Progress, task: TaskID, status: dict[str, Any]) -> None:
    if status["tokens"]:
        speed = f"{status['tokens']:,} tokens, {status['words_per_second']:,.0f} words/s"
        loss = f", loss {status['loss']:.3f}" if status["loss"] is not None else ""
        bar.update(task, description=speed + loss)


def evaluate(
    snapshot: Annotated[str, typer.Argument(help="Snapshot id, or latest.")] = "latest",
    snapshots: Annotated[Path | None, typer.Option(help="Snapshot store.")] = None,
    gold: Annotated[
        list[Path] | None, typer.Option(help="Similarity or analogy file; may be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Judge a snapshot: likelihood by source, PIP loss, similarity and analogy gold sets.

    Example: `yeoron evaluate latest --gold ws353_ko.tsv`
    """
    from embedding.evaluation.evaluate import evaluate_snapshot
    from embedding.snapshots.store import SnapshotStore

    chosen = settings()
    store = SnapshotStore(str(snapshots or chosen.paths.snapshots))
    files = tuple(gold) if gold else chosen.evaluation.gold
    result = evaluate_snapshot(store.open(snapshot), files, chosen.evaluation.device)
    if as_json:
        print_json({"metrics": result.metrics, "skipped": list(result.skipped)})
        return
    for name, value in sorted(result.metrics.items()):
        console.print(f"{name:<40} {value:.4f}", highlight=False)
    for sentence in result.skipped:
        console.print(f"· {sentence}", markup=False)
