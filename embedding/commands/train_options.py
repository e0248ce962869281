"""The options of `yeoron train`, and the request that they make."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embedding.commands.common import sync_settings
from embedding.kernel.config import validate
from embedding.kernel.errors import ConfigError

if TYPE_CHECKING:
    from embedding.training import TrainRequest

UNITS = ("hour", "day", "week", "month")
WINDOW = 5
NUMBER = re.compile(r"[+-]?\d{1,18}")
CHANGED_MB = 256
FRESH_NOISE = {"noise_own": 12, "move": 6}
"""Of a dated corpus: what is read once has to be told from other words by fresh noise. Columns have
the noise words sent by their ids, so that more of them take more bytes."""

Corpus = Annotated[Path, typer.Argument(help="Text (a sentence a line) or dated JSONL.")]
Out = Annotated[
    Path | None, typer.Option(help="Folder for the snapshots, new or empty; none: not kept.")
]
Model = Annotated[
    str, typer.Option(help="sgns, cbow, fasttext, glove or sppmi (the count baseline).")
]
Dim = Annotated[int, typer.Option(help="Length of the vectors.")]
Window = Annotated[
    list[str] | None,
    typer.Option(
        help="Words on each side that are context (5 when not given). With --dated also hour, "
        "day, week or month: how time is cut. May be given twice, once for each."
    ),
]
Negative = Annotated[int, typer.Option(help="Noise words a pair.")]
Sample = Annotated[float, typer.Option(help="Subsampling threshold, 0 for none.")]
MinCount = Annotated[int, typer.Option(help="Occurrences before a word gets a row.")]
MaxWords = Annotated[int, typer.Option(help="Most words that have a row.")]
Epochs = Annotated[int, typer.Option(help="Times the corpus is read.")]
Nodes = Annotated[int, typer.Option(help="Nodes that train at the same time.")]
BlockTokens = Annotated[
    int | None,
    typer.Option(
        help="Tokens that a node learns between two pulls: fewer are less stale and cost more "
        "bytes a token. 25,000; with n > 2 nodes 50,000 / n."
    ),
]
Sync = Annotated[
    str,
    typer.Option(
        help="How nodes are kept in step: bsp, backup, ssp, asp, easgd, averaging, sandblaster "
        "(rounds of L-BFGS on what was read), auto, or hogwild (tables in memory that the nodes "
        "share)."
    ),
]
SyncSetting = Annotated[
    list[str] | None,
    typer.Option(
        help="A setting of --sync as NAME=VALUE, as in tau=8 or staleness=2 "
        "(docs/concepts/synchronisation.md); may be repeated."
    ),
]
Shards = Annotated[int, typer.Option(help="Processes that hold the tables; see --split.")]
Split = Annotated[
    str,
    typer.Option(
        help="rows: a shard holds the rows of its ids. columns: a part of every row; no row "
        "travels, and bytes do not depend on --dim."
    ),
]
Topology = Annotated[
    str,
    typer.Option(
        help="ps: rows go by the server. allreduce: every node holds them all, and what moved is "
        "summed. hybrid: rows of nearly every block by all-reduce, the others by the server."
    ),
]
Groups = Annotated[
    int,
    typer.Option(
        help="Deal the nodes out to so many groups; each pushes as one, added up on its host."
    ),
]
ServerGroups = Annotated[
    int,
    typer.Option(
        help="Parameter servers, each with all rows for a part of the nodes; they exchange what "
        "changed every --exchange-every seconds."
    ),
]
ExchangeEvery = Annotated[
    float, typer.Option(help="Seconds between two exchanges of --server-groups.")
]
Compression = Annotated[
    str,
    typer.Option(
        help="How what was learnt is sent: none (float32), fp16, threshold (multiples of a step), "
        "onebit (a bit a number) or topk (what moved farthest)."
    ),
]
Threshold = Annotated[float, typer.Option(help="threshold and changes: the least step.")]
CacheMb = Annotated[
    int,
    typer.Option(
        help="Megabytes of rows that each node keeps, so that only those that others changed are "
        "sent again; 0 keeps none, and 256 with --pulls changes.",
        min=0,
    ),
]
Pulls = Annotated[
    str,
    typer.Option(
        help="What nodes pull: rows, or changes of the rows that they keep, in steps as pushes of "
        "threshold have them: a tenth of the bytes."
    ),
]
RelativeThreshold = Annotated[
    float,
    typer.Option(
        help="threshold and changes: the step of a row, as a multiple of the root mean square of "
        "what there is to send of it; 0: --threshold for every row."
    ),
]
Directions = Annotated[
    int,
    typer.Option(
        help="threshold and changes: principal directions that are sent along with the rows."
    ),
]
TopShare = Annotated[float, typer.Option(help="topk: the share of the numbers that is sent.")]
Tokenizer = Annotated[str, typer.Option(help="whitespace, kiwi, mecab, script or auto.")]
Vocabulary = Annotated[
    str | None,
    typer.Option(
        help="counted: count the words first; growing: a single pass. When not given, plain "
        "text cut at blanks is counted first, as that is quick."
    ),
]
Dated = Annotated[
    bool,
    typer.Option(
        "--dated",
        help="Learn JSONL in time order, in one pass, and cut a snapshot for each window.",
    ),
]
Sources = Annotated[
    int,
    typer.Option(
        help="--dated: most sources that lines name (`source`) and that are told apart, those with "
        "the most text; the others are counted as `other`. 0: one source, whatever lines say."
    ),
]
LearningRate = Annotated[
    float, typer.Option(help="Learning rate at the start; --schedule window: its mean.")
]
Schedule = Annotated[
    str | None,
    typer.Option(
        help="linear (falls to the end), constant, or window (with --dated, unless given: in each "
        "window anew from 1.5 to 0.5 times the learning rate)."
    ),
]
Tokens = Annotated[int | None, typer.Option(help="Stop after so many tokens.")]
Seed = Annotated[int, typer.Option(help="Seed of every random choice.")]
StateDir = Annotated[
    Path | None,
    typer.Option(
        help="Folder of checkpoints: after an interruption the same command goes on from it."
    ),
]
CheckpointEvery = Annotated[
    float, typer.Option(help="Seconds between two checkpoints in --state-dir.")
]
Device = Annotated[str, typer.Option(help="Where the server's tables are: cpu, cuda or auto.")]
Trainer = Annotated[
    str,
    typer.Option(help="numba, or torch: on a GPU where there is one, else many times slower."),
]


SETTING = {
    **{name: ("model", name) for name in ("model", "dim", "negative", "sample", "seed")},
    **{name: ("model", name) for name in ("learning_rate", "schedule")},
    **{name: ("server", name) for name in ("min_count", "max_words", "device", "shards", "split")},
    "checkpoint_every": ("server", "checkpoint_every_s"),
    **{name: ("node", name) for name in ("block_tokens", "trainer")},
    "sync": ("sync", "policy"),
    **{name: ("exchange", name) for name in ("pulls", "compression", "threshold", "top_share")},
    **{name: ("exchange", name) for name in ("relative_threshold", "directions")},
    "tokenizer": ("text", "tokenizer"),
}
"""Options that are settings too: option → section and name."""


def request_of(
    options: dict[str, Any],
    given: Collection[str] = (),
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> TrainRequest:
    """The options of `yeoron train` as a checked request.

    options   value by name, defaults included
    given     the options that the command line names: they win over settings
    settings  by section what file and environment say and a training takes; they win over defaults
    """
    from embedding.training import TrainRequest

    found = {name: dict(values) for name, values in (settings or {}).items()}
    chosen = dict(options)
    for option, (section, name) in SETTING.items():
        value = found.get(section, {}).pop(name, None)
        if value is not None and option not in given:
            chosen[option] = value
    context, unit = _windows(chosen["window"] or [], chosen["dated"])
    usual = found.get("model", {}).pop("window", WINDOW)
    top = ("corpus", "out", "state_dir", "shards", "split", "nodes", "epochs", "tokens", "sources")
    more = ("block_tokens", "vocabulary", "min_count", "max_words", "device", "trainer")
    model = ("model", "dim", "negative", "sample", "seed", "learning_rate")
    exchange = ("pulls", "compression", "threshold", "relative_threshold", "directions")
    cache_mb = chosen["cache_mb"] or (CHANGED_MB if chosen["pulls"] == "changes" else 0)
    values: dict[str, Any] = {
        **{name: chosen[name] for name in (*top, *more)},
        "checkpoint_every_s": chosen["checkpoint_every"],
        "dated": unit,
        "model": {
            **(FRESH_NOISE if chosen["dated"] and chosen["split"] == "rows" else {}),
            "schedule": "window" if chosen["dated"] else "linear",
            **found.get("model", {}),
            **{name: chosen[name] for name in model},
            **({"schedule": chosen["schedule"]} if chosen["schedule"] else {}),
            "window": usual if context is None else context,
        },
        "text": {
            "mask": chosen["tokenizer"] != "whitespace",
            "new_words": 0,
            **({} if chosen["dated"] else {"phrases": 0, "boilerplate": 0.0}),
            **found.get("text", {}),
            "tokenizer": chosen["tokenizer"],
        },
        "sync": {
            **found.get("sync", {}),
            "policy": chosen["sync"],
            **sync_settings(chosen["sync_setting"], "--sync"),
        },
        "exchange": {
            **({"cache_bytes": cache_mb * 2**20} if cache_mb else {}),
            **found.get("exchange", {}),
            **({"cache_bytes": cache_mb * 2**20} if "cache_mb" in given else {}),
            **{name: chosen[name] for name in (*exchange, "top_share")},
        },
        "stream": found.get("stream", {}),
        "node": found.get("node", {}),
        "server": found.get("server", {}),
        "topology": {
            "kind": chosen["topology"],
            **{name: chosen[name] for name in ("groups", "server_groups")},
            "exchange_every_s": chosen["exchange_every"],
        },
    }
    return validate(TrainRequest, values, "train")


def _windows(given: list[str], dated: bool) -> tuple[int | None, str | None]:
    """Both readings of --window: context words, and the unit in which time is cut."""
    units = [value for value in given if value in UNITS]
    numbers = [value for value in given if value not in UNITS]
    for value in numbers:
        if not NUMBER.fullmatch(value):
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
    return int(numbers[0]) if numbers else None, units[0] if units else None
