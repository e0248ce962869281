"""`yeoron forget` and `yeoron retain`: what is kept goes on request, or when it is old."""

from __future__ import annotations

from typing import Annotated

import typer

from embedding.commands.common import Json, print_json, print_line, settings_of
from embedding.kernel.errors import ConfigError

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("forget")(forget)
    app.command("retain")(retain)


def forget(
    source: Annotated[
        str | None, typer.Option("--source", help="Name of a source; it is blocked as well.")
    ] = None,
    address: Annotated[
        str | None, typer.Option("--address", help="Address of a page, with its comments.")
    ] = None,
    word: Annotated[
        str | None, typer.Option("--word", help="A word, such as a name; it gets no row again.")
    ] = None,
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Erase a source, an address or a word from every store. The platform must be down.

    Examples:

    `yeoron forget --word 홍길동 --dry-run`

    `yeoron forget --address https://board.example/p/1`

    `yeoron forget --source board --yes`
    """
    from embedding.forgetting import ErasureRequest
    from embedding.forgetting import forget as erase
    from embedding.platform.operate import running_supervisor

    request, chosen = ErasureRequest(source, address, word), settings_of()
    if not dry_run and running_supervisor(chosen) is not None:
        raise ConfigError("forget: the platform is running; stop it first with `yeoron down`.")
    if not dry_run and not yes:
        for sentence in erase(chosen, request, dry=True) if not as_json else ():
            print_line(sentence)
        typer.confirm("This cannot be undone. Go on?", abort=True)
    _show(erase(chosen, request, dry=dry_run), as_json=as_json)


def retain(dry_run: DryRun = False, as_json: Json = False) -> None:
    """Remove what is older than the settings under `retention` say. Run it once a day.

    Example: `yeoron retain --dry-run`
    """
    from embedding.forgetting import retain as expire

    _show(expire(settings_of(), dry=dry_run), as_json=as_json)


def _show(sentences: list[str], *, as_json: bool) -> None:
    if as_json:
        print_json(sentences)
        return
    for sentence in sentences:
        print_line(sentence)
