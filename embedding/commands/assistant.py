"""`yeoron mcp`: the page's answers for an assistant, as tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embedding.commands.common import log_to_stderr, settings_of
from embedding.commands.store_options import SnapshotStoreOption


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("mcp")(mcp)


def mcp(
    snapshots: SnapshotStoreOption = None,
    evidence: Annotated[
        Path | None, typer.Option(help="Folder of addresses of documents; with --snapshots.")
    ] = None,
    page: Annotated[
        str | None, typer.Option(help="Address of the page, for links in answers.")
    ] = None,
) -> None:
    """Answer an assistant over standard input (Model Context Protocol), read only.

    Its tools are stories, moved, word, compare and sources. Register this command with the
    assistant: it starts it and ends it.

    Examples: `yeoron mcp` · `yeoron mcp --snapshots store`
    """
    from embedding.web.mcp_server import WordTools

    log_to_stderr("mcp")
    chosen = settings_of(snapshots)
    config = chosen.page
    if snapshots is not None:
        # Reports and addresses of the settings belong to the snapshots of the settings.
        places = {"snapshots": str(snapshots), "reports": None, "evidence": evidence}
        config = config.model_copy(update=places)
    WordTools(config, page or chosen.trends_url).server().run("stdio")
