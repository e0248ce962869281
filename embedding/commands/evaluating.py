"""`yeoron evaluate` and `yeoron snapshot evaluate`: figures of a snapshot, and its floors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedding.commands.common import Json, console, errors, print_json, print_line, settings
from embedding.commands.store_options import ID_HELP, SnapshotStoreOption, open_snapshot

if TYPE_CHECKING:
    from embedding.evaluation.evaluate import SnapshotEvaluation
    from embedding.evaluation.gate import GateResult

GoldOption = Annotated[
    list[Path] | None, typer.Option("--gold", help="Word pairs or analogies; may be repeated.")
]
GATE_FAILED = 1
GOLD_FAILED = 2
"""A gold file that was named gave no figure: other columns, or words that nobody read."""


def register(app: typer.Typer) -> None:
    """Add the command; the group `snapshot` has it, too."""
    app.command("evaluate")(evaluate)


def evaluate(
    id: Annotated[str, typer.Argument(help=ID_HELP)] = "latest",
    gold: GoldOption = None,
    floors: Annotated[
        Path | None, typer.Option("--floors", help="TOML file of floors; exit code 1 below one.")
    ] = None,
    pin: Annotated[
        Path | None,
        typer.Option("--pin", help="Write the figures of this snapshot as floors into this file."),
    ] = None,
    margin: Annotated[
        float,
        typer.Option(
            "--margin",
            min=0.0,
            max=1.0,
            help="How far below the measured figures --pin sets the floors.",
        ),
    ] = 0.05,
    snapshots: SnapshotStoreOption = None,
    as_json: Json = False,
) -> None:
    """Judge a snapshot: loss by source, PIP loss, and gold sets of similarity and analogy.

    The figures are compared with floors where they are given.

    Examples:

    `yeoron evaluate latest --gold ws353_ko.tsv`

    `yeoron evaluate store --gold ws353_ko.tsv --pin floors.toml`

    `yeoron evaluate store --gold ws353_ko.tsv --floors floors.toml`
    """
    from embedding.evaluation import gate
    from embedding.evaluation.evaluate import evaluate_snapshot

    # First, as it says which platform's settings these are.
    snapshot = open_snapshot(id, snapshots)
    wanted = settings().evaluation
    files = list(gold or wanted.gold)
    path = floors or wanted.floors
    bounds = () if path is None or pin is not None else gate.read_floors(path)
    found = evaluate_snapshot(snapshot, files, wanted.device)
    corpus = gate.corpus_digest(snapshot.manifest)
    lacks = snapshot.ref.lacks
    verdict = gate.judge(
        found.metrics,
        bounds,
        corpus=corpus,
        gold=files,
        lacks=() if snapshot.manifest.judgeable else lacks,
    )
    if pin is not None:
        pinned = gate.pin(found.metrics, corpus=corpus, gold=files, margin=margin)
        pin.write_text(gate.written(pinned), encoding="utf-8")
    if as_json:
        outcome = {"passed": verdict.passed, "failed": verdict.reasons, "aside": verdict.aside}
        figures = {"id": snapshot.id, "corpus": corpus, "metrics": found.metrics}
        print_json({**figures, "skipped": found.skipped, "gate": outcome if bounds else None})
    else:
        _print(snapshot.id, found, verdict if bounds else None)
        if pin is not None:
            print_line(f"{len(pinned)} floors written to {pin}.")
    for sentence in filter(None, (verdict.unread, *lacks)):
        print_line(sentence, to=errors)
    if verdict.failed:
        raise typer.Exit(GATE_FAILED)
    if gold and found.skipped:
        raise typer.Exit(GOLD_FAILED)


def _print(name: str, found: SnapshotEvaluation, verdict: GateResult | None) -> None:
    from rich.table import Table

    table = Table(name, "")
    table.columns[1].justify = "right"
    for metric, value in sorted(found.metrics.items()):
        table.add_row(metric, f"{value:,.0f}" if value == int(value) else f"{value:.4f}")
    console.print(table)
    for sentence in found.skipped:
        print_line(f"Skipped: {sentence}", to=errors)
    if verdict is None:
        return
    for sentence in verdict.aside:
        print_line(f"Left aside: {sentence}.")
    for sentence in verdict.failed:
        print_line(f"Gate: {sentence}.", "red")
    if verdict.passed:
        console.print("Gate: passed.", style="green")
