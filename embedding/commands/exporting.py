"""`yeoron export`: findings, scores, vectors and neighbours as files for other programs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from embedding.commands.common import console, errors, print_line, settings, settings_of
from embedding.commands.store_options import SnapshotStoreOption

if TYPE_CHECKING:
    from embedding.snapshots.snapshot import Snapshot
    from embedding.snapshots.store import SnapshotStore
    from embedding.trends.rows import TrendReport

_TABLES = ("parquet", "csv", "jsonld")
_VECTORS = ("word2vec", "word2vec-text", "keyedvectors", "parquet")
_GRAPHS = ("gexf", "csv", "parquet")
EXPORTED = {"findings": _TABLES, "scores": _TABLES, "vectors": _VECTORS, "neighbours": _GRAPHS}
"""What can be exported, and the formats of each."""
_ENDINGS = {"bin": "word2vec", "txt": "word2vec-text", "kv": "keyedvectors"}
_ADDRESSES = 3
_WriteFile = Callable[[IO[bytes]], None]


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("export")(export)


def export(
    what: Annotated[str, typer.Argument(help="findings, scores, vectors or neighbours.")],
    window: Annotated[
        str,
        typer.Argument(
            help="A window (2020-01), the id of a snapshot, latest, or the folder of a store."
        ),
    ] = "latest",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write.")] = None,
    format: Annotated[  # noqa: A002 - the option's name
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
    from embedding.kernel.errors import ConfigError

    if what not in EXPORTED:
        raise ConfigError(f"export {what[:40]!r}: accepted are {', '.join(EXPORTED)}.")
    chosen = _format(what, format, out)
    path = out or Path(f"{what}.{chosen}")
    if what == "vectors":
        _vectors(_snapshot(window, snapshots), chosen, path)
    elif what == "neighbours":
        _write(path, _graph(_snapshot(window, snapshots), chosen, words, nearest))
    else:
        with console.status("Comparing windows …"):
            report, evidence = _report(window, snapshots)
        _write(path, _table(report, what, chosen, evidence))


def _format(what: str, asked: str | None, out: Path | None) -> str:
    from embedding.kernel.errors import ConfigError

    ending = out.suffix[1:].lower() if out is not None else ""
    found = asked or _ENDINGS.get(ending, ending)
    if found not in EXPORTED[what]:
        named = f"format {found[:40]!r}" if found else "no format is given"
        accepted = ", ".join(EXPORTED[what])
        raise ConfigError(f"export {what}: {named}; accepted are {accepted}.")
    return found


def _vectors(snapshot: Snapshot, format: str, path: Path) -> None:  # noqa: A002
    from embedding.snapshots.export import export as write_vectors

    exported = write_vectors(snapshot, format, path)
    if exported.left_out:
        print_line(
            f"{exported.left_out:,} words with white space in them, such as "
            f"{exported.example!r}, were left out: {format} cannot tell them apart; "
            "--format keyedvectors keeps them.",
            to=errors,
        )
    print_line(f"{exported.words:,} vectors written to {path}.")


def _graph(snapshot: Snapshot, format: str, words: int, nearest: int) -> _WriteFile:  # noqa: A002
    from embedding.trends.export.neighbours import edges_table, neighbour_graph, write_gexf
    from embedding.web.plain import function_words

    graph = neighbour_graph(snapshot, words, nearest, function_words())
    return partial(write_gexf, graph) if format == "gexf" else _writer(edges_table(graph), format)


def _table(
    report: TrendReport,
    what: str,
    format: str,  # noqa: A002
    evidence: Path | None,
) -> _WriteFile:
    from embedding.trends.export.jsonld import write_jsonld
    from embedding.trends.export.tables import findings_table, scores_table

    addresses = partial(_addresses, report, evidence)
    table = findings_table(report, addresses) if what == "findings" else scores_table(report)
    if format == "jsonld":
        return partial(write_jsonld, table, report, what)
    return _writer(table, format)


def _writer(table: Any, format: str) -> _WriteFile:  # noqa: A002
    from embedding.trends.export.tables import write_csv, write_parquet

    return partial(write_csv if format == "csv" else write_parquet, table)


def _addresses(report: TrendReport, evidence: Path | None, word: str) -> list[str]:
    """Addresses of documents of the window that hold a word; none where none are kept."""
    from datetime import datetime

    from embedding.snapshots.evidence import EvidenceStore

    if evidence is None:
        return []
    window = report.snapshot
    start, end = datetime.fromisoformat(window.start), datetime.fromisoformat(window.end)
    found = EvidenceStore(evidence).find(word, start, end, _ADDRESSES)
    return [one.url for one in found if one.url.startswith(("http://", "https://"))]


def _snapshot(window: str, snapshots: Path | None) -> Snapshot:
    from embedding.commands.store_options import open_snapshot

    return open_snapshot(window, snapshots)


def _report(window: str, snapshots: Path | None) -> tuple[TrendReport, Path | None]:
    """The report of a window with the figures of its words, and where its addresses are."""
    from embedding.commands.trend_reports import report_of

    store, id, own = _store(window, snapshots)  # noqa: A001
    chosen = settings_of() if own else settings()
    # Addresses of the settings belong to the snapshots of the settings.
    evidence = chosen.paths.evidence if own else None
    return report_of(store, id, chosen, scores=True), evidence


def _store(window: str, snapshots: Path | None) -> tuple[SnapshotStore, str, bool]:
    """The store, the snapshot's name in it, and whether it is the store of the settings."""
    from embedding.commands.store_options import open_store

    if snapshots is None and window != "latest" and Path(window).is_dir():
        return open_store(Path(window)), "latest", False
    return open_store(snapshots), window, snapshots is None


def _write(path: Path, write: _WriteFile) -> None:
    from embedding.kernel.durable import replaced
    from embedding.kernel.errors import InputError

    try:
        with replaced(path) as file:
            write(file)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}.") from error
    print_line(str(path))
