"""`yeoron live`: a running parameter server's tables and policy, as they are now."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from embedding.commands.common import (
    SYNC_SETTING,
    Json,
    print_json,
    print_line,
    print_nearest,
    settings,
    settings_of,
    sync_settings,
)

ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server", help="grpc://HOST:PORT or grpc+tls://HOST:PORT (default: as the settings say)."
    ),
]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    group = typer.Typer(
        help="Ask a running parameter server about its tables, or change its policy.",
        no_args_is_help=True,
    )
    app.add_typer(group, name="live")
    for command in (neighbours, evaluate, policy):
        group.command()(command)


def neighbours(
    word: Annotated[str, typer.Argument(help="A word with a vector.")],
    n: Annotated[int, typer.Option("-n", "--n", help="How many words.", min=1, max=1000)] = 10,
    server: ServerOption = None,
    as_json: Json = False,
) -> None:
    """Show the nearest words of a word, by the vectors as they are now.

    Examples: `yeoron live neighbours 마스크` · `yeoron live neighbours 마스크 -n 20 --json`
    """
    print_nearest(_ask(server, "neighbours", {"word": word, "n": n}), as_json)


def evaluate(
    gold: Annotated[
        Path | None, typer.Option(help="Word pairs or analogies (default: those of the server).")
    ] = None,
    server: ServerOption = None,
    as_json: Json = False,
) -> None:
    """Judge the vectors as they are now, on the device of the server.

    Examples: `yeoron live evaluate` · `yeoron live evaluate --gold wordsim353.tsv --json`
    """
    from embedding.evaluation.gold import read_gold

    figures = _ask(server, "evaluate", {} if gold is None else {"gold": vars(read_gold(gold))})
    if as_json:
        print_json(figures)
        return
    for name, value in figures.items():
        print_line(f"{name:<28} {value:.4f}")


def policy(
    name: Annotated[
        str | None,
        typer.Argument(
            help="bsp, backup, ssp, asp, easgd, averaging, sandblaster or auto; the one that rules "
            "if not given."
        ),
    ] = None,
    sync_setting: Annotated[
        list[str] | None, typer.Option(help=f"{SYNC_SETTING} Others stay as they are.")
    ] = None,
    server: ServerOption = None,
    as_json: Json = False,
) -> None:
    """Show the policy, or change it while the nodes train.

    A change holds until the server ends. A server that starts again takes the policy of
    `--policy` or of its settings.

    Examples: `yeoron live policy` · `yeoron live policy asp` ·
    `yeoron live policy averaging --sync-setting tau=8`
    """
    changes = sync_settings(sync_setting, "the argument")
    if name is not None:
        changes["policy"] = name
    if changes:
        shown = _ask(server, "configure", changes)
    else:
        sync = _ask(server, "status", {})["sync"]
        shown = {**sync["settings"], "running": sync["running"]}
    if as_json:
        print_json(shown)
        return
    from embedding.server.config import SyncConfig

    added = [kind for kind in SyncConfig.ADDED or () if kind.ONLY]
    others = [kind.model_fields for kind in added if shown.get("policy") not in kind.ONLY]
    own = [key for key in shown if not any(key in fields for fields in others)]
    for key in own:
        print_line(f"{key:<22} {shown[key]}")
    if left_out := len(shown) - len(own):
        print_line(f"{left_out} settings of other policies: --json")


def _ask(server: str | None, name: str, body: dict[str, Any]) -> Any:
    from embedding.exchange.peer import ask

    chosen = settings() if server else settings_of()
    return ask(server or chosen.server_location, chosen.line(server, operator=True), name, body)
