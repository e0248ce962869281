"""The reports that commands show: the finished one, else computed; that is said where it lasts."""

from __future__ import annotations

import shlex
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from embedding.commands.common import console, errors, print_line
from embedding.kernel.errors import InputError, SnapshotError

if TYPE_CHECKING:
    from embedding.ask.answers import Answers
    from embedding.ask.reader import Reader
    from embedding.kernel.records import SnapshotRef
    from embedding.trends.rows import TrendReport

QUIET_S = 2.0
"""Seconds after which it is said why windows are being compared."""
_COMPUTED = (
    "There is no finished report of these windows with these settings, so they are compared now. "
    "`yeoron trends report --all` keeps those of all windows."
)
_BETWEEN = "Two windows of one's choice are compared each time they are asked for."
_NOTHING = ("one_snapshot", "empty_window")
"""Notes of a report that has nothing to rank."""
COMPUTED = 3
"""Windows whose reports are computed for it; of those further back finished ones are read."""
_WORDS = {
    "moved": "a word changed in meaning",
    "born": "a new word",
    "risen": "a word used more often",
    "fallen": "a word used less often",
}
"""Findings of a ranking."""


def last_found(report: TrendReport, name: str, snapshots: Path | None, reader: Reader) -> str:
    """Which window before that of `report` had findings last, and the command that shows it.

    name       `stories` for findings of any kind, or a ranking for those in it
    snapshots  as the call named the store

    Empty where `report` has some or no window was before it.
    """
    from embedding.trends.findings import LOOKED_BACK, findings_of, last_with_findings
    from embedding.trends.rows import RANKINGS

    rankings = RANKINGS if name == "stories" else (name,)
    start = datetime.fromisoformat(report.snapshot.start)
    before = [ref for ref in reader.list() if ref.window_start < start]
    if findings_of(report, rankings) or not before:
        return ""

    def known(ref: SnapshotRef) -> TrendReport | None:
        found = reader.known_report(ref.id)
        if found is None and ref in before[-COMPUTED:]:
            with suppress(SnapshotError):
                found = reader.report(ref.id, None)
        return found

    def shown(found: TrendReport, command: str, counted: Sequence[str]) -> str:
        own = "" if snapshots is None else f" --snapshots {shlex.quote(str(snapshots))}"
        return (
            f"{found.snapshot.label} ({findings_of(found, counted):,}): yeoron trends {command}"
            f"{own} --id {found.snapshot.id}"
        )

    what = _WORDS.get(name, "a finding")
    found = last_with_findings(before, known, lambda one: findings_of(one, rankings))
    if found is not None:
        return f"The last window with {what} is {shown(found, name, rankings)}"
    missing = any(known(ref) is None for ref in before[-LOOKED_BACK:])
    whose = " whose report is known" if missing else ""
    sentences = [f"No window before {report.snapshot.label}{whose} has {what}."]
    if other := last_with_findings(before, known):
        sentence = f"The last one with another finding is {shown(other, 'stories', RANKINGS)}"
        sentences.append(sentence)
    if missing:
        sentences.append("`yeoron trends report --all` writes the reports of all windows.")
    return "\n".join(sentences)


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
    found: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        word = unicodedata.normalize("NFC", line.strip())
        if word in found:
            raise InputError(
                f"{path}, line {number}: {word[:80]!r} stands in line {found[word]} too; each word "
                "is listed once."
            )
        if word:
            found[word] = number
    if not found:
        raise InputError(f"{path}: it holds no word; one word a line is expected.")
    return list(found)


def refuse_nothing(report: TrendReport) -> None:
    """InputError when there was nothing to compare."""
    for note in report.notes:
        if note.code in _NOTHING:
            raise InputError(note.text)


def report_of(reader: Reader, window: str, *, scores: bool = False) -> TrendReport:
    """The finished report of a window, else computed; with `scores` the figures of all words too.

    window  its label, the id of its snapshot, or `latest`
    """
    name = reader.named(window)
    found = reader.finished_report(name)
    with _explained_if_slow(_COMPUTED):
        if found is None:
            found = reader.report(name, None)
        return replace(found, scores=reader.scores(found, None)) if scores else found


def report_between(answers: Answers, windows: tuple[str, str]) -> TrendReport:
    """The report of what changed in meaning between two windows, or snapshots; InputError unless
    they are neighbours.
    """
    from embedding.trends.between import refuse_apart

    before, after = map(answers.reader.store.require, windows)
    with _explained_if_slow(_BETWEEN):
        report = answers.between(before, after, None)
    refuse_apart(report)
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
