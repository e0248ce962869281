"""What `yeoron trends` is asked: known words, windows that can be compared."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

from embedding.kernel.errors import InputError

if TYPE_CHECKING:
    from embedding.snapshots.snapshot import Snapshot
    from embedding.trends.rows import TrendReport

_NOTHING = ("one_snapshot", "empty_window")
"""Notes of a report that has nothing to rank."""
SPELLINGS = 5


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


def refuse_unknown(word: str, snapshot: Snapshot, *, known: bool) -> None:
    """InputError with the nearest spellings unless the word is known."""
    if known:
        return
    from embedding.web.search import SearchVocabulary

    near = SearchVocabulary(snapshot.words, snapshot.counts).nearest_spellings(word, SPELLINGS)
    about = f"the nearest spellings are {', '.join(near)}" if near else "no spelling is near it"
    raise InputError(f"word {word[:80]!r}: no snapshot holds it; {about}.")


def refuse_nothing(report: TrendReport) -> None:
    """InputError when there was nothing to compare."""
    for note in report.notes:
        if note.code in _NOTHING:
            raise InputError(note.text)
