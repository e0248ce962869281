"""`yeoron train` and `evaluate`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn
from rich.text import Text

from embedding.commands.common import Json, console, errors, print_json, settings
from embedding.commands.snapshots import ID_HELP, open_snapshot
from embedding.config import validate
from embedding.errors import ConfigError

if TYPE_CHECKING:
    from embedding.training import TrainProgress, TrainRequest, TrainResult

UNITS = ("hour", "day", "week", "month")
WINDOW = 5


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(train)
    app.command()(evaluate)


def train(
    corpus: Annotated[Path, typer.Argument(help="Text (a sentence a line) or dated JSONL.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the snapshots, new or empty; none: not kept.")
    ] = None,
    model: Annotated[str, typer.Option(help="sgns, cbow, fasttext or glove.")] = "sgns",
    dim: Annotated[int, typer.Option(help="Length of the vectors.")] = 100,
    window: Annotated[
        list[str] | None,
        typer.Option(
            help="Words on each side that are context (5 when not given). With --dated also hour, "
            "day, week or month: how time is cut. May be given twice, once for each."
        ),
    ] = None,
    negative: Annotated[int, typer.Option(help="Noise words a pair.")] = 5,
    sample: Annotated[float, typer.Option(help="Subsampling threshold, 0 for none.")] = 1e-4,
    min_count: Annotated[int, typer.Option(help="Occurrences before a word gets a row.")] = 5,
    max_words: Annotated[int, typer.Option(help="Most words that have a row.")] = 1_000_000,
    epochs: Annotated[int, typer.Option(help="Times the corpus is read.")] = 1,
    nodes: Annotated[int, typer.Option(help="Nodes that train at the same time.")] = 1,
    sync: Annotated[
        str,
        typer.Option(help="bsp, ssp, asp, or hogwild (tables in memory that the nodes share)."),
    ] = "ssp",
    tokenizer: Annotated[
        str, typer.Option(help="whitespace, kiwi, mecab, script or auto.")
    ] = "whitespace",
    vocabulary: Annotated[
        str | None,
        typer.Option(
            help="counted: count the words first; growing: a single pass. When not given, plain "
            "text cut at blanks is counted first, as that is quick."
        ),
    ] = None,
    dated: Annotated[
        bool,
        typer.Option(
            "--dated",
            help="Learn JSONL in time order, in one pass, and cut a snapshot for each window.",
        ),
    ] = False,
    learning_rate: Annotated[float, typer.Option(help="Learning rate at the start.")] = 0.025,
    schedule: Annotated[
        str | None,
        typer.Option(help="linear (falls to the end) or constant; --dated takes constant."),
    ] = None,
    tokens: Annotated[int | None, typer.Option(help="Stop after so many tokens.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 1,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "cpu",
    as_json: Json = False,
) -> None:
    """Train on a corpus file, through the same nodes and server as the stream.

    Examples:

    `yeoron train news.txt --out store --nodes 2`

    `yeoron train news.txt --out store --window 10 --epochs 5 --sync hogwild --nodes 2`

    `yeoron train posts.jsonl --dated --window month --tokenizer kiwi --out store --json`

    `yeoron train posts.jsonl --dated --window month --window 8 --out store`
    """
    request = _request(dict(locals()))
    from embedding.training import train_corpus

    try:
        with TrainBar(kept=out is not None) as bar:
            result = train_corpus(request, bar.show)
    except KeyboardInterrupt:
        errors.print("yeoron: interrupted; every node has ended and nothing was kept.")
        raise typer.Exit(130) from None
    if result.late_documents:
        errors.print(
            f"{result.late_documents:,} documents came after the cut of their window and are "
            "missing in its counts.",
            highlight=False,
        )
    if as_json:
        print_json(result.to_dict())
    else:
        _print(result, kept=out is not None)


def _print(result: TrainResult, *, kept: bool) -> None:
    console.print(
        f"{result.tokens_trained:,} tokens in {result.train_seconds:.1f} s "
        f"({result.words_per_second:,.0f} words/s), {result.vocabulary:,} words, "
        f"loss {result.loss:.3f}",
        highlight=False,
    )
    if not kept:
        console.print("Nothing was kept; --out DIR keeps it.")
        return
    for ref in result.snapshots:
        console.print(f"{ref.id}  {ref.words:,} words  {ref.uri}", highlight=False)


def _request(given: dict[str, Any]) -> TrainRequest:
    """The options of `yeoron train` as a checked request."""
    from embedding.training import TrainRequest

    context, unit = _windows(given["window"] or [], given["dated"])
    top = ("corpus", "out", "nodes", "epochs", "tokens", "vocabulary")
    more = ("min_count", "max_words", "device")
    model = ("model", "dim", "negative", "sample", "seed", "learning_rate")
    values: dict[str, Any] = {
        **{name: given[name] for name in (*top, *more)},
        "dated": unit,
        "model": {
            **{name: given[name] for name in model},
            "window": context,
            "schedule": given["schedule"] or ("constant" if given["dated"] else "linear"),
        },
        "text": {"tokenizer": given["tokenizer"], "mask": given["tokenizer"] != "whitespace"},
        "sync": {"policy": given["sync"]},
    }
    return validate(TrainRequest, values, "train")


def _windows(given: list[str], dated: bool) -> tuple[int, str | None]:
    """Both readings of --window: context words, and the unit in which time is cut."""
    units = [value for value in given if value in UNITS]
    numbers = [value for value in given if value not in UNITS]
    for value in numbers:
        if not value.lstrip("+-").isdecimal():
            raise ConfigError(
                f"--window {value}: a number of words, or {', '.join(UNITS)} with --dated, is "
                "accepted."
            )
    for several in (units, numbers):
        if len(several) > 1:
            raise ConfigError(
                f"--window {' --window '.join(several)}: one of them is accepted; two go together "
                "when one is a number of words and one a unit of time."
            )
    if dated and not units:
        raise ConfigError(f"--dated: say how time is cut, --window {', '.join(UNITS)}.")
    if units and not dated:
        raise ConfigError(
            f"--window {units[0]}: time is cut with --dated only; without it a number of words is "
            "accepted."
        )
    return int(numbers[0]) if numbers else WINDOW, units[0] if units else None


class _TimeLeft(ProgressColumn):
    """Time left, from the share done since the first tokens were learnt."""

    def render(self, task: Task) -> Text:
        if task.total is None or not task.completed or task.fields["began"] is None:
            return Text("", style="progress.remaining")
        done = task.completed - task.fields["from_share"]
        if done <= 0:
            return Text("", style="progress.remaining")
        passed = task.get_time() - task.fields["began"]
        left = timedelta(seconds=int(passed * (task.total - task.completed) / done))
        return Text(f"{left} left", style="progress.remaining")


class TrainBar:
    """A progress bar on a terminal, nothing elsewhere."""

    def __init__(self, *, kept: bool) -> None:
        start = "Starting" if kept else "Starting (no --out: nothing will be kept)"
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            _TimeLeft(),
            console=errors,
            disable=not errors.is_terminal,
            transient=True,
        )
        self._task = self.progress.add_task(start, total=None, began=None, from_share=0.0)

    def __enter__(self) -> TrainBar:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def show(self, at: TrainProgress) -> None:
        """Show how far the training is."""
        if not at.tokens:
            return
        loss = "" if at.loss is None else f", loss {at.loss:.3f}"
        self.progress.update(self._task, description=f"{at.words_per_second:,.0f} words/s{loss}")
        if at.share is None:
            return
        self.progress.update(self._task, total=1.0, completed=at.share)
        task = self.progress.tasks[0]
        if task.fields["began"] is None:
            self.progress.update(self._task, began=task.get_time(), from_share=at.share)


def evaluate(
    snapshot: Annotated[str, typer.Argument(help=ID_HELP)] = "latest",
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

    chosen = settings()
    opened = open_snapshot(snapshot, snapshots)
    files = tuple(gold) if gold else chosen.evaluation.gold
    result = evaluate_snapshot(opened, files, chosen.evaluation.device)
    if as_json:
        print_json({"metrics": result.metrics, "skipped": list(result.skipped)})
        return
    for name, value in sorted(result.metrics.items()):
        console.print(f"{name:<40} {value:.4f}", highlight=False)
    for sentence in result.skipped:
        console.print(f"· {sentence}", markup=False)
