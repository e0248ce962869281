"""A training that can be interrupted: what its state folder holds, and going on from it.

    DIR/training.json  the request and the corpus that it was begun with; tokens of an epoch
    DIR/server/        checkpoints of the parameter server (see docs/concepts/recovery.md)
    DIR/snapshots/     what was cut so far; `out` gets a copy at the end
    DIR/finished.json  training.json of one that has ended, while the rest goes

The server's checkpoint says how far each node has read, so that the same command learns the rest:
nothing twice, nothing left out.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embedding.kernel.durable import replaced, unreadable
from embedding.kernel.errors import ConfigError, InputError
from embedding.training.request import TrainRequest

_FILE, _ENDED = "training.json", "finished.json"
_FORMAT = 1
"""Version of that file."""
_FREE: dict[str, Any] = {
    **dict.fromkeys(("out", "state_dir", "timeout", "corpus"), True),
    "server": {"checkpoint_every_s", "device"},
}
"""What may differ when a training goes on; the corpus is compared by its content's marks."""
_ABSENT = {
    "exchange.cache_bytes": 0,
    "server.shards": 1,
    "server.split": "rows",
    "topology.aggregators": 0,
    "topology.server_groups": 1,
}
"""What these settings are without the laboratory. Its others tune what these and those of the core
choose, and are compared where both sides have them."""


@dataclass
class TrainingResume:
    """The state folder of one training.

    total    tokens of an epoch, once they were counted and the words are in a checkpoint
    resumed  whether an earlier call left something
    """

    folder: Path
    request: dict[str, Any]
    total: int | None = None
    resumed: bool = False

    @property
    def server(self) -> Path:
        return self.folder / "server"

    @property
    def snapshots(self) -> Path:
        return self.folder / "snapshots"

    def save(self) -> None:
        with replaced(self.folder / _FILE) as file:
            content = {"format": _FORMAT, "request": self.request, "total": self.total}
            file.write(json.dumps(content).encode())

    def drop_uncheckpointed(self) -> None:
        """Remove snapshots that no checkpoint knows of: what they hold is learnt and cut again."""
        known: set[str] = set()
        for manifest in sorted(self.server.glob("checkpoint-*/manifest.json"))[-1:]:
            with suppress(OSError, ValueError, KeyError, TypeError):
                facts = json.loads(manifest.read_text())["facts"]
                closed = facts["closed" if facts["format"] == 3 else "snapshots"]
                known = {str(window["snapshot"]) for window in closed.values()}
        for folder in self.snapshots.iterdir():
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def resuming(request: TrainRequest) -> Iterator[TrainingResume | None]:
    """The state folder, begun or found again; it goes when the block ends without an error.

    None where none was asked for. Raises ConfigError for a folder that holds something else, or a
    training with other settings or of another corpus, and InputError for one that cannot be
    written.
    """
    if request.state_dir is None:
        yield None
        return
    resume = _open(request.state_dir, _marks(request))
    yield resume
    (resume.folder / _FILE).rename(resume.folder / _ENDED)
    _clear(resume.folder)
    with suppress(OSError):
        resume.folder.rmdir()


def _clear(folder: Path) -> None:
    """Remove what a training that has ended left."""
    if (folder / _ENDED).exists():
        for name in ("server", "snapshots"):
            shutil.rmtree(folder / name, ignore_errors=True)
        (folder / _ENDED).unlink()


def _open(folder: Path, marks: dict[str, Any]) -> TrainingResume:
    try:
        saved = json.loads((folder / _FILE).read_text())
    except FileNotFoundError:
        return _begin(folder, marks)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"state_dir {folder}: its {_FILE} cannot be read; give a new or empty folder."
        ) from error
    if why := unreadable(saved.get("format"), (_FORMAT,)):
        raise ConfigError(f"state_dir {folder}: {_FILE}: {why}.")
    before, given = _by_name(saved["request"]), _by_name(marks)
    for name in sorted({*given, *before}):
        was = before.get(name, _ABSENT.get(name, given.get(name)))
        now = given.get(name, _ABSENT.get(name, was))
        if was != now:
            raise ConfigError(
                f"state_dir {folder}: it holds a training begun with {name} {_shown(was)}, and "
                f"now it is {_shown(now)}; use the same, or a new or empty folder."
            )
    (folder / "snapshots").mkdir(exist_ok=True)
    resume = TrainingResume(folder, marks, saved["total"], resumed=True)
    resume.drop_uncheckpointed()
    return resume


def _begin(folder: Path, marks: dict[str, Any]) -> TrainingResume:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _clear(folder)
        if any(folder.iterdir()):
            raise ConfigError(
                f"state_dir {folder}: it holds something else than a training; a new or empty "
                "folder is expected."
            )
        (folder / "snapshots").mkdir()
        resume = TrainingResume(folder, marks)
        resume.save()
    except OSError as error:
        raise InputError(
            f"state_dir {folder}: it cannot be written ({error.strerror or error}); a folder that "
            "can be is expected."
        ) from error
    return resume


def _marks(request: TrainRequest) -> dict[str, Any]:
    """What must be the same for a training to go on, JSON-safe."""
    path = request.corpus.resolve()
    stat = path.stat()
    corpus = {"path": str(path), "bytes": stat.st_size, "changed_ns": stat.st_mtime_ns}
    return {"corpus": corpus, **request.model_dump(mode="json", exclude=_FREE)}


def _by_name(marks: dict[str, Any]) -> dict[str, Any]:
    """Each setting by section and name, as in `model.dim`; the corpus is one."""
    named: dict[str, Any] = {}
    for name, value in marks.items():
        if isinstance(value, dict) and name != "corpus":
            named |= {f"{name}.{key}": setting for key, setting in value.items()}
        else:
            named[name] = value
    return named


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}…"
