"""Reading gold files: word pairs with human scores, and analogies in sections."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from embedding.kernel.errors import InputError

Analogy = tuple[str, str, str, str]
_PAIR_COLUMNS = "three columns (word, word, number) separated by tab, comma or white space"
_ANALOGY_COLUMNS = "four words separated by white space, in sections that begin with `: name`"


@dataclass(frozen=True)
class PairGold:
    """Word pairs with a human similarity score; `name` is the file's stem."""

    name: str
    pairs: tuple[tuple[str, str, float], ...]


@dataclass(frozen=True)
class AnalogyGold:
    """Questions a : b = c : d by section; `name` is the file's stem."""

    name: str
    sections: dict[str, tuple[Analogy, ...]]


def read_gold(path: Path) -> PairGold | AnalogyGold:
    """Read a gold file; a first line that begins with `:` makes it one of analogies.

    UTF-8, with or without byte order mark; words are brought to Unicode NFC. Empty lines, lines
    that begin with `#`, and one header line of pairs are skipped. Raises InputError in one
    sentence with the file, the line and what is accepted.
    """
    lines = list(_lines(path))
    if lines and lines[0][1].startswith(":"):
        return AnalogyGold(path.stem, _analogies(path, lines))
    return PairGold(path.stem, tuple(_pairs(path, lines)))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(
            f"gold file {path}: there is no such file; its figures are left out."
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"gold file {path}: it is not UTF-8 text.") from error
    except OSError as error:
        raise InputError(f"gold file {path}: it cannot be read: {error.strerror}.") from error
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = unicodedata.normalize("NFC", line.strip())
        if stripped and not stripped.startswith("#"):
            yield number, stripped


def _pairs(path: Path, lines: list[tuple[int, str]]) -> Iterator[tuple[str, str, float]]:
    pairs = 0
    for place, (number, line) in enumerate(lines):
        divided = next((line.split(mark) for mark in "\t," if mark in line), line.split())
        cells = [cell.strip() for cell in divided]
        score = _number(cells[-1])
        if place == 0 and score is None and len(cells) >= 3:
            continue
        if len(cells) != 3 or score is None or not (cells[0] and cells[1]):
            what = f"{len(cells)} columns" if len(cells) != 3 else "no number in the third column"
            raise InputError(f"gold file {path}:{number}: {what}; accepted are {_PAIR_COLUMNS}.")
        pairs += 1
        yield cells[0], cells[1], score
    if not pairs:
        raise InputError(f"gold file {path}: it holds no pair; accepted are {_PAIR_COLUMNS}.")


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if abs(value) != float("inf") and value == value else None


def _analogies(path: Path, lines: list[tuple[int, str]]) -> dict[str, tuple[Analogy, ...]]:
    sections: dict[str, list[Analogy]] = {}
    current: list[Analogy] = []
    for number, line in lines:
        if line.startswith(":"):
            current = sections.setdefault(line[1:].strip() or "section", [])
            continue
        words = line.split()
        if len(words) != 4:
            raise InputError(
                f"gold file {path}:{number}: {len(words)} columns; accepted are {_ANALOGY_COLUMNS}."
            )
        current.append((words[0], words[1], words[2], words[3]))
    if not any(sections.values()):
        raise InputError(
            f"gold file {path}: it holds no question; accepted are {_ANALOGY_COLUMNS}."
        )
    return {name: tuple(questions) for name, questions in sections.items()}
