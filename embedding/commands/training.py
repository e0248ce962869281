"""`yeoron train`."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn
from rich.text import Text

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
from embedding.commands.importing import as_corpus
from embedding.commands.option_groups import NamingCommand, SettingOption, by_section, grouped
from embedding.kernel.config import validate
from embedding.kernel.errors import ConfigError
from embedding.text.tokenizers import as_written

if TYPE_CHECKING:
    from embedding.training import TrainProgress, TrainRequest, TrainResult


_UNITS = ("hour", "day", "week", "month")
NUMBER = re.compile(r"[+-]?\d{1,18}")
CHANGED_MB = 256


_SCHEDULE = (
    "How the learning rate moves: linear falls to the end; constant; window falls in each window "
    "from 1.5 to 0.5 times the rate (default with --dated)."
)
_BLOCK = (
    "Tokens that a node learns between two pulls. With fewer it sees sooner what others learnt, "
    "and sends more bytes (default: 25,000; with n > 2 nodes 50,000 / n)."
)
_SYNC = (
    "When nodes see what others learnt: {policies}. sandblaster: rounds of L-BFGS on what was "
    "read; hogwild: the nodes share the tables in memory (default: ssp)."
)
_CACHE = (
    "Megabytes of rows that each node keeps; only rows that others changed are sent again. "
    "0: none; with --pulls changes 256."
)
_DEVICE = (
    "Where the tables live: cpu, cuda or auto. With cuda and --sync hogwild nodes train there "
    "(default: cpu)."
)
FIRST_OPTIONS = ("out", "dated", "window", "tokenizer", "nodes", "state_dir")
"""The options that a first training needs, in the order in which its help shows them."""
_ALL = {
    "out": SettingOption(Path, "out"),
    "state_dir": SettingOption(Path, "state_dir"),
    "checkpoint_every": SettingOption(float, "server.checkpoint_every_s"),
    "model": SettingOption(
        str, "model.model", "One of {models}; sppmi counts instead of training (default: sgns)."
    ),
    "dim": SettingOption(int, "model.dim"),
    "context": SettingOption(str, "model.window"),
    "negative": SettingOption(int, "model.negative"),
    "sample": SettingOption(float, "model.sample"),
    "learning_rate": SettingOption(float, "model.learning_rate"),
    "schedule": SettingOption(str, "model.schedule", _SCHEDULE),
    "seed": SettingOption(int, "model.seed"),
    "tokenizer": SettingOption(str, "text.tokenizer", "One of {tokenizers} (default: whitespace)."),
    "vocabulary": SettingOption(str, "vocabulary"),
    "min_count": SettingOption(int, "server.min_count"),
    "max_words": SettingOption(int, "server.max_words"),
    "epochs": SettingOption(int, "epochs"),
    "tokens": SettingOption(int, "tokens"),
    "dated": SettingOption(
        bool,
        about="Learn a dated corpus in order of time, in one pass, and take a snapshot of each "
        "window.",
        flag="--dated",
    ),
    "window": SettingOption(
        list[str], about="With --dated: length of a window: hour, day, week or month."
    ),
    "sources": SettingOption(int, "sources"),
    "unit_lines": SettingOption(int, "unit_lines"),
    "rehearsal_passes": SettingOption(float, "node.rehearsal_passes"),
    "nodes": SettingOption(int, "nodes"),
    "block_tokens": SettingOption(int, "node.block_tokens", _BLOCK),
    "shards": SettingOption(int, "server.shards"),
    "split": SettingOption(str, "server.split"),
    "device": SettingOption(str, "server.device", _DEVICE),
    "sync": SettingOption(str, "sync.policy", _SYNC),
    "sync_setting": SettingOption(list[str], about=SYNC_SETTING),
    "topology": SettingOption(str, "topology.kind"),
    "aggregators": SettingOption(int, "topology.aggregators"),
    "server_groups": SettingOption(int, "topology.server_groups"),
    "exchange_every": SettingOption(float, "topology.exchange_every_s"),
    "pulls": SettingOption(str, "exchange.pulls"),
    "compression": SettingOption(str, "exchange.compression"),
    "threshold": SettingOption(float, "exchange.threshold"),
    "relative_threshold": SettingOption(float, "exchange.relative_threshold"),
    "top_share": SettingOption(float, "exchange.top_share"),
    "cache_mb": SettingOption(int, about=_CACHE, least=0),
}
OPTIONS = {name: _ALL[name] for name in FIRST_OPTIONS} | {
    name: replace(one, panel="For experts")
    for name, one in _ALL.items()
    if name not in FIRST_OPTIONS
}


def request_of(
    corpus: Path,
    given: Mapping[str, Any],
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> TrainRequest:
    """What the options ask for, checked.

    given     the options that the command line names: they win over settings
    settings  by section what file and environment say and a training takes
    """
    from embedding.training import TrainRequest

    values: dict[str, Any] = {"corpus": corpus, "dated": _unit(given)}
    sections: dict[str, dict[str, Any]] = {name: {} for name in ("model", "text", "exchange")}
    sections |= {name: dict(section) for name, section in (settings or {}).items()}
    if not NUMBER.fullmatch(given.get("context", "0")):
        raise ConfigError(f"--context {given['context'][:40]}: a number of words is accepted.")
    for section, fields in by_section(given, OPTIONS).items():
        (sections.setdefault(section, {}) if section else values).update(fields)
    dated = values["dated"] is not None
    split = sections.get("server", {}).get("split", "rows")
    sections["model"] = _model(sections["model"], dated, split)
    sections["text"] = _text(sections["text"], dated)
    sync = sync_settings(given.get("sync_setting"), "--sync")
    sections["sync"] = sections.get("sync", {}) | sync
    _keep_rows(sections["exchange"], given.get("cache_mb"))
    return validate(TrainRequest, values | sections, "train")


def _model(settings: Mapping[str, Any], dated: bool, split: str) -> dict[str, Any]:
    from embedding.training.request import FRESH_NOISE

    noise = FRESH_NOISE if dated and split == "rows" else {}
    return {**noise, "schedule": "window" if dated else "linear", **settings}


def _text(settings: Mapping[str, Any], dated: bool) -> dict[str, Any]:
    tokenizer = settings.get("tokenizer", "whitespace")
    return {
        "mask": not as_written(tokenizer),
        **({} if dated else {"new_words": 0, "phrases": 0, "boilerplate": 0.0}),
        **settings,
        "tokenizer": tokenizer,
    }


def _keep_rows(exchange: dict[str, Any], cache_mb: int | None) -> None:
    usual = CHANGED_MB if exchange.get("pulls") == "changes" else 0
    if cache_mb is not None:
        exchange["cache_bytes"] = (cache_mb or usual) * 2**20
    elif usual:
        exchange.setdefault("cache_bytes", usual * 2**20)


def _unit(given: Mapping[str, Any]) -> str | None:
    units, dated = given.get("window", []), "dated" in given
    for value in units:
        if NUMBER.fullmatch(value):
            raise ConfigError(
                f"--window {value}: the number of words on each side is called --context now; "
                f"--window takes {', '.join(_UNITS)}."
            )
        if value not in _UNITS:
            raise ConfigError(f"--window {value[:40]}: {', '.join(_UNITS)} is accepted.")
    if len(units) > 1:
        raise ConfigError(f"--window {' --window '.join(units)}: one of them is accepted.")
    if dated and not units:
        raise ConfigError(f"--dated: say how time is cut, --window {', '.join(_UNITS)}.")
    if units and not dated:
        raise ConfigError(f"--window {units[0]}: time is cut with --dated only.")
    return units[0] if units else None


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
        self.progress.update(self._task, total=1.0, completed=progress.share)
        task = self.progress.tasks[0]
        if task.fields["began"] is None:
            self.progress.update(self._task, began=task.get_time(), from_share=progress.share)


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command(cls=NamingCommand, help=f"{cleandoc(train.__doc__ or '')}\n\n{EXAMPLES}")(
        grouped(train, OPTIONS)
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
