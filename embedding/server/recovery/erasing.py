"""Taking a word or a source out of a server's state folder, while no server runs.

The newest checkpoint is restored, changed, and written as a new one; then those before it and their
journals go. Killed before that, all of them are as they were; killed after it, the next call
removes what is left.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from embedding.kernel.errors import PlatformError
from embedding.server.config import ServerConfig
from embedding.server.parts import Erasure
from embedding.server.recovery.checkpoint import CheckpointFolder
from embedding.server.recovery.restoring import Recovery
from embedding.server.recovery.seeding import put_aside
from embedding.server.state import ServerState
from embedding.server.words.digests import WordDigests


@dataclass(frozen=True)
class Erased:
    """What a state folder held.

    row      whether the word had a row
    waiting  whether it was counted without one
    copies   folders of states that were put aside by rollbacks; they were removed
    """

    row: bool
    waiting: bool
    copies: tuple[str, ...]


def erase_state(
    config: ServerConfig,
    make: Callable[[WordDigests], ServerState],
    *,
    word: str | None = None,
    source: str | None = None,
    dry: bool = False,
) -> Erased:
    """Take a word or a source out of `config.state_dir`; a word gets no row again.

    make  an empty state of `config` with these digests
    dry   only say what is there

    ConfigError when a server is running there or the folder cannot be used, PlatformError when the
    new checkpoint cannot be written.
    """
    path = Path(str(config.state_dir))
    copies = put_aside(path)
    names = tuple(one.name for one in copies)
    if not path.is_dir():
        return Erased(False, False, names)
    folder = CheckpointFolder(path, keep=1)
    if not folder.numbers():
        folder.close()
        return Erased(False, False, names)
    digests = WordDigests(folder.waiting_key(), folder.refused())
    state = make(digests)
    recovery = Recovery(state, folder, every_s=3600.0)
    found = Erased(
        word is not None and int(state.vocabulary.ids([word])[0]) >= 0,
        word is not None and digests.of(word) in state.vocabulary.candidates,
        names,
    )
    if dry:
        recovery.stop()
        return found
    ids = state.vocabulary.ids([] if word is None else [word])
    try:
        if word is not None:
            folder.refuse(digests.of(word))
        erasure = Erasure(word, source, ids[ids >= 0], digests.written(word or ""))
        for part in state.parts.values():
            part.erase(erasure)
    except BaseException:
        recovery.stop()  # never started, it writes nothing: what was there is still there
        raise
    # Last: the word is known here until its rows are gone, wherever they lie.
    state.words.install([], erasure.ids)
    if (failed := recovery.write_once()) is not None:
        raise PlatformError(f"state_dir {path}: {failed}; what was there is still there.")
    for left in _older(path):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    for copy in copies:
        shutil.rmtree(copy)
    return found


def _older(path: Path) -> list[Path]:
    """Checkpoints before the newest, and journals before its own."""
    newest = max(path.glob("checkpoint-*"))
    journal = f"journal-{newest.name.removeprefix('checkpoint-')}.jsonl"
    found = [one for one in path.glob("checkpoint-*") if one.name < newest.name]
    return found + [one for one in path.glob("journal-*.jsonl") if one.name < journal]
