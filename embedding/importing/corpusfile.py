"""The corpus that an import writes: it is there whole and in order of time, or not at all.

    .NAME.part    lines, in the order in which they came
    .NAME.lines   Unix seconds and length of each, float64 and int64
    .NAME.state   how much of both counts, and what whoever writes must know to go on

After a kill the first two are cut to what the third says.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from embedding.kernel.durable import replaced, sync
from embedding.kernel.errors import InputError
from embedding.kernel.records import TimeArray

_FORMAT = 1
_LINE = np.dtype([("when", "<f8"), ("bytes", "<i8")])
_TOGETHER = 8192
"""Lines that are copied at once when they are brought into order."""


class CorpusFile:
    """A corpus that is being written; see `writing`."""

    def __init__(self, path: Path, part: IO[bytes], lines: IO[bytes], state: Mapping[str, Any]):
        self.path = path
        self.state = state
        """What the last `keep` was given; empty at the beginning."""
        self.ordered = bool(state.get("ordered", True))
        """Whether the lines came in order of time so far."""
        self.latest = float(state.get("latest", -np.inf))
        self._part, self._lines = part, lines

    def add(self, lines: Sequence[bytes], when: TimeArray) -> None:
        """Lines with their line ends, and the Unix seconds of each, float64 [n]."""
        if not lines:
            return
        self._part.write(b"".join(lines))
        marks = np.empty(len(lines), dtype=_LINE)
        marks["when"] = when
        marks["bytes"] = np.fromiter(map(len, lines), np.int64, len(lines))
        self._lines.write(marks.tobytes())
        times = np.concatenate([[self.latest], when])
        self.ordered = self.ordered and bool((np.diff(times[np.isfinite(times)]) >= 0).all())
        self.latest = max(self.latest, float(when.max()))

    def keep(self, state: Mapping[str, Any]) -> None:
        """What was added so far is on the disk, with what is to be known to go on from here."""
        for file in (self._part, self._lines):
            file.flush()
            os.fsync(file.fileno())
        self.state = {
            **state,
            "format": _FORMAT,
            "bytes": self._part.tell(),
            "marks": self._lines.tell(),
            "ordered": self.ordered,
            "latest": self.latest if np.isfinite(self.latest) else None,
        }
        with replaced(_beside(self.path, "state")) as file:
            file.write(json.dumps(self.state, ensure_ascii=False).encode())

    def finish(self) -> None:
        """Bring the lines into order of time and put the file in its place."""
        self._part.flush()
        self._lines.flush()
        if self.ordered:
            os.fsync(self._part.fileno())
            _beside(self.path, "part").replace(self.path)
            sync(self.path.parent)
        else:
            self._sort()
        self.drop()

    def drop(self) -> None:
        """Leave nothing of an unfinished file."""
        for kind in ("part", "lines", "state"):
            _beside(self.path, kind).unlink(missing_ok=True)

    def _sort(self) -> None:
        """Lines of the same time stay in the order in which they came."""
        marks = np.memmap(_beside(self.path, "lines"), dtype=_LINE, mode="r")
        order = np.argsort(marks["when"], kind="stable")
        ends = np.cumsum(marks["bytes"])
        with (
            _beside(self.path, "part").open("rb") as part,
            replaced(self.path) as file,
        ):
            os.fchmod(file.fileno(), 0o600)
            for at in range(0, len(order), _TOGETHER):
                some = order[at : at + _TOGETHER]
                first = ends[some] - marks["bytes"][some]
                places = zip(first.tolist(), marks["bytes"][some].tolist(), strict=True)
                # Not by a map of the file: the pages around each line would count as memory.
                file.write(b"".join([os.pread(part.fileno(), n, start) for start, n in places]))


@contextmanager
def writing(path: Path, marks: Mapping[str, Any]) -> Iterator[CorpusFile]:
    """The corpus `path`, begun or gone on with; what is not finished stays for the next time.

    marks  what must be the same to go on: files, columns, options; JSON-safe

    Raises InputError where it cannot be written, or another process writes it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(_beside(path, "part"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}.") from error
    with os.fdopen(handle, "r+b") as part:
        try:
            fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(f"{path}: another import is writing it; wait for its end.") from error
        state = _state(path, marks)
        lines_path = _beside(path, "lines")
        lines_path.touch(0o600)
        with lines_path.open("r+b") as lines:
            for file, key in ((part, "bytes"), (lines, "marks")):
                file.truncate(int(state.get(key, 0)))
                file.seek(0, os.SEEK_END)
            yield CorpusFile(path, part, lines, state)


def _state(path: Path, marks: Mapping[str, Any]) -> dict[str, Any]:
    """What an import of the same left; empty where there is none, or it cannot be gone on with."""
    try:
        found: dict[str, Any] = json.loads(_beside(path, "state").read_text(encoding="utf-8"))
        whole = _beside(path, "part").stat().st_size >= found["bytes"]
        whole = whole and _beside(path, "lines").stat().st_size >= found["marks"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    if not whole or found.get("format") != _FORMAT or found.get("of") != marks:
        return {}
    if found.get("latest") is None:
        del found["latest"]
    return found


def _beside(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{kind}")
