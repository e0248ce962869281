"""`yeoron mcp`: the page's answers for an assistant, as tools."""

from __future__ import annotations

from typing import Annotated

import typer

from embedding.commands.common import log_to_stderr, settings_of
from embedding.commands.store_options import EvidenceOption, SnapshotStoreOption, page_of


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("mcp")(mcp)


def mcp(
    snapshots: SnapshotStoreOption = None,
    evidence: EvidenceOption = None,
    page: Annotated[
        str | None, typer.Option(help="Address of the page, for links in answers.")
    ] = None,
) -> None:
    """Answer an assistant by the Model Context Protocol over standard input. It only reads.

    Its tools are stories, moved, word, compare and sources. Register this command with the
    assistant, which starts and ends it.

    Examples: `yeoron mcp` · `yeoron mcp --snapshots store`
    """
    from embedding.web.mcp_server import WordTools

    log_to_stderr("mcp")
    chosen = settings_of(snapshots)
    config = page_of(chosen, snapshots, evidence)
    WordTools(config, page or chosen.trends_url).server().run("stdio")
