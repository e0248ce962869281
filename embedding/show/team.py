"""What a team shares: watched words with alerts, notes on words and windows, reports by mail.

One JSON file, replaced as a whole by one rename; whoever changes it holds a lock beside it.
"""

from __future__ import annotations

import fcntl
import json
import secrets
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from embedding.kernel.durable import replaced
from embedding.kernel.errors import KeyedError, SnapshotError
from embedding.show.notifying import NotifyConfig, ReportFormat
from embedding.trends.plain import from_plain

LONGEST_NOTE = 2_000
LONGEST_NAME = 40
LONGEST_SHARED_WORD = 200
MOST_SHARED_WORDS = 200
MOST_NOTES = 2_000
REPORT_FORMATS = tuple(format for format in get_args(ReportFormat) if format != "none")
NOTE_KINDS = ("word", "window")
"""What a note may be about."""


@dataclass(frozen=True)
class WatchedWord:
    """A word on the team's list; `alert`: its figures are in every notice."""

    word: str
    alert: bool
    who: str
    at: str


@dataclass(frozen=True)
class TeamNote:
    """A note about a word or a window (its label); `at` is in ISO format."""

    id: str
    kind: str
    about: str
    text: str
    who: str
    at: str


@dataclass(frozen=True)
class MailedReport:
    """The report of each window that is mailed to the team; format: one of REPORT_FORMATS."""

    format: str
    language: str
    who: str
    at: str


@dataclass(frozen=True)
class TeamShared:
    """All that a team shares, newest last; report: None where none is mailed."""

    words: tuple[WatchedWord, ...] = ()
    notes: tuple[TeamNote, ...] = ()
    report: MailedReport | None = None

    def notes_on(self, kind: str, about: str) -> tuple[TeamNote, ...]:
        own = [note for note in self.notes if (note.kind, note.about) == (kind, about)]
        return tuple(reversed(own))

    def watched(self, word: str) -> WatchedWord | None:
        return next((watched for watched in self.words if watched.word == word), None)


class TeamStore:
    """Reads and changes what is shared. Raises SnapshotError for a file that cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> TeamShared:
        try:
            shared: TeamShared = from_plain(TeamShared, json.loads(self.path.read_text("utf-8")))
        except FileNotFoundError:
            return TeamShared()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise SnapshotError(f"{self.path}: what the team shares cannot be read.") from error
        return shared

    def watch(self, word: str, who: str, *, alert: bool) -> None:
        """Put a word on the list, or set its alert; raises KeyedError."""
        word, who = _plain(word, LONGEST_SHARED_WORD, "team_word"), _name(who)

        def change(shared: TeamShared) -> TeamShared:
            others = tuple(watched for watched in shared.words if watched.word != word)
            if len(others) >= MOST_SHARED_WORDS:
                raise KeyedError(
                    "team_full", f"the list holds {MOST_SHARED_WORDS} words, which is all."
                )
            return replace(shared, words=(*others, WatchedWord(word, alert, who, _now())))

        self._change(change)

    def unwatch(self, word: str) -> None:
        self._change(
            lambda shared: replace(
                shared, words=tuple(watched for watched in shared.words if watched.word != word)
            )
        )

    def note(self, kind: str, about: str, text: str, who: str) -> None:
        """Add a note; raises KeyedError."""
        if kind not in NOTE_KINDS:
            raise KeyedError(
                "bad_address", f"kind {kind[:20]!r}: {', '.join(NOTE_KINDS)} are accepted."
            )
        about, who = _plain(about, LONGEST_SHARED_WORD, "team_word"), _name(who)
        text = _lines(text)
        if not text:
            raise KeyedError("note_empty", "a note needs a text.")
        if len(text) > LONGEST_NOTE:
            raise KeyedError("note_long", f"a note takes at most {LONGEST_NOTE} characters.")

        def change(shared: TeamShared) -> TeamShared:
            if len(shared.notes) >= MOST_NOTES:
                raise KeyedError("team_full", f"there are {MOST_NOTES} notes, which is all.")
            made = TeamNote(secrets.token_hex(8), kind, about, text, who, _now())
            return replace(shared, notes=(*shared.notes, made))

        self._change(change)

    def remove_note(self, id: str, who: str | None) -> None:
        """Remove a note: one's own, or any where nobody is known by name (`who` None)."""

        def kept(note: TeamNote) -> bool:
            return note.id != id or (who is not None and note.who != who)

        self._change(lambda shared: replace(shared, notes=tuple(filter(kept, shared.notes))))

    def mail_report(self, format: str, language: str, who: str) -> None:
        """Have the report of each window mailed, or none (format `none`); raises KeyedError."""
        if format not in (*REPORT_FORMATS, "none"):
            accepted = ", ".join(REPORT_FORMATS)
            raise KeyedError("bad_address", f"format {format[:20]!r}: {accepted} are accepted.")
        chosen = None
        if format != "none":
            chosen = MailedReport(format, language, _name(who), _now())
        self._change(lambda shared: replace(shared, report=chosen))

    def erase(self, word: str, *, dry: bool = False) -> int:
        """Remove a word from the list, and the notes that are about it or hold it; how many."""
        shared = self.read()
        words = tuple(watched for watched in shared.words if watched.word != word)
        notes = tuple(
            note
            for note in shared.notes
            if word not in note.text and (note.about, note.kind) != (word, "word")
        )
        gone = len(shared.words) + len(shared.notes) - len(words) - len(notes)
        if gone and not dry:
            self._change(lambda _: replace(shared, words=words, notes=notes))
        return gone

    def _change(self, change: Callable[[TeamShared], TeamShared]) -> None:
        with self._alone():
            shared = asdict(change(self.read()))
            with replaced(self.path) as file:
                file.write(json.dumps(shared, ensure_ascii=False, indent=1).encode())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Only one process at a time changes the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def with_team(config: NotifyConfig, store: TeamStore) -> NotifyConfig:
    """The same settings, with the words and the report that the team wants to be told of."""
    shared = store.read()
    words = [watched.word for watched in shared.words if watched.alert]
    update: dict[str, Any] = {"words": tuple(dict.fromkeys((*config.words, *words)))}
    if (report := shared.report) is not None:
        update |= {"attach": report.format, "attach_language": report.language}
        update["attach_quiet"] = True
    return config.model_copy(update=update)


def _name(who: str) -> str:
    return _plain(who, LONGEST_NAME, "team_name")


def _plain(text: str, longest: int, key: str) -> str:
    plain = " ".join(_printable(text).split())
    if not plain or len(plain) > longest:
        raise KeyedError(key, f"between 1 and {longest} characters are accepted.")
    return plain


def _lines(text: str) -> str:
    lines = [_printable(line).rstrip() for line in text.splitlines()]
    return "\n".join(lines).strip()


def _printable(text: str) -> str:
    """With spaces for control characters and halves of characters."""
    return "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in text)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
