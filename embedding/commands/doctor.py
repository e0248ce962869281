"""`yeoron doctor`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import typer
from rich.table import Table
from rich.text import Text

from embedding.commands.common import Json, console, print_json, settings_of
from embedding.kernel.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedding.platform.doctor.diagnosis import Diagnosis

_STYLES = {"ok": "green", "warn": "yellow", "wrong": "red"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor")(doctor)


def doctor(as_json: Json = False) -> None:
    """Check the machine, the settings and the stores, and say what to do about each fault.

    While a demo runs, its home is checked. No service is started. The exit code is 1 if
    something is wrong.

    Examples: `yeoron doctor` · `yeoron doctor --json`
    """
    from embedding.platform.doctor.examining import examine

    # Settings that cannot be read are themselves what it has to tell.
    with suppress(ConfigError):
        settings_of()
    found = examine()
    if as_json:
        print_json([one.to_dict() for one in found])
    else:
        console.print(_table(found))
    raise typer.Exit(1 if any(one.state == "wrong" for one in found) else 0)


def _table(found: Sequence[Diagnosis]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for one in found:
        sentences = Text(one.found, overflow="fold")
        if one.advice:
            sentences.append(f"\n→ {one.advice}", style=_STYLES[one.state])
        table.add_row(Text(one.state, style=_STYLES[one.state]), Text(one.check), sentences)
    return table
