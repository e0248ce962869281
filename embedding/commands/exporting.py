"""`yeoron export`, `report`, `mcp`: answers as files for programs and people, to an assistant."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedding.commands.common import (
    EvidenceOption,
    SnapshotStoreOption,
    WriteFile,
    console,
    errors,
    log_to_stderr,
    page_of,
    print_line,
    settings_of,
    write_whole,
)

if TYPE_CHECKING:
    from embedding.snapshots.snapshot import Snapshot


_TABLES = ("parquet", "csv", "jsonld")
_VECTORS = ("word2vec", "word2vec-text", "keyedvectors", "parquet")
_GRAPHS = ("gexf", "csv", "parquet")
EXPORTED = {"findings": _TABLES, "scores": _TABLES, "vectors": _VECTORS, "neighbours": _GRAPHS}
"""What can be exported, and the formats of each."""
_ENDINGS = {"bin": "word2vec", "txt": "word2vec-text", "kv": "keyedvectors"}
_ADDRESSES = 3


def register(app: typer.Typer) -> None:
    """Add this command."""
    for command in (export, report, mcp):
        app.command()(command)


def export(
    what: Annotated[str, typer.Argument(help="findings, scores, vectors or neighbours.")],
    window: Annotated[
        str,
        typer.Argument(
            help="A window (2020-01), the id of a snapshot, latest, or the folder of a store."
        ),
    ] = "latest",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write.")] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format", help="One of the formats above (default: by the ending of the file)."
        ),
    ] = None,
    words: Annotated[
        int, typer.Option(min=2, help="For neighbours: how many of the most frequent words.")
    ] = 1000,
    nearest: Annotated[
        int, typer.Option("-n", min=1, help="For neighbours: nearest words of each word.")
    ] = 10,
    snapshots: SnapshotStoreOption = None,
) -> None:
    """Write a file for other programs, whole or not at all.

    findings (words that changed clearly) and scores (every word that was compared): parquet, csv,
    jsonld. vectors: word2vec, word2vec-text, keyedvectors (both for gensim), parquet. neighbours
    (which words are used alike): gexf (for Gephi), csv, parquet.

    Examples: `yeoron export findings -o findings.csv` ·
    `yeoron export scores 2020-03 -o scores.parquet` ·
    `yeoron export vectors store --format word2vec -o vectors.bin` ·
    `yeoron export neighbours 2020-03 -o march.gexf`
    """
    from embedding.commands.common import open_snapshot
    from embedding.kernel.errors import ConfigError

    if what not in EXPORTED:
        raise ConfigError(f"export {what[:40]!r}: accepted are {', '.join(EXPORTED)}.")
    chosen = _format(what, format, out)
    path = out or Path(f"{what}.{chosen}")
    if what == "vectors":
        _vectors(open_snapshot(window, snapshots), chosen, path)
    elif what == "neighbours":
        write_whole(path, _graph(open_snapshot(window, snapshots), chosen, words, nearest))
    else:
        write_whole(path, _table(what, chosen, window, snapshots))


def _format(what: str, asked: str | None, out: Path | None) -> str:
    from embedding.kernel.errors import ConfigError

    ending = out.suffix[1:].lower() if out is not None else ""
    format = asked or _ENDINGS.get(ending, ending)
    if format not in EXPORTED[what]:
        named = f"format {format[:40]!r}" if format else "no format is given"
        accepted = ", ".join(EXPORTED[what])
        raise ConfigError(f"export {what}: {named}; accepted are {accepted}.")
    return format


def _vectors(snapshot: Snapshot, format: str, path: Path) -> None:
    from embedding.show.export import export as write_vectors

    written, left_out = write_vectors(snapshot, format, path)
    if left_out:
        print_line(
            f"{len(left_out):,} words with white space in them, such as {left_out[0]!r}, were left "
            f"out: {format} cannot tell them apart; --format keyedvectors keeps them.",
            to=errors,
        )
    print_line(f"{written:,} vectors written to {path}.")


def _graph(snapshot: Snapshot, format: str, words: int, nearest: int) -> WriteFile:
    from embedding.show.export import WRITERS, edges_table, neighbour_graph, write_gexf
    from embedding.web.plain import function_words

    graph = neighbour_graph(snapshot, words, nearest, function_words())
    if format == "gexf":
        return partial(write_gexf, graph)
    return partial(WRITERS[format], edges_table(graph))


def _table(what: str, format: str, window: str, snapshots: Path | None) -> WriteFile:
    """window: of the store, or the folder of a store."""
    from embedding.commands.trends import AskedWindow, report_of
    from embedding.show.export import WRITERS, findings_table, write_jsonld

    if snapshots is None and window != "latest" and Path(window).is_dir():
        window, snapshots = "latest", Path(window)
    asked = AskedWindow(snapshots, window)
    report = report_of(asked)
    shown = report.snapshot

    def addresses(word: str) -> list[str]:
        documents = asked.answers.evidence(word, shown.start, shown.end, _ADDRESSES)
        return [document.url for document in documents]

    if what == "findings":
        table = findings_table(report, addresses)
    else:
        table = asked.answers.scores(report, None).table
    if format == "jsonld":
        return partial(write_jsonld, table, report, what)
    return partial(WRITERS[format], table)


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
    from embedding.web.handout.writing import HandoutMaker, named_format

    chosen = settings_of(snapshots)
    format = format or (out.suffix[1:] if out and out.suffix else "html")
    named_format(format)
    config = page_of(chosen, snapshots, evidence)
    maker = HandoutMaker(config, page or chosen.trends_url, lang)
    with console.status("Writing the report …"):
        file = maker.attachment(window, format)
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
