"""`yeoron train`."""

from __future__ import annotations

import math
import os
from datetime import timedelta
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn
from rich.text import Text

from embedding.commands.common import Json, console, errors, keep_private, print_json, print_line
from embedding.commands.importing import as_corpus
from embedding.commands.naming import NamingCommand
from embedding.commands.option_groups import with_settings
from embedding.commands.train_options import OPTIONS, request_of

if TYPE_CHECKING:
    from embedding.training import TrainProgress, TrainRequest, TrainResult


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
        again = f", {at.replayed:,} learnt again" if at.replayed else ""
        text = f"{at.words_per_second:,.0f} words/s{again}{loss}"
        self.progress.update(self._task, description=text)
        if at.share is None:
            return
        self.progress.update(self._task, total=1.0, completed=at.share)
        task = self.progress.tasks[0]
        if task.fields["began"] is None:
            self.progress.update(self._task, began=task.get_time(), from_share=at.share)


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command(cls=NamingCommand, help=f"{cleandoc(train.__doc__ or '')}\n\n{EXAMPLES}")(
        with_settings(OPTIONS)(train)
    )


EXAMPLES = """Examples:

`yeoron train posts.jsonl --dated --window month --tokenizer kiwi --out var/snapshots`

`yeoron train posts.csv --dated --window month --tokenizer kiwi`, whatever `yeoron import` reads

`yeoron train news.txt --out store --nodes 2`

`yeoron train large.txt --out store --state-dir state`; after a crash the same command goes on

`yeoron train news.txt --model sppmi --out counted`

`yeoron train news.txt --nodes 4 --sync averaging --sync-setting tau=8`

More of several nodes: docs/concepts/topologies.md
"""


def train(
    corpus: Annotated[
        Path,
        typer.Argument(
            help="Plain text, a sentence a line. With --dated also whatever `yeoron import` reads."
        ),
    ],
    given: dict[str, Any],
    as_json: Json = False,
) -> None:
    """Train on a file, with the same nodes and server as the stream of the platform.

    What no option says is taken from the settings (`yeoron.toml`, `YEORON_NODE__REPLAY_RATIO=2`).
    """
    from embedding.models.traits import COUNT_MODELS

    if given.get("model") not in COUNT_MODELS:
        # Before numpy is imported: threads of matrix products beside the nodes' own keep cores
        # busy by waiting for each other.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from embedding.settings import given_settings
    from embedding.training.settings import taken

    request = request_of(corpus, given, taken(given_settings()))
    with as_corpus(request) as readable:
        result = _train(readable)
    if result.unreadable is not None:
        why = f"{corpus}: {result.unreadable}"
        print_line(why, to=errors)
    if as_json:
        print_json(result.to_dict())
    else:
        _print(result, kept=request.out is not None)


def _train(request: TrainRequest) -> TrainResult:
    """Train with a bar; ^C ends it with a message and exit code 130."""
    from embedding.platform.notes import texts_left_out
    from embedding.training import train_corpus

    keep_private()
    try:
        with TrainBar(kept=request.out is not None) as bar:
            result = train_corpus(request, bar.show)
    except KeyboardInterrupt:
        kept = "nothing was kept"
        if request.state_dir is not None:
            kept = f"the same command goes on from {request.state_dir}"
        print_line(f"yeoron: interrupted; every node has ended and {kept}.", to=errors)
        raise typer.Exit(130) from None
    if result.late_documents:
        print_line(
            f"{result.late_documents:,} documents came after the cut of their window and are "
            "missing in its counts.",
            to=errors,
        )
    if left_out := texts_left_out(vars(result)):
        print_line(left_out, to=errors)
    lost, again = (int(result.transports.get(name) or 0) for name in ("lost_tokens", "from_server"))
    if lost or again:
        print_line(
            f"nodes died together: what {lost:,} tokens had taught died with them, and {again} "
            "times what up to write_back_blocks blocks of each node had; all tokens are counted "
            "(docs/concepts/topologies.md).",
            to=errors,
        )
    return result


def _print(result: TrainResult, *, kept: bool) -> None:
    loss = f", loss {result.loss:.3f}" if math.isfinite(result.loss) else ""
    again = f", {result.replayed_tokens:,} learnt again" if result.replayed_tokens else ""
    print_line(
        f"{result.tokens_trained:,} tokens in {result.train_seconds:.1f} s "
        f"({result.words_per_second:,.0f} words/s{again}), {result.vocabulary:,} words{loss}"
    )
    if not kept:
        console.print("Nothing was kept; --out DIR keeps it.")
        return
    for ref in result.snapshots:
        print_line(f"{ref.id}  {ref.words:,} words  {ref.uri}")
