"""`yeoron trends stories|moved|score|born|risen|word|axis|contrast|bias|report`: what changed.

Reports are the finished ones, else computed; that is said where it lasts.
"""

from __future__ import annotations

import json
import shlex
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from embedding.commands.common import (
    Json,
    SnapshotStoreOption,
    console,
    errors,
    page_of,
    print_json,
    print_line,
    settings_of,
)
from embedding.commands.option_groups import grouped
from embedding.kernel.errors import ConfigError, InputError

if TYPE_CHECKING:
    from embedding.ask.answers import Answers
    from embedding.ask.config import AxisConfig
    from embedding.settings import Settings
    from embedding.trends.rows import TrendReport
    from embedding.trends.stories import StoryDocuments

ABOUT = """What changed between windows.

Examples:

`yeoron trends moved`

`yeoron trends stories --snapshots store`

`yeoron trends word 코로나 --snapshots store`

`yeoron trends born --snapshots store --csv`
"""
ReportIdArgument = Annotated[
    str, typer.Option("--id", help="A window (2020-01), the id of a snapshot, or latest.")
]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV, for spreadsheets.")]
LimitOption = Annotated[int, typer.Option("-n", "--limit", min=1, help="Most rows to print.")]
Between = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--between",
        metavar="A B",
        help="Two neighbouring windows (2020-01 2020-02) or snapshot ids, the earlier first.",
    ),
]


@dataclass(frozen=True)
class AskedStore:
    """Which store answers: the platform's, or one in a folder."""

    snapshots: SnapshotStoreOption = None

    @cached_property
    def settings(self) -> Settings:
        return settings_of(self.snapshots)

    @cached_property
    def answers(self) -> Answers:
        from embedding.ask.answers import Answers

        return Answers(page_of(self.settings, self.snapshots, None), whole=True)


@dataclass(frozen=True)
class AskedWindow(AskedStore):
    """And which of its windows."""

    id: ReportIdArgument = "latest"


@dataclass(frozen=True)
class AnswerForm:
    """How an answer is printed: as a table, unless a program or a spreadsheet reads it."""

    as_json: Json = False
    as_csv: Csv = False

    @property
    def is_table(self) -> bool:
        return not (self.as_json or self.as_csv)

    def write(self, answer: object, as_csv: Callable[[], str]) -> None:
        """The answer for a program or a spreadsheet."""
        from embedding.show.columns import as_json

        sys.stdout.write(as_json(answer) if self.as_json else as_csv())


FREQUENCY_HELP = {
    "born": """New words: enough documents use them for the first time.

    Example: `yeoron trends born --id 2020-02-a1b2c3d4`
    """,
    "risen": """Words that are used more often than before.

    Example: `yeoron trends risen --json`
    """,
    "fallen": """Words that are used less often than before.

    Example: `yeoron trends fallen --csv`
    """,
}
"""Help of the commands that show a ranking by frequency."""


def register(app: typer.Typer) -> None:
    """Add these commands."""
    group = typer.Typer(help=ABOUT, no_args_is_help=True)
    rankings = [ranking_command(name, about) for name, about in FREQUENCY_HELP.items()]
    commands: list[Callable[..., None]] = [stories, moved, score, *rankings]
    commands += [word, axis, contrast, bias, report]
    for command in commands:
        group.command(command.__name__)(grouped(command))
    app.add_typer(group, name="trends")


def stories(asked: AskedWindow, limit: LimitOption = 20, as_json: Json = False) -> None:
    """What happened: words that changed together and are used alike, surest first.

    Examples: `yeoron trends stories` · `yeoron trends stories --snapshots store --json`
    """
    from embedding.show.columns import as_json as to_json
    from embedding.show.terminal import ranking_title, story_lines
    from embedding.trends.plain import to_plain
    from embedding.trends.rows import judged

    report = _compared(asked)
    every = report.stories if as_json else report.significant_stories()
    chosen = [(story, asked.answers.story_documents(story, report)) for story in every[:limit]]
    if as_json:
        rows = [{**to_plain(story), **_plain(where)} for story, where in chosen]
        head = {"snapshot": report.snapshot, "compared_with": report.compared_with}
        sys.stdout.write(to_json({**head, "notes": report.notes, "stories": rows}))
        return
    console.print(ranking_title(report, "stories"), style="bold")
    for note in report.notes:
        console.print(escape(note.text), soft_wrap=True)
    if not chosen:
        if judged(report):
            console.print("Nothing stands out: no change is larger than chance alone could give.")
        _print_last(asked, report, "stories")
    for at, (story, where) in enumerate(chosen, start=1):
        title, *lines = story_lines(story, where)
        console.print()
        print_line(f"{at}. {title}", "bold")
        for line in lines:
            print_line(line)
    rest = len(every) - len(chosen)
    if rest > 0:
        console.print(f"{rest:,} more: --limit {limit + rest}")


def moved(
    asked: AskedWindow,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="All words that were compared, clear or not.")
    ] = False,
    between: Between = None,
    limit: LimitOption = 20,
    form: AnswerForm,
) -> None:
    """Words whose meaning changed, surest first.

    Examples: `yeoron trends moved` · `yeoron trends moved --snapshots store --csv` ·
    `yeoron trends moved --all --json` · `yeoron trends moved --between 2020-01 2020-02`
    """
    from embedding.trends.rows import SCORES_COLUMNS

    report = _compared(asked, between)
    if every:
        _write(report, SCORES_COLUMNS, asked.answers.scores(report, None).rows(), form)
    else:
        _print(asked, report, "moved", limit, form, with_last=between is None)


def score(
    words: Annotated[Path, typer.Option(help="A file with one word a line.")],
    asked: AskedWindow,
    *,
    between: Between = None,
    form: AnswerForm,
) -> None:
    """How much the words of a file changed, in the order of the file.

    A word that could not be compared is listed with the reason.

    Examples: `yeoron trends score --words words.txt` ·
    `yeoron trends score --words words.txt --between 2020-01 2020-02 --json`
    """
    from embedding.trends.rows import SCORES_COLUMNS

    named, report = read_words(words), _compared(asked, between)
    rows = asked.answers.scores_of(named, report)
    _write(report, (*SCORES_COLUMNS, "reason"), rows, form)


def ranking_command(name: str, about: str) -> Callable[..., None]:
    """The command that shows one ranking of a window."""

    def ranking(asked: AskedWindow, *, limit: LimitOption = 20, form: AnswerForm) -> None:
        _print(asked, _compared(asked), name, limit, form)

    ranking.__name__, ranking.__doc__ = name, about
    return ranking


def axis(
    word: Annotated[str, typer.Argument(help="The word.")],
    name: Annotated[
        str | None, typer.Option("--axis", help="One axis of the settings, by its name.")
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="Words of one pole of your own, divided by commas.")
    ] = None,
    negative: Annotated[str | None, typer.Option(help="Words of the other pole.")] = None,
    *,
    asked: AskedWindow,
    form: AnswerForm,
) -> None:
    """Where a word stands between two poles, by source and over time, with intervals.

    Without poles the axes of the settings (`web.axes`) answer, those of the word's page: sentiment,
    unless others were set.

    Examples: `yeoron trends axis 일본` · `yeoron trends axis 일본 --axis sentiment` ·
    `yeoron trends axis 일본 --positive 좋다,우호 --negative 나쁘다,불매`
    """
    from embedding.ask.questions import PolesQuestion
    from embedding.show.columns import axes_csv
    from embedding.show.terminal import axis_table
    from embedding.trends.plain import to_plain

    axes = axes_asked(asked.settings.web.axes, name, positive, negative)
    answers, histories, faults = asked.answers, {}, {}
    snapshot = answers.open(asked.id)
    for title, poles in axes.items():
        try:
            histories[title] = PolesQuestion(word, *poles, snapshot.id).answer(answers)
        except InputError as error:
            faults[title] = str(error)
    if not histories:
        title, sentence = next(iter(faults.items()))
        of_poles = title and sentence.startswith(("positive:", "negative:"))
        raise InputError(f"axis {title}, {sentence}" if of_poles else sentence)
    if not any(title.points for title in histories.values()) and word not in snapshot:
        raise answers.unknown(word)
    if form.is_table:
        for title in axes:
            if title in histories:
                console.print(axis_table(histories[title], title or None))
            else:
                print_line(f"{title}: {faults[title]}")
        return
    # Axes of the settings are named in JSON (a list) and in CSV (a column).
    known = {title: to_plain(history) for title, history in histories.items()}
    plain = [{"axis": title, "error": faults.get(title), **known.get(title, {})} for title in axes]
    form.write(histories.get("", plain), lambda: axes_csv(histories))


def contrast(
    first: Annotated[str, typer.Argument(help="A source.")],
    second: Annotated[
        str | None, typer.Argument(help="Another source; not given: all others together.")
    ] = None,
    *,
    asked: AskedWindow,
    limit: LimitOption = 20,
    form: AnswerForm,
) -> None:
    """Words that a source uses differently in one window, surest first.

    Examples: `yeoron trends contrast 뉴스` (than all other sources) ·
    `yeoron trends contrast 뉴스 게시판 --id 2020-02-a1b2c3d4`
    """
    from embedding.ask.questions import ContrastQuestion
    from embedding.show.columns import contrast_csv
    from embedding.show.terminal import contrast_table, fitted

    with console.status("Comparing sources …"):
        contrasted = ContrastQuestion(first, second or "", asked.id).answer(asked.answers)
    if form.is_table:
        console.print(fitted(contrast_table(contrasted, limit), 2, console.width))
    else:
        form.write(contrasted, lambda: contrast_csv(contrasted, limit))


def bias(asked: AskedWindow, form: AnswerForm) -> None:
    """Which source the model serves worst, and weights of the sources that would change it.

    Example: `yeoron trends bias --snapshots store`
    """
    from embedding.ask.questions import BiasQuestion
    from embedding.show.columns import bias_csv
    from embedding.show.terminal import bias_table, weights_setting

    measured = BiasQuestion(asked.id).answer(asked.answers)
    if not form.is_table:
        form.write(measured, lambda: bias_csv(measured))
        return
    console.print(bias_table(measured))
    if measured.predicted is not None:
        print_line(f"Proposed, as a line of the settings:\n{weights_setting(measured)}")


def report(
    asked: AskedWindow,
    every: Annotated[bool, typer.Option("--all", help="One report for each window.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder of reports; not given: that of the settings.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the report of a window, with its tables in Parquet, as the trend_report DAG does.

    Example: `yeoron trends report --all --snapshots store --out trends`
    """
    from embedding.trends.report import build_report
    from embedding.trends.storage import save

    folder, reader = out or asked.settings.paths.trends, asked.answers
    written = []
    # An empty store says so when it is asked for its latest.
    for id in (every and [ref.id for ref in reader.list()]) or [reader.named(asked.id)]:
        with console.status("Comparing windows …"):
            built = build_report(reader, id, asked.settings.trends, folder)
        written.append(str(save(built, folder)))
    if as_json:
        print_json(written)
    else:
        for path in written:
            print_line(path)


def word(
    word: Annotated[str, typer.Argument(help="The word.")], asked: AskedStore, form: AnswerForm
) -> None:
    """One word over all windows: frequency by source, shift, neighbours, and when it changed.

    Example: `yeoron trends word 코로나`
    """
    from embedding.ask.questions import ChangeQuestion, WordQuestion
    from embedding.show.columns import word_csv
    from embedding.show.terminal import fitted, word_table

    history = WordQuestion(word).answer(asked.answers)
    if not form.is_table:
        form.write(history, lambda: word_csv(history))
        return
    with console.status("Comparing windows …"):
        change = ChangeQuestion(history.word).answer(asked.answers)
    console.print(fitted(word_table(history, change, console.width), 1, console.width))


def _print(
    asked: AskedWindow,
    report: TrendReport,
    name: str,
    limit: int,
    form: AnswerForm,
    *,
    with_last: bool = True,
) -> None:
    """A ranking of a report; below that of a quiet one which window had a finding last."""
    from embedding.ask.questions import RankingAnswer
    from embedding.show.columns import ranking_csv
    from embedding.show.terminal import fitted, notes_of, ranking_table, ranking_title

    answer = RankingAnswer.of(report, name, limit)
    if not form.is_table:
        form.write(answer, lambda: ranking_csv(answer.rows))
        return
    if answer.rows:
        console.print(fitted(ranking_table(report, name, limit), 1, console.width))
    else:
        print_line(ranking_title(report, name))
        none = "No word is new." if name == "born" else "No word was compared."
        for sentence in notes_of(report, name) or [none]:
            print_line(sentence)
    if with_last:
        _print_last(asked, report, name)


def _plain(where: StoryDocuments | None) -> dict[str, Any]:
    """The days and addresses of a story in JSON; null and none where they are not kept."""
    first, last = (None, None) if where is None else (where.first, where.last)
    return {
        "first_day": first and f"{first:%Y-%m-%d}",
        "last_day": last and f"{last:%Y-%m-%d}",
        "addresses": [] if where is None else [document.url for document in where.documents],
    }


_LINE = "{rank:>7} {z:>7} {q:>9} {shift:>7} {counts:>19}  {word}"


def _write(
    report: TrendReport, columns: Sequence[str], rows: Iterable[Mapping[str, Any]], form: AnswerForm
) -> None:
    """A line for each row."""
    from embedding.show.columns import as_csv
    from embedding.show.terminal import ranking_title
    from embedding.trends.plain import to_plain

    if form.as_json:
        head = {
            "snapshot": report.snapshot,
            "compared_with": report.compared_with,
            "notes": report.notes,
            "ranking": "moved",
        }
        text = json.dumps(to_plain(head), ensure_ascii=False, sort_keys=True)
        sys.stdout.write(text[:-1] + ', "rows": [')
        for at, row in enumerate(rows):
            line = json.dumps(row, ensure_ascii=False, sort_keys=True)
            sys.stdout.write(("," if at else "") + "\n" + line)
        sys.stdout.write("\n]}\n")
    elif form.as_csv:
        sys.stdout.write(as_csv(columns, rows))
    else:
        titles = {name: name for name in ("rank", "z", "q", "shift", "word")}
        sys.stdout.write(ranking_title(report, "moved") + "\n")
        sys.stdout.write(_LINE.format(**titles, counts="mentions") + "\n")
        sys.stdout.writelines(_line(row) + "\n" for row in rows)


def _line(row: Mapping[str, Any]) -> str:
    if row.get("reason") is not None:
        return f"{'–':>7} {row['word']}: {row['reason']}"
    return _LINE.format(
        rank=row["rank"],
        z=f"{row['z']:.1f}",
        q=f"{row['q']:.2g}",
        shift="–" if row["shift"] is None else f"{row['shift']:.2f}",
        counts=f"{row['count_before']:,} → {row['count']:,}",
        word=row["word"] + (" *" if row["significant"] else ""),
    )


def axes_asked(
    configured: Sequence[AxisConfig], name: str | None, positive: str | None, negative: str | None
) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """By name both poles: those given, without a name, else the named axis of the settings, else
    all of them.

    Raises InputError for one pole without the other, poles beside a name, an unknown name, and
    settings without axes.
    """
    given = {"--positive": positive, "--negative": negative}
    missing = [option for option, pole in given.items() if pole is None]
    if len(missing) < len(given):
        if name is not None:
            raise InputError(
                f"--axis {name[:40]} beside poles: give an axis by its name, or --positive and "
                "--negative."
            )
        if missing:
            raise InputError(
                f"{missing[0]} is missing: an axis needs both poles; without either, the axes of "
                "the settings answer."
            )
        split = [[word.strip() for word in (pole or "").split(",")] for pole in given.values()]
        ends = (tuple(filter(None, words)) for words in split)
        return {"": (next(ends), next(ends))}
    axes = {axis.name: (axis.positive, axis.negative) for axis in configured}
    if name is not None and name not in axes:
        known = ", ".join(axes) or "none"
        raise InputError(f"--axis {name[:40]}: the settings' axes (web.axes) are {known}.")
    if not axes:
        raise InputError("the settings have no axes (web.axes); give --positive and --negative.")
    return axes if name is None else {name: axes[name]}


QUIET_S = 2.0
"""Seconds after which it is said why windows are being compared."""
_COMPUTED = (
    "There is no finished report of these windows with these settings, so they are compared now. "
    "`yeoron trends report --all` keeps those of all windows."
)
_BETWEEN = "Two windows of one's choice are compared each time they are asked for."
_NOTHING = ("one_snapshot", "empty_window")
"""Notes of a report that has nothing to rank."""
_WORDS = {
    "moved": "a word changed in meaning",
    "born": "a new word",
    "risen": "a word used more often",
    "fallen": "a word used less often",
}
"""Findings of a ranking."""


def _print_last(asked: AskedWindow, report: TrendReport, name: str) -> None:
    """Below the latest window without findings: which had some last, and the command that shows it.

    name  `stories` for findings of any kind, or a ranking for those in it
    """
    from embedding.ask.questions import LastFindingQuestion
    from embedding.trends.rows import RANKINGS, findings_of

    rankings = RANKINGS if name == "stories" else (name,)
    if asked.id != "latest" or findings_of(report, rankings):
        return

    def shown(earlier: TrendReport, command: str, counted: Sequence[str]) -> str:
        own = "" if asked.snapshots is None else f" --snapshots {shlex.quote(str(asked.snapshots))}"
        window, n = earlier.snapshot, findings_of(earlier, counted)
        return f"{window.label} ({n:,}): yeoron trends {command}{own} --id {window.id}"

    what = _WORDS.get(name, "a finding")
    with console.status("Looking for the last window with a finding …"):
        last = LastFindingQuestion(report.snapshot.id, rankings).answer(asked.answers)
    if last.report is not None:
        print_line(f"The last window with {what} is {shown(last.report, name, rankings)}")
        return
    whose = " whose report is known" if last.unknown else ""
    print_line(f"No window before {report.snapshot.label}{whose} has {what}.")
    if last.another is not None:
        another = shown(last.another, "stories", RANKINGS)
        print_line(f"The last one with another finding is {another}")
    if last.unknown:
        print_line("`yeoron trends report --all` writes the reports of all windows.")


def read_words(path: Path) -> list[str]:
    """Words of a file, one a line, in Unicode NFC; empty lines are skipped.

    Raises InputError when it cannot be read, holds none or repeats one.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file; one word a line is expected.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: it is not UTF-8 text; one word a line is expected.") from error
    except OSError as error:
        raise InputError(f"{path}: it cannot be read: {error.strerror}.") from error
    lines_of: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        word = unicodedata.normalize("NFC", line.strip())
        if word in lines_of:
            raise InputError(
                f"{path}, line {number}: {word[:80]!r} stands in line {lines_of[word]} too; each "
                "word is listed once."
            )
        if word:
            lines_of[word] = number
    if not lines_of:
        raise InputError(f"{path}: it holds no word; one word a line is expected.")
    return list(lines_of)


def report_of(asked: AskedWindow, between: tuple[str, str] | None = None) -> TrendReport:
    """The report of a window, or of two neighbouring ones, finished or computed; InputError for two
    others.
    """
    from embedding.ask.questions import BetweenQuestion, ReportQuestion

    answers = asked.answers
    if between is None:
        finished = answers.finished_report(answers.named(asked.id)) is not None
        with nullcontext() if finished else _explained_if_slow(_COMPUTED):
            return ReportQuestion(asked.id).answer(answers)
    if asked.id != "latest":
        raise ConfigError(
            f"--id {asked.id}: not accepted with --between, which names both windows."
        )
    from embedding.trends.report import refuse_apart

    windows = map(answers.store.require, between)
    with _explained_if_slow(_BETWEEN):
        report = BetweenQuestion(*windows).answer(answers)
    refuse_apart(report)
    return report


def _compared(asked: AskedWindow, between: tuple[str, str] | None = None) -> TrendReport:
    report = report_of(asked, between)
    for note in report.notes:
        if note.code in _NOTHING:
            raise InputError(note.text)
    return report


@contextmanager
def _explained_if_slow(why: str) -> Iterator[None]:
    """Say on standard error why the answer is not there yet."""
    late = threading.Timer(QUIET_S, print_line, (why, "dim"), {"to": errors})
    late.daemon = True
    late.start()
    try:
        with console.status("Comparing windows …"):
            yield
    finally:
        late.cancel()
