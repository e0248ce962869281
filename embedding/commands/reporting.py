"""`yeoron report` and `mcp`: what the page answers as a file to hand on, and to an assistant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embedding.commands.common import console, log_to_stderr, settings_of, write_whole
from embedding.commands.store_options import EvidenceOption, SnapshotStoreOption, page_of


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("report")(report)
    app.command("mcp")(mcp)


def report(
    window: Annotated[
        str, typer.Argument(help="A window (2020-01), the id of a snapshot, or latest.")
    ] = "latest",
    format: Annotated[
        str | None,
        typer.Option(
            "--format", help="html, pdf or pptx (default: by the ending of the file, else html)."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="File to write (default: a file in this folder, named by the window).",
        ),
    ] = None,
    lang: Annotated[str, typer.Option("--lang", help="Language of the report: ko or en.")] = "ko",
    snapshots: SnapshotStoreOption = None,
    evidence: EvidenceOption = None,
    page: Annotated[
        str | None, typer.Option(help="Address of the page, for links in the report.")
    ] = None,
) -> None:
    """Write what happened in a window as one file: stories, charts, how sure each is, addresses.

    Examples: `yeoron report` · `yeoron report 2020-03 --format pdf -o march.pdf` ·
    `yeoron report 2020-03 -o march.pptx --lang en`
    """
    from embedding.web.handout.making import HandoutMaker
    from embedding.web.handout.writing import named_format

    chosen = settings_of(snapshots)
    format = format or (out.suffix[1:] if out and out.suffix else "html")
    named_format(format)
    config = page_of(chosen, snapshots, evidence)
    maker = HandoutMaker(config, page or chosen.trends_url, lang)
    with console.status("Writing the report …"):
        file = maker.attachment(maker.report(window), format)
    path = out or Path(file.name)
    write_whole(path, lambda target: target.write(file.content))


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
