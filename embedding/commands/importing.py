"""`yeoron import`: other people's files become a dated corpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import progress
from rich.console import Console
from rich.table import Table

from embedding.commands.common import Json, errors, print_json, print_line, settings
from embedding.kernel.errors import ConfigError, InputError

if TYPE_CHECKING:
    from embedding.importing.importing import FilePlan, ImportRequest, ImportResult
    from embedding.training import TrainRequest

_CORPUS = (".jsonl", ".jsonl.xz", ".txt", ".txt.xz")
"""Ends of names of files that are read as they are."""


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("import")(import_files)


def _mapping(given: Sequence[str]) -> dict[str, str]:
    from embedding.importing.readers import RECORD_FIELDS

    mapping: dict[str, str] = {}
    for pair in given:
        name, _, column = pair.partition("=")
        if name not in RECORD_FIELDS or not column or name in mapping:
            raise ConfigError(
                f"--map {pair}: FIELD=COLUMN is accepted, as in date=작성일, once for each of "
                f"{', '.join(RECORD_FIELDS)}."
            )
        mapping[name] = column
    return mapping


def import_files(
    files: Annotated[list[Path], typer.Argument(help="Files to import.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="New file for the corpus.")] = Path(
        "corpus.jsonl"
    ),
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Take the columns that were found, without asking.")
    ] = False,
    reader: Annotated[
        str | None, typer.Option(help="Kind of the files (default: found from each file).")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            help="FIELD=COLUMN, as in date=작성일. Fields: date, text, title, source, author.",
        ),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of text files (default: found).")
    ] = None,
    timezone: Annotated[
        str | None,
        typer.Option(
            help="Time zone of times that are written without one (default: server.timezone)."
        ),
    ] = None,
    date_format: Annotated[
        str | None, typer.Option(help="How dates are written, as in %d/%m/%Y (default: found).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a dated corpus from CSV, Excel, JSON, Parquet, WARC, mbox, RSS, GDELT and the like.

    It shows first which columns it takes. Records without a date or a text are left out, counted
    and named. After an interruption the same command goes on.

    Examples: `yeoron import posts.csv` · `yeoron import NewsResult.xlsx -o news.jsonl --yes` ·
    `yeoron import a.csv b.csv --map date=작성일 --map text=본문 --yes` ·
    `yeoron import crawl.warc.gz --timezone Asia/Seoul`
    """
    from embedding.importing.importing import plan_import

    request = request_of(
        files,
        out,
        reader=reader,
        columns=_mapping(columns or ()),
        encoding=encoding,
        timezone=timezone,
        date_format=date_format,
    )
    plans = plan_import(request)
    _confirm(plans, yes=yes)
    result = import_shown(request, plans)
    if as_json:
        print_json(result.to_dict())
    else:
        _print(request, result)


def request_of(
    files: list[Path], out: Path, *, timezone: str | None = None, **how: Any
) -> ImportRequest:
    """What the options ask for."""
    from embedding.importing.importing import ImportRequest

    chosen = settings()
    key = chosen.crawl.pseudonym_key.get_secret_value().encode()
    zone = timezone or chosen.server.timezone
    return ImportRequest(files=tuple(files), out=out, timezone=zone, key=key, **how)


def is_corpus(path: Path) -> bool:
    """Whether a training or the demo reads a file as it is: a corpus, a text, a folder."""
    return path.is_dir() or not path.suffix or path.name.lower().endswith(_CORPUS)


@contextmanager
def as_corpus(request: TrainRequest) -> Iterator[TrainRequest]:
    """The request with a corpus that nodes read; what is made of another file goes at the end."""
    if request.dated is None or is_corpus(request.corpus):
        yield request
        return
    if request.state_dir is not None:
        raise ConfigError(
            f"--state-dir with {request.corpus}: a training goes on from a corpus that stays; "
            f"`yeoron import {request.corpus}` makes one."
        )
    with TemporaryDirectory(prefix="yeoron-") as folder:
        corpus = imported(request.corpus, Path(folder) / "corpus.jsonl")
        yield request.model_copy(update={"corpus": corpus})


def imported(path: Path, out: Path) -> Path:
    """A file of another kind as a dated corpus `out`; what was found is said."""
    from embedding.importing.importing import plan_import

    request = request_of([path], out)
    plans = plan_import(request)
    show_plans(plans)
    say_left_out(import_shown(request, plans))
    return out


def show_plans(plans: list[FilePlan]) -> None:
    """Which column stands for what, on standard error."""
    table = Table("file", "read as", "date", "text", "title", "source", "author")
    for plan in plans:
        columns = (plan.mapping.get(name, "–") for name in ("date", "text", "title", "source"))
        table.add_row(plan.path.name, plan.reader, *columns, plan.mapping.get("author", "–"))
    errors.print(table)


def progress_bar(to: Console, *more: progress.ProgressColumn) -> progress.Progress:
    """A bar on a terminal, nothing elsewhere; more: columns behind it."""
    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeRemainingColumn(),
        *more,
        console=to,
        disable=not to.is_terminal,
        transient=True,
    )


def import_shown(request: ImportRequest, plans: list[FilePlan]) -> ImportResult:
    """Import with a bar on a terminal; ^C ends it with a message and exit code 130."""
    from embedding.importing.importing import run_import

    bar = progress_bar(errors)
    task = bar.add_task("Importing", total=1.0)
    try:
        with bar:
            return run_import(
                request,
                plans,
                lambda share, records: bar.update(
                    task, completed=share, description=f"{records:,} records"
                ),
            )
    except KeyboardInterrupt:
        print_line("yeoron: interrupted; the same command goes on from here.", to=errors)
        raise typer.Exit(130) from None


def say_left_out(result: ImportResult) -> None:
    """What was left out, on standard error: how many of each reason, and the first of them."""
    total = sum(result.wrong.values())
    for sentence in (*result.notes, *result.examples):
        print_line(f"yeoron: {sentence}", to=errors)
    if total:
        counts = ", ".join(f"{n:,} {reason}" for reason, n in result.wrong.most_common())
        print_line(f"yeoron: left out: {counts}.", to=errors)


def _confirm(plans: list[FilePlan], *, yes: bool) -> None:
    """Show the columns that were found; a person says whether they are right."""
    show_plans(plans)
    if yes or not any(plan.guessed for plan in plans):
        return
    if not errors.is_terminal:
        raise ConfigError(
            "nobody is there to say whether these columns are right; --yes takes them, --map "
            "FIELD=COLUMN names others."
        )
    if not typer.confirm("Are these the columns?", default=True, err=True):
        raise InputError("name the columns, as in --map date=작성일 --map text=본문.")


def _print(request: ImportRequest, result: ImportResult) -> None:
    say_left_out(result)
    if result.resumed:
        print_line(f"Went on after {result.resumed:,} records of an earlier call.")
    order = ", sorted by date" if result.sorted else ""
    print_line(
        f"{result.records:,} record{'' if result.records == 1 else 's'} from {result.first} to "
        f"{result.last}{order}: {request.out}"
    )
    print_line(
        f"Next: yeoron train {request.out} --dated --window month --tokenizer kiwi "
        "--out var/snapshots"
    )
