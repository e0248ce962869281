"""`yeoron rotate`: new tokens and certificates, while the platform runs."""

from __future__ import annotations

import typer

from embedding.commands.common import Json, print_json, print_line, settings_of, silent


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("rotate")(rotate)


def rotate(as_json: Json = False) -> None:
    """Replace the tokens and certificates of the platform while it runs.

    Nodes, server and Dask start again with the new ones. Pages, Airflow and MLflow stay up.
    Nodes pause for some seconds, and nothing is lost.

    Example: `yeoron rotate`
    """
    from embedding.platform.rotation import rotate as replace

    begun = replace(settings_of(), silent if as_json else print_line)
    if as_json:
        print_json({"begun_again": list(begun)})
    elif not begun:
        print_line("No platform runs; services read them when they start.")
