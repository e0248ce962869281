"""The options of `yeoron train`, and the request that they make."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from embedding.commands.common import Json, sync_settings
from embedding.kernel.config import validate
from embedding.kernel.errors import ConfigError
from embedding.text.tokenizers import as_written

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from embedding.training import TrainRequest

_UNITS = ("hour", "day", "week", "month")
WINDOW = 5
NUMBER = re.compile(r"[+-]?\d{1,18}")
CHANGED_MB = 256


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What is trained, and at which rate."""

    model: Annotated[
        str, typer.Option(help="One of {models}. sppmi counts instead of training.")
    ] = "sgns"
    dim: Annotated[int, typer.Option(help="Length of the vectors.")] = 100
    words_each_side: Annotated[
        str | None,
        typer.Option("--context", help="Words on each side that count as context (default: 5)."),
    ] = None
    negative: Annotated[int, typer.Option(help="Noise words for each pair.")] = 5
    sample: Annotated[float, typer.Option(help="Subsampling threshold; 0: none.")] = 1e-4
    learning_rate: Annotated[
        float, typer.Option(help="Learning rate at the start; with --schedule window its mean.")
    ] = 0.025
    schedule: Annotated[
        str | None,
        typer.Option(
            help="How the learning rate moves: linear falls to the end; constant; window "
            "falls in each window from 1.5 to 0.5 times the rate (default with "
            "--dated)."
        ),
    ] = None
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 1


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How the corpus is read."""

    tokenizer: Annotated[str, typer.Option(help="One of {tokenizers}.")] = "whitespace"
    vocabulary: Annotated[
        str | None,
        typer.Option(
            help="counted: count the words first; growing: a single pass (default: "
            "counted for plain text cut at blanks, where it is quick; else growing)."
        ),
    ] = None
    min_count: Annotated[int, typer.Option(help="Occurrences before a word gets a vector.")] = 5
    max_words: Annotated[int, typer.Option(help="Most words that get a vector.")] = 1_000_000
    epochs: Annotated[int, typer.Option(help="Times the corpus is read.")] = 1
    tokens: Annotated[int | None, typer.Option(help="Stop after this many tokens.")] = None
    dated: Annotated[
        bool,
        typer.Option(
            "--dated",
            help="Learn a dated corpus in order of time, in one pass, and take a snapshot "
            "of each window.",
        ),
    ] = False
    window: Annotated[
        list[str] | None,
        typer.Option(help="With --dated: length of a window: hour, day, week or month."),
    ] = None
    sources: Annotated[
        int,
        typer.Option(
            help="With --dated: how many sources are told apart, those with most text; "
            "all others count as `other`. 0: all text is one source."
        ),
    ] = 32
    rehearsal_passes: Annotated[
        float | None,
        typer.Option(
            help="With --dated: most times that the first window's text is learnt again, "
            "as long as held-out text is predicted better; later windows get fewer "
            "(default: 30; 0: none)."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class PlacementOptions:
    """How many processes train and hold the tables, and where."""

    nodes: Annotated[int, typer.Option(help="Nodes that train at the same time.")] = 1
    block_tokens: Annotated[
        int | None,
        typer.Option(
            help="Tokens that a node learns between two pulls. With fewer it sees sooner "
            "what others learnt, and sends more bytes (default: 25,000; with n > 2 "
            "nodes 50,000 / n)."
        ),
    ] = None
    shards: Annotated[
        int, typer.Option(help="Processes that hold the tables; --split says how.")
    ] = 1
    split: Annotated[
        str,
        typer.Option(
            help="rows: a shard holds whole rows. columns: a shard holds a part of every "
            "row; no row travels, so bytes do not depend on --dim."
        ),
    ] = "rows"
    device: Annotated[
        str, typer.Option(help="Where the server's tables are: cpu, cuda or auto.")
    ] = "cpu"


@dataclass(frozen=True, kw_only=True)
class SyncOptions:
    """How nodes and servers are kept in step."""

    sync: Annotated[
        str,
        typer.Option(
            help="When nodes see what others learnt: {policies}. sandblaster: rounds of "
            "L-BFGS on what was read; hogwild: the nodes share the tables in memory."
        ),
    ] = "ssp"
    sync_setting: Annotated[
        list[str] | None,
        typer.Option(
            help="A setting of --sync as NAME=VALUE, as in tau=8 or staleness=2 "
            "(docs/concepts/synchronisation.md); may be repeated."
        ),
    ] = None
    topology: Annotated[
        str,
        typer.Option(
            help="ps: rows travel through the server. allreduce: every node holds all "
            "rows, and changes are summed. hybrid: rows of nearly every block by "
            "all-reduce, the others through the server."
        ),
    ] = "ps"
    aggregators: Annotated[
        int,
        typer.Option(
            help="Processes that each add up the pushes of some nodes and send one push to the "
            "server."
        ),
    ] = 0
    server_groups: Annotated[
        int,
        typer.Option(
            help="Parameter servers. Each holds all rows for some of the nodes; every "
            "--exchange-every seconds they exchange what changed."
        ),
    ] = 1
    exchange_every: Annotated[
        float, typer.Option(help="Seconds between two exchanges of the --server-groups.")
    ] = 1.0


@dataclass(frozen=True, kw_only=True)
class ExchangeOptions:
    """How rows and what was learnt travel."""

    pulls: Annotated[
        str,
        typer.Option(
            help="What nodes pull: rows, or only the changes of rows that they keep, in "
            "steps as threshold sends them, which takes fewer bytes."
        ),
    ] = "rows"
    compression: Annotated[
        str,
        typer.Option(
            help="How changes are sent: {compressions}. none: float32; threshold: "
            "multiples of a step; onebit: one bit for each number; topk: the numbers "
            "that changed most."
        ),
    ] = "fp16"
    threshold: Annotated[
        float, typer.Option(help="For threshold and changes: the smallest step.")
    ] = 0.005
    relative_threshold: Annotated[
        float,
        typer.Option(
            help="For threshold and changes: the step of a row, as a multiple of the root "
            "mean square of its changes; 0: --threshold for every row."
        ),
    ] = 1.0
    directions: Annotated[
        int,
        typer.Option(
            help="For threshold and changes: principal directions that are sent with the rows."
        ),
    ] = 16
    top_share: Annotated[
        float, typer.Option(help="For topk: the share of the numbers that is sent.")
    ] = 0.05
    cache_mb: Annotated[
        int,
        typer.Option(
            help="Megabytes of rows that each node keeps; only rows that others changed "
            "are sent again. 0: none; with --pulls changes 256.",
            min=0,
        ),
    ] = 0


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """What is kept and printed of a training."""

    out: Annotated[
        Path | None,
        typer.Option(help="New or empty folder for the snapshots. Without it nothing is kept."),
    ] = None
    state_dir: Annotated[
        Path | None,
        typer.Option(
            help="Folder of checkpoints. After an interruption the same command goes on from there."
        ),
    ] = None
    checkpoint_every: Annotated[
        float, typer.Option(help="Seconds between two checkpoints in --state-dir.")
    ] = 30.0
    as_json: Json = False


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """All options of `yeoron train`."""

    corpus: Path
    model: ModelOptions = ModelOptions()
    reading: ReadingOptions = ReadingOptions()
    placement: PlacementOptions = PlacementOptions()
    sync: SyncOptions = SyncOptions()
    exchange: ExchangeOptions = ExchangeOptions()
    output: OutputOptions = OutputOptions()


Group = TypeVar("Group", bound="DataclassInstance")

SETTING = {
    **{name: ("model", name) for name in ("model", "dim", "negative", "sample", "seed")},
    **{name: ("model", name) for name in ("learning_rate", "schedule")},
    **{name: ("server", name) for name in ("min_count", "max_words", "device", "shards", "split")},
    "checkpoint_every": ("server", "checkpoint_every_s"),
    "block_tokens": ("node", "block_tokens"),
    "sync": ("sync", "policy"),
    **{name: ("exchange", name) for name in ("pulls", "compression", "threshold", "top_share")},
    **{name: ("exchange", name) for name in ("relative_threshold", "directions")},
    "tokenizer": ("text", "tokenizer"),
}
"""Options that are settings too: option → section and name."""


def request_of(
    options: TrainOptions,
    given: Collection[str] = (),
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> TrainRequest:
    """The options of `yeoron train` as a checked request.

    given     the options that the command line names: they win over settings
    settings  by section what file and environment say and a training takes; they win over defaults
    """
    from embedding.training import TrainRequest

    found = {name: dict(values) for name, values in (settings or {}).items()}
    reading = _completed(options.reading, given, found)
    placement = _completed(options.placement, given, found)
    output = _completed(options.output, given, found)
    model = _completed(options.model, given, found)
    sync = _completed(options.sync, given, found)
    exchange = _completed(options.exchange, given, found)
    context = _context(model.words_each_side)
    unit = _unit(reading.window or [], reading.dated)
    values: dict[str, Any] = {
        "corpus": options.corpus,
        "out": output.out,
        "state_dir": output.state_dir,
        "checkpoint_every_s": output.checkpoint_every,
        **vars(placement),
        "vocabulary": reading.vocabulary,
        "min_count": reading.min_count,
        "max_words": reading.max_words,
        "epochs": reading.epochs,
        "tokens": reading.tokens,
        "dated": unit,
        "sources": reading.sources,
        "rehearsal_passes": reading.rehearsal_passes,
        "model": _model(model, context, reading.dated, placement.split, found.get("model", {})),
        "text": _text(reading, found.get("text", {})),
        "sync": {
            **found.get("sync", {}),
            "policy": sync.sync,
            **sync_settings(sync.sync_setting, "--sync"),
        },
        "exchange": _exchange(exchange, given, found.get("exchange", {})),
        "stream": found.get("stream", {}),
        "node": found.get("node", {}),
        "server": found.get("server", {}),
        "topology": {
            "kind": sync.topology,
            "aggregators": sync.aggregators,
            "server_groups": sync.server_groups,
            "exchange_every_s": sync.exchange_every,
        },
    }
    return validate(TrainRequest, values, "train")


def _completed(group: Group, given: Collection[str], found: dict[str, dict[str, Any]]) -> Group:
    """The group with what settings say where no option does; what is used leaves `found`."""
    taken = {}
    for field in fields(group):
        section, name = SETTING.get(field.name, ("", ""))
        value = found.get(section, {}).pop(name, None)
        if value is not None and field.name not in given:
            taken[field.name] = value
    return replace(group, **taken)


def _model(
    model: ModelOptions, context: int | None, dated: bool, split: str, found: Mapping[str, Any]
) -> dict[str, Any]:
    from embedding.training.request import FRESH_NOISE

    usual = {key: value for key, value in found.items() if key != "window"}
    return {
        **(FRESH_NOISE if dated and split == "rows" else {}),
        "schedule": "window" if dated else "linear",
        **usual,
        "model": model.model,
        "dim": model.dim,
        "negative": model.negative,
        "sample": model.sample,
        "seed": model.seed,
        "learning_rate": model.learning_rate,
        **({"schedule": model.schedule} if model.schedule else {}),
        "window": found.get("window", WINDOW) if context is None else context,
    }


def _text(reading: ReadingOptions, found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "mask": not as_written(reading.tokenizer),
        **({} if reading.dated else {"new_words": 0, "phrases": 0, "boilerplate": 0.0}),
        **found,
        "tokenizer": reading.tokenizer,
    }


def _exchange(
    exchange: ExchangeOptions, given: Collection[str], found: Mapping[str, Any]
) -> dict[str, Any]:
    cache_mb = exchange.cache_mb or (CHANGED_MB if exchange.pulls == "changes" else 0)
    cache = {"cache_bytes": cache_mb * 2**20}
    return {
        **(cache if cache_mb else {}),
        **found,
        **(cache if "cache_mb" in given else {}),
        **{name: value for name, value in vars(exchange).items() if name != "cache_mb"},
    }


def _context(given: str | None) -> int | None:
    if given is not None and not NUMBER.fullmatch(given):
        raise ConfigError(f"--context {given[:40]}: a number of words is accepted.")
    return None if given is None else int(given)


def _unit(given: list[str], dated: bool) -> str | None:
    """The unit in which time is cut."""
    for value in given:
        if NUMBER.fullmatch(value):
            raise ConfigError(
                f"--window {value}: the number of words on each side is called --context now; "
                f"--window takes {', '.join(_UNITS)}."
            )
        if value not in _UNITS:
            raise ConfigError(f"--window {value[:40]}: {', '.join(_UNITS)} is accepted.")
    if len(given) > 1:
        raise ConfigError(f"--window {' --window '.join(given)}: one of them is accepted.")
    if dated and not given:
        raise ConfigError(f"--dated: say how time is cut, --window {', '.join(_UNITS)}.")
    if given and not dated:
        raise ConfigError(f"--window {given[0]}: time is cut with --dated only.")
    return given[0] if given else None
