"""Reports on disk: `<folder>/<snapshot id>/report.json` and Parquet tables.

A table a ranking (`REPORT_SCHEMA`), `sources.parquet` of what each source brought (`_SOURCES`), and
`scores.parquet` with the figures of every word that was compared (`rows.SCORES_SCHEMA`).
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from embedding.kernel.durable import sync
from embedding.kernel.errors import ConfigError, InputError
from embedding.kernel.records import SnapshotRef
from embedding.trends.config import TrendsConfig
from embedding.trends.material import lineage
from embedding.trends.rows import FORMAT_FIELD, RANKINGS, REPORT_FORMAT, TrendReport, WordScores

log = logging.getLogger(__name__)
REPORT = "report.json"
_KEY = "key"
"""Field of a saved report: of which snapshots and settings it is (`key_of`)."""
_VERSION = 5
"""Another one whenever the same snapshots and settings give another report."""
SCORES = "scores.parquet"
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.+-]{0,119}")
_NEIGHBOUR = pa.struct([("word", pa.string()), ("similarity", pa.float64())])
_SOURCE = pa.struct(
    [
        ("source", pa.string()),
        *((name, pa.int64()) for name in ("documents_before", "documents", "read_before", "read")),
    ]
)
REPORT_SCHEMA = pa.schema(
    [
        ("snapshot", pa.string()),
        ("window_start", pa.string()),
        ("rank", pa.int32()),
        ("word", pa.string()),
        *[(name, pa.float64()) for name in ("score", "z", "p", "q")],
        ("significant", pa.bool_()),
        *[(name, pa.float64()) for name in ("shift", "shift_low", "shift_high", "expected")],
        *[(name, pa.float64()) for name in ("log_odds", "spread", "burst")],
        ("since", pa.string()),
        *[
            (name, pa.int64())
            for what in ("count", "documents", "documents_deduplicated", "authors")
            for name in (f"{what}_before", what)
        ],
        *[(name, pa.float64()) for name in ("rate_before", "rate_usual", "rate")],
        ("sources", pa.list_(_SOURCE)),
        ("neighbours_before", pa.list_(_NEIGHBOUR)),
        ("neighbours", pa.list_(_NEIGHBOUR)),
        ("series", pa.list_(pa.float64())),
    ]
)
_SOURCES = pa.schema(
    [
        *((name, pa.string()) for name in ("snapshot", "window_start", "source")),
        *((name, pa.int64()) for name in ("documents", "tokens")),
        *((name, pa.float64()) for name in ("loss", "excess")),
    ]
)


def key_of(refs: Sequence[SnapshotRef], config: TrendsConfig) -> str:
    """Of what a report is: of these snapshots, oldest first, and of these settings.

    A snapshot that was amended, withdrawn or cut again, and other settings, give another key.
    """
    parts = [_VERSION, config.digest(), *([ref.id, ref.revision] for ref in refs)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def dumps(report: TrendReport) -> str:
    """The canonical JSON text of a report: the same report gives the same bytes."""
    return _text({**report.to_dict(), FORMAT_FIELD: REPORT_FORMAT})


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, sort_keys=True, indent=1) + "\n"


def save(report: TrendReport, folder: Path) -> Path:
    """Publish a report by one rename; returns its folder.

    The report of a snapshot that was reported before is replaced when it differs. Raises
    ConfigError when the folder cannot be written; then nothing is visible.
    """
    target = folder / _checked(report.snapshot.id)
    key = {} if report.scores is None else {_KEY: report.scores.key}
    text = _text({**report.to_dict(), FORMAT_FIELD: REPORT_FORMAT, **key})
    try:
        folder.mkdir(parents=True, exist_ok=True)
        same = (target / REPORT).is_file() and (target / REPORT).read_text("utf-8") == text
        if same and _same_scores(target, report):
            return target
        draft = folder / f".publishing-{uuid.uuid4().hex}"
        try:
            draft.mkdir()
            _write(draft, report, text)
            _switch(draft, target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise ConfigError(
            f"trends folder {folder}: the report of {report.snapshot.id} cannot be written: "
            f"{error.strerror or error}."
        ) from error
    return target


def load(folder: Path, id: str) -> TrendReport:
    """Read a saved report, whatever it is of; InputError when there is none that can be read."""
    path = folder / _checked(id) / REPORT
    return _parsed(path, _content(path, id))


def load_of(folder: Path, id: str, key: str) -> TrendReport | None:
    """Read the saved report with this key (`key_of`).

    None where there is none with it. One that cannot be read is none, with a line in the log.
    """
    path = folder / _checked(id) / REPORT
    if not path.is_file():
        return None
    try:
        data = _content(path, id)
        return _parsed(path, data) if data.get(_KEY) == key else None
    except InputError as error:
        log.warning("the report of %s is computed again: %s", id, error)
        return None


def _content(path: Path, id: str) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        folder = path.parent.parent
        raise InputError(f"trends folder {folder}: there is no report of snapshot {id}.") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a readable trend report: {error}.") from error
    if not isinstance(data, dict):
        raise InputError(f"{path}: not a trend report: an object is expected.")
    return data


def _parsed(path: Path, data: dict[str, Any]) -> TrendReport:
    try:
        return TrendReport.from_dict({k: v for k, v in data.items() if k != _KEY})
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def load_scores(folder: Path, id: str, key: str) -> WordScores | None:
    """The saved figures of all words; None when there are none with this key (`key_of`)."""
    scores = _scores(folder / _checked(id))
    return scores if scores is not None and scores.key == key else None


def saved(folder: Path) -> list[str]:
    """Ids of the snapshots that have a saved report, sorted."""
    if not folder.is_dir():
        return []
    names = (path.name for path in folder.iterdir() if _ID.fullmatch(path.name))
    return sorted(name for name in names if (folder / name / REPORT).is_file())


def erase(folder: Path, wanted: str, *, dry: bool = False) -> int:
    """Remove the reports that hold a word, a source or an address; how many. Nobody may be writing
    one.
    """
    holding = [name for name in saved(folder) if _holds(folder / name, wanted)]
    if not dry:
        _remove(folder, holding)
    return len(holding)


def expire(folder: Path, before: float, *, dry: bool = False) -> int:
    """Remove the reports that were written before a time (Unix seconds); how many."""
    old = [name for name in saved(folder) if (folder / name / REPORT).stat().st_mtime < before]
    if old and not dry:
        _remove(folder, old)
    return len(old)


def _remove(folder: Path, ids: Sequence[str]) -> None:
    """Take reports away, and what was left of others; they are made again when they are needed."""
    for id in ids:
        (folder / id).rename(folder / f".replaced-{uuid.uuid4().hex}")
    for left in folder.glob(".replaced-*"):
        shutil.rmtree(left)


def _holds(folder: Path, wanted: str) -> bool:
    # JSON writes a string in one way here: no characters are escaped but these.
    text = json.dumps(wanted, ensure_ascii=False)
    if text in (folder / REPORT).read_text(encoding="utf-8"):
        return True
    path = folder / SCORES
    if not path.is_file():
        return False
    table = pq.read_table(path)
    return any(
        wanted in table[name].to_pylist()
        for name in table.column_names
        if pa.types.is_string(table[name].type)
    )


def table(report: TrendReport, ranking: str) -> pa.Table:
    """The rows of one ranking (a name of RANKINGS) as an Arrow table with `REPORT_SCHEMA`."""
    records = [
        {**row, "snapshot": report.snapshot.id, "window_start": report.snapshot.start, "rank": rank}
        for rank, row in enumerate(report.to_dict()[ranking], start=1)
    ]
    return pa.Table.from_pylist(records, schema=REPORT_SCHEMA)


def source_table(report: TrendReport) -> pa.Table:
    """What each source brought, and its loss before learning, as a table with `_SOURCES`."""
    window = report.snapshot
    records = [
        {**vars(source), "snapshot": window.id, "window_start": window.start}
        for source in sorted(report.by_source(), key=lambda source: source.source)
        if source.source in {*window.documents, *window.tokens} or source.loss is not None
    ]
    return pa.Table.from_pylist(records, schema=_SOURCES)


def _scores(folder: Path) -> WordScores | None:
    """The table in the folder of a report; None when there is none that can be read."""
    try:
        return WordScores.from_arrow(pq.read_table(folder / SCORES))
    except (OSError, ValueError):  # ArrowInvalid is a ValueError
        return None


def _same_scores(folder: Path, report: TrendReport) -> bool:
    if report.scores is None:
        return True
    scores = _scores(folder)
    return scores is not None and scores.key == report.scores.key


def _write(folder: Path, report: TrendReport, text: str) -> None:
    for name in RANKINGS:
        pq.write_table(table(report, name), folder / f"{name}.parquet")
    pq.write_table(source_table(report), folder / "sources.parquet")
    if report.scores is not None:
        pq.write_table(report.scores.to_arrow(), folder / SCORES)
    (folder / REPORT).write_text(text, encoding="utf-8")
    for path in (*folder.iterdir(), folder):
        sync(path)


def _switch(draft: Path, target: Path) -> None:
    """Put `draft` in the place of `target`; a rename cannot replace a folder that has files."""
    old = target.parent / f".replaced-{uuid.uuid4().hex}"
    if target.exists():
        target.rename(old)
    draft.rename(target)
    sync(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def _checked(id: str) -> str:
    if not _ID.fullmatch(id):
        raise InputError(f"{id[:120]!r} is not a snapshot id; one looks like 2020-02-a1b2c3d4.")
    return id


class FinishedReports:
    """The reports in a folder that are what would be computed now: of these snapshots, in the same
    revisions, and of these settings. Page, commands, Python and Airflow ask here first.

    refs    all snapshots by window start (`SnapshotStore.list`)
    folder  of reports; None: there is none
    """

    def __init__(
        self, refs: Sequence[SnapshotRef], config: TrendsConfig, folder: Path | None
    ) -> None:
        self._refs = {ref.id: ref for ref in refs}
        self._config, self._folder = config, folder
        self._keys: dict[str, str] = {}

    def key(self, id: str) -> str:
        """The key that a report of a snapshot has if it is computed now; "" for an unknown one."""
        if id not in self._keys:
            ref, refs = self._refs.get(id), [*self._refs.values()]
            self._keys[id] = key_of(lineage(refs, ref), self._config) if ref else ""
        return self._keys[id]

    def report(self, id: str) -> TrendReport | None:
        """The finished report of a snapshot; None where there is none, or one of something else."""
        key = self.key(id)
        return load_of(self._folder, id, key) if self._folder and key else None

    def scores(self, id: str) -> WordScores | None:
        """The figures of every word that the finished report compared; None as for `report`."""
        key = self.key(id)
        return load_scores(self._folder, id, key) if self._folder and key else None
