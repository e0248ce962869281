"""`yeoron snapshot …` and `yeoron evaluate`: what was learnt, its figures and its floors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedding.commands.common import (
    ID_HELP,
    Id,
    Json,
    SnapshotStoreOption,
    console,
    errors,
    open_snapshot,
    open_store,
    print_json,
    print_line,
    print_nearest,
    settings,
    settings_of,
)
from embedding.commands.live import ServerOption
from embedding.kernel.errors import RefusedError, UnavailableError

if TYPE_CHECKING:
    from embedding.evaluation.evaluate import SnapshotEvaluation
    from embedding.evaluation.gate import GateResult
    from embedding.exchange.config import ExchangeConfig
    from embedding.settings import Settings
    from embedding.snapshots.snapshot import Snapshot


GoldOption = Annotated[
    list[Path] | None, typer.Option("--gold", help="Word pairs or analogies; may be repeated.")
]
GATE_FAILED = 1
GOLD_FAILED = 2
"""A gold file that was named gave no figure: other columns, or words that nobody read."""


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
    evaluation = evaluate_snapshot(snapshot, files, wanted.device)
    corpus = gate.corpus_digest(snapshot.manifest)
    lacks = snapshot.ref.lacks
    verdict = gate.judge(
        evaluation.metrics,
        bounds,
        corpus=corpus,
        gold=files,
        lacks=() if snapshot.manifest.judgeable else lacks,
    )
    if pin is not None:
        pinned = gate.pin(evaluation.metrics, corpus=corpus, gold=files, margin=margin)
        pin.write_text(gate.written(pinned), encoding="utf-8")
    if as_json:
        outcome = {"passed": verdict.passed, "failed": verdict.reasons, "aside": verdict.aside}
        figures = {"id": snapshot.id, "corpus": corpus, "metrics": evaluation.metrics}
        print_json({**figures, "skipped": evaluation.skipped, "gate": outcome if bounds else None})
    else:
        _print(snapshot.id, evaluation, verdict if bounds else None)
        if pin is not None:
            print_line(f"{len(pinned)} floors written to {pin}.")
    for sentence in filter(None, (verdict.unread, *lacks)):
        print_line(sentence, to=errors)
    if verdict.failed:
        raise typer.Exit(GATE_FAILED)
    if gold and evaluation.skipped:
        raise typer.Exit(GOLD_FAILED)


def _print(name: str, evaluation: SnapshotEvaluation, verdict: GateResult | None) -> None:
    from rich.table import Table

    table = Table(name, "")
    table.columns[1].justify = "right"
    for metric, value in sorted(evaluation.metrics.items()):
        table.add_row(metric, f"{value:,.0f}" if value == int(value) else f"{value:.4f}")
    console.print(table)
    for sentence in evaluation.skipped:
        print_line(f"Skipped: {sentence}", to=errors)
    if verdict is None:
        return
    for sentence in verdict.aside:
        print_line(f"Left aside: {sentence}.")
    for sentence in verdict.failed:
        print_line(f"Gate: {sentence}.", "red")
    if verdict.passed:
        console.print("Gate: passed.", style="green")


def register(app: typer.Typer) -> None:
    """Add these commands."""
    group = typer.Typer(
        help="Snapshots: what was learnt by the end of each window.", no_args_is_help=True
    )
    group.command("list")(list_snapshots)
    for command in (show, verify, amend, withdraw, reinstate, neighbours, evaluate):
        group.command()(command)
    app.add_typer(group, name="snapshot")
    app.command("evaluate")(evaluate)


def list_snapshots(snapshots: SnapshotStoreOption = None, as_json: Json = False) -> None:
    """List snapshots by window, with what each lacks; broken ones are named with what is wrong.

    Example: `yeoron snapshot list --snapshots store`
    """
    from embedding.ask.answers import Answers
    from embedding.ask.config import AskConfig
    from embedding.ask.questions import SnapshotsQuestion

    store = open_store(snapshots)
    listing = SnapshotsQuestion().answer(Answers(AskConfig(snapshots=store.uri)))
    refs, broken, gone = listing.refs, listing.broken, store.withdrawn()
    if as_json:
        summary = {
            name: {"at": withdrawal.at.isoformat(), "reason": withdrawal.reason}
            for name, withdrawal in gone.items()
        }
        listed = [ref.to_dict() for ref in refs]
        print_json({"snapshots": listed, "broken": broken, "withdrawn": summary})
        return
    from rich.table import Table

    from embedding.kernel.records import Window

    if not (refs or broken or gone):
        print_line(
            f"{store.uri} holds no snapshot yet; `yeoron train … --out FOLDER` or a running "
            "platform writes some."
        )
        return
    table = Table("snapshot", "window", "words", "lacks", "parent")
    for ref in refs:
        window = Window(ref.window_start, ref.window_end)
        missing = store.manifest(ref.id).lacking if ref.lacks else ()
        lacks = ", ".join(lack.part for lack in missing) or "–"
        table.add_row(ref.id, window.label, f"{ref.words:,}", lacks, ref.parent or "–")
    console.print(table)
    for sentence in (sentence for ref in refs for sentence in ref.lacks):
        print_line(sentence, "yellow")
    for name, why in broken.items():
        print_line(f"broken: {name}: {why}", "red")
    for name, withdrawal in gone.items():
        print_line(f"withdrawn: {name}, {withdrawal.at:%Y-%m-%d}: {withdrawal.reason}", "dim")


def show(id: Id = "latest", snapshots: SnapshotStoreOption = None) -> None:
    """Print the manifest of a snapshot as JSON: window, sources, digests, quality.

    Example: `yeoron snapshot show latest`
    """
    snapshot = open_snapshot(id, snapshots)
    print_json(snapshot.manifest.model_dump(mode="json"))
    for sentence in snapshot.ref.lacks:
        print_line(sentence, "yellow", to=errors)


def verify(id: Id = "latest", snapshots: SnapshotStoreOption = None) -> None:
    """Check every file of a snapshot against its manifest.

    Example: `yeoron snapshot verify 2020-02-a1b2c3d4`
    """
    snapshot = open_snapshot(id, snapshots)
    snapshot.verify()
    console.print(f"{snapshot.id}: every file matches its manifest.")


def amend(
    id: Id = "latest", server: ServerOption = None, snapshots: SnapshotStoreOption = None
) -> None:
    """Have the server read again what a snapshot lacks, and publish its window once more.

    Example: `yeoron snapshot amend 2021-04`
    """
    with console.status("The server reads the window again …"):
        outcome = amended(open_snapshot(id, snapshots), settings_of(snapshots), server)
    for sentence in outcome:
        print_line(sentence)


def withdraw(
    id: Annotated[str, typer.Argument(help="Snapshot id.")],
    reason: Annotated[str, typer.Option("--reason", help="Why, for whoever asks later.")],
    snapshots: SnapshotStoreOption = None,
) -> None:
    """Take one snapshot out of the series. Its files stay. To learn it again: `yeoron rollback`.

    Example: `yeoron snapshot withdraw 2020-02-a1b2c3d4 --reason "a source was spammed"`
    """
    open_store(snapshots).withdraw([id], reason)
    print_line(f"{id}: withdrawn.")


def reinstate(
    id: Annotated[str, typer.Argument(help="Snapshot id.")], snapshots: SnapshotStoreOption = None
) -> None:
    """Put a withdrawn snapshot back into the series.

    Example: `yeoron snapshot reinstate 2020-02-a1b2c3d4`
    """
    open_store(snapshots).reinstate([id])
    print_line(f"{id}: in the series again.")


def neighbours(
    word: Annotated[str, typer.Argument(help="A word of the snapshot.")],
    id: Annotated[str, typer.Option("--id", help=ID_HELP)] = "latest",
    n: Annotated[int, typer.Option("-n", help="How many.")] = 10,
    snapshots: SnapshotStoreOption = None,
    as_json: Json = False,
) -> None:
    """Show the nearest words of a word. Rare words count as less near, as their vectors are unsure.

    Example: `yeoron snapshot neighbours 마스크 -n 20`
    """
    from embedding.ask.questions import NearestQuestion

    snapshot = open_snapshot(id, snapshots)
    nearest = NearestQuestion(word, n=n).of(snapshot)
    if snapshot.unreadable:
        print_line(f"snapshot {snapshot.id}: {snapshot.unreadable}", to=errors)
    print_nearest([{"word": other, "nearness": near} for other, near in nearest], as_json)


CALL = "amend"
_LONGEST_S = 600.0
"""Nodes read a window again meanwhile, as they do for a cut."""


def amended(snapshot: Snapshot, chosen: Settings, server: str | None = None) -> list[str]:
    """Ask for what a snapshot lacks of its window; what was published, and what is missing still.

    server  where it is; None: as the settings say

    Raises UnavailableError where no server answers, and RefusedError where it cannot amend the
    window, or no window at all.
    """
    from embedding.exchange.peer import ask
    from embedding.snapshots.format import Missing, sentence

    label = snapshot.manifest.window.label
    location, line = server or chosen.server_location, chosen.line(server, operator=True)
    if not snapshot.ref.lacks and not _late(location, line, label):
        return [f"{snapshot.id}: it lacks nothing of {label}."]
    start = int(snapshot.ref.window_start.timestamp())
    try:
        published = ask(location, line, CALL, {"window": start}, _LONGEST_S)
    except UnavailableError as error:
        raise UnavailableError(
            f"{label} is not amended: {error} Nodes of a running platform read a window again; "
            "`yeoron up` starts it."
        ) from error
    except RefusedError as error:
        if f"action '{CALL}'" in str(error):
            raise RefusedError(
                f"{label} is not amended: the server at {location} is of an older version, which "
                "cannot do it; start the platform again with this one (`yeoron down`, `yeoron up`)."
            ) from error
        raise RefusedError(f"{label} is not amended: {error}") from error
    left = [sentence(Missing.model_validate(part), label) for part in published["missing"]]
    done = f"{published['id']}: revision {published['revision']} of {label}."
    return [done, *(left or ["It lacks nothing of its window any more."])]


def _late(location: str, line: ExchangeConfig, label: str) -> int:
    """Documents that came after the cut, which the server alone knows; 0 where none answers."""
    from embedding.exchange.peer import ask

    try:
        windows = ask(location, line, "status", {})["windows"]
    except (UnavailableError, RefusedError):
        return 0
    return int(windows.get(label, {}).get("late_documents", 0))
