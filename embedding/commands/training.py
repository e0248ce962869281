"""`yeoron train`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import TextColumn

from embedding.commands.common import (
    SYNC_SETTING,
    Json,
    console,
    errors,
    keep_private,
    print_json,
    print_line,
    sync_settings,
)
from embedding.commands.importing import as_corpus, progress_bar
from embedding.commands.option_groups import by_section, given_options, settings_command
from embedding.kernel.config import validate
from embedding.kernel.errors import ConfigError
from embedding.text.tokenizers import as_written

if TYPE_CHECKING:
    from embedding.training import TrainProgress, TrainRequest, TrainResult


_UNITS = ("hour", "day", "week", "month")
CHANGED_MB = 256
TRAIN_OPTIONS = {
    "out": "out",
    "tokenizer": "text.tokenizer",
    "nodes": "nodes",
    "state_dir": "state_dir",
    "checkpoint_every": "server.checkpoint_every_s",
    "model": "model.model",
    "dim": "model.dim",
    "context": "model.window",
    "negative": "model.negative",
    "sample": "model.sample",
    "learning_rate": "model.learning_rate",
    "schedule": "model.schedule",
    "seed": "model.seed",
    "vocabulary": "vocabulary",
    "min_count": "server.min_count",
    "max_words": "server.max_words",
    "epochs": "epochs",
    "tokens": "tokens",
    "sources": "sources",
    "unit_lines": "unit_lines",
    "rehearsal_passes": "node.rehearsal_passes",
    "block_tokens": "node.block_tokens",
    "shards": "server.shards",
    "split": "server.split",
    "device": "server.device",
    "sync": "sync.policy",
    "topology": "topology.kind",
    "aggregators": "topology.aggregators",
    "server_groups": "topology.server_groups",
    "exchange_every": "topology.exchange_every_s",
    "pulls": "exchange.pulls",
    "compression": "exchange.compression",
    "threshold": "exchange.threshold",
    "relative_threshold": "exchange.relative_threshold",
    "top_share": "exchange.top_share",
}
"""The options that are settings, or fields of a training's request."""
TRAIN_DEFAULTS = {
    "tokenizer": "whitespace",
    "schedule": "linear, and window with --dated",
    "block_tokens": "25,000, and 50,000 / n with n > 2 nodes",
    "device": "cpu",
}
"""Their defaults where a training has others than the stream."""
FIRST_OPTIONS = ("out", "dated", "window", "tokenizer", "nodes", "state_dir")
"""The options that a first training needs, in the order in which its help shows them."""
EXPERTS = "For experts"


def request_of(
    corpus: Path,
    given: Mapping[str, Any],
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    dated: str | None = None,
    sync_setting: Sequence[str] | None = None,
    cache_mb: int | None = None,
) -> TrainRequest:
    """What the options ask for, checked.

    given     the options that the command line names: they win over settings
    settings  by section what file and environment say and a training uses
    """
    from embedding.training.request import FRESH_NOISE, TrainRequest

    own = by_section(given, TRAIN_OPTIONS)
    sections = {
        name: {**(settings or {}).get(name, {}), **own.pop(name, {})}
        for name in {*(settings or {}), *own, "model", "text", "exchange", "sync"} - {""}
    }
    fresh = dated is not None and sections.get("server", {}).get("split", "rows") == "rows"
    schedule = "linear" if dated is None else "window"
    sections["model"] = {
        **(FRESH_NOISE if fresh else {}),
        "schedule": schedule,
        **sections["model"],
    }
    tokenizer = sections["text"].get("tokenizer", "whitespace")
    sections["text"] = {
        "tokenizer": tokenizer,
        "mask": not as_written(tokenizer),
        **({"new_words": 0, "phrases": 0, "boilerplate": 0.0} if dated is None else {}),
        **sections["text"],
    }
    sections["sync"] |= sync_settings(sync_setting, "--sync")
    exchange = sections["exchange"]
    usual_mb = CHANGED_MB if exchange.get("pulls") == "changes" else 0
    if cache_mb is not None:
        exchange["cache_bytes"] = (cache_mb or usual_mb) * 2**20
    elif usual_mb:
        exchange.setdefault("cache_bytes", usual_mb * 2**20)
    values = {**own.get("", {}), "corpus": corpus, "dated": dated}
    return validate(TrainRequest, values | sections, "train")


def unit_of(*, dated: bool, window: Sequence[str]) -> str | None:
    """The unit in which time is cut; ConfigError for options that do not go together."""
    units = ", ".join(_UNITS)
    for value in window:
        if value not in _UNITS:
            raise ConfigError(f"--window {value[:40]}: {units} is accepted.")
    if len(window) > 1:
        raise ConfigError(f"--window {' --window '.join(window)}: one of them is accepted.")
    if dated and not window:
        raise ConfigError(f"--dated: say how time is cut, --window {units}.")
    if window and not dated:
        raise ConfigError(f"--window {window[0]}: time is cut with --dated only.")
    return window[0] if window else None


class TrainBar:
    """A progress bar on a terminal, nothing elsewhere."""

    def __init__(self, *, kept: bool) -> None:
        start = "Starting" if kept else "Starting (no --out: nothing will be kept)"
        self.progress = progress_bar(errors, TextColumn("{task.fields[left]}"))
        self._task = self.progress.add_task(start, total=None, left="")

    def __enter__(self) -> TrainBar:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def show(self, progress: TrainProgress) -> None:
        """Show how far the training is."""
        if not progress.tokens:
            return
        loss = "" if progress.loss is None else f", loss {progress.loss:.3f}"
        again = f", {progress.replayed:,} learnt again" if progress.replayed else ""
        text = f"{progress.words_per_second:,.0f} words/s{again}{loss}"
        self.progress.update(self._task, description=text)
        if progress.share is None:
            return
        if self.progress.tasks[0].total is None:  # time is counted from the first tokens on
            done = round(100 * progress.share)
            self.progress.reset(self._task, total=100, completed=done, left="left")
        self.progress.update(self._task, completed=100 * progress.share)


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
    context: typer.Context,
    corpus: Annotated[
        Path,
        typer.Argument(
            help="Plain text, a sentence a line. With --dated also whatever `yeoron import` reads."
        ),
    ],
    dated: Annotated[
        bool,
        typer.Option(
            "--dated",
            help="Learn a dated corpus in order of time, in one pass, and take a snapshot of each "
            "window.",
        ),
    ] = False,
    window: Annotated[
        list[str] | None,
        typer.Option(help="With --dated: length of a window: hour, day, week or month."),
    ] = None,
    sync_setting: Annotated[
        list[str] | None, typer.Option(help=SYNC_SETTING, rich_help_panel=EXPERTS)
    ] = None,
    cache_mb: Annotated[
        int | None,
        typer.Option(
            min=0,
            rich_help_panel=EXPERTS,
            help="Megabytes of rows that each node keeps; only rows that others changed are sent "
            "again. 0: none; with --pulls changes 256.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Train on a file, with the same nodes and server as the stream of the platform.

    What no option says is taken from the settings (`yeoron.toml`, `YEORON_NODE__REPLAY_RATIO=2`).
    """
    from embedding.models.traits import COUNT_MODELS

    given = given_options(context)
    # Threads of matrix products beside the nodes' own keep cores busy with waiting: in the nodes,
    # and here, where numpy is there already (options are fields of settings).
    counts = given.get("model") in COUNT_MODELS
    if not counts and os.environ.setdefault("OPENBLAS_NUM_THREADS", "1") == "1":
        from threadpoolctl import threadpool_limits

        threadpool_limits(1, user_api="blas")
    from embedding.settings import given_settings
    from embedding.training.request import used_settings

    settings, passed_over = used_settings(given_settings().values)
    if passed_over:
        sentence = f"yeoron: a training of a file does not use {', '.join(passed_over)}."
        print_line(sentence, "dim", to=errors)
    request = request_of(
        corpus,
        given,
        settings,
        dated=unit_of(dated=dated, window=window or ()),
        sync_setting=sync_setting,
        cache_mb=cache_mb,
    )
    with as_corpus(request) as readable:
        result = _train(readable)
    if result.unreadable is not None:
        print_line(f"{corpus}: {result.unreadable}", to=errors)
    if as_json:
        print_json(result.to_dict())
    else:
        _print(result, kept=request.out is not None)


def register(app: typer.Typer) -> None:
    """Add this command."""
    request = "embedding.training.request:TrainRequest"
    command = settings_command(request, TRAIN_OPTIONS, usual=TRAIN_DEFAULTS, first=FIRST_OPTIONS)
    app.command(cls=command, help=f"{cleandoc(train.__doc__ or '')}\n\n{EXAMPLES}")(train)


def _train(request: TrainRequest) -> TrainResult:
    """Train with a bar; ^C ends it with a message and exit code 130."""
    from embedding.platform.notes import texts_left_out
    from embedding.training import train_corpus

    keep_private()
    try:
        with TrainBar(kept=request.out is not None) as bar:
            result = train_corpus(request, bar.show)
    except KeyboardInterrupt:
        outcome = "nothing was kept"
        if request.state_dir is not None:
            outcome = f"the same command goes on from {request.state_dir}"
        print_line(f"yeoron: interrupted; every node has ended and {outcome}.", to=errors)
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
