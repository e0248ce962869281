"""Write a small archive of every store as this tree writes it, which later trees must open.

python tests/stores/make.py NAME      writes tests/stores/NAME.tar.xz
"""

from __future__ import annotations

import json
import lzma
import shutil
import sqlite3
import sys
import tarfile
import tempfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

from backup.conftest import AT, DAY, WORDS, Pusher, fill_stores, home_settings, serving_home  # noqa: E402
from embedding.kernel.records import Window  # noqa: E402
from embedding.settings import Settings  # noqa: E402
from embedding.snapshots.store import SnapshotStore  # noqa: E402
from embedding.training import TrainRequest  # noqa: E402
from embedding.training.resume import resuming  # noqa: E402
from embedding.trends import storage  # noqa: E402
from embedding.trends.report import build_report  # noqa: E402

_SECONDS = 86_400
_KEPT = ("checkpoints", "frontier", "snapshots", "evidence", "trends", "rejected-sources.json")
WHEN = datetime(2020, 1, 1, tzinfo=UTC)
WHY = "a test"


def learnt(settings: Settings, days: int = 2) -> dict[str, object]:
    """Days of one word more each, with their snapshots; what a reader must find."""
    with serving_home(settings) as server:
        node = Pusher(settings, server)
        for day in range(days):
            step = timedelta(days=day)
            node.learn([*WORDS, f"새말{day}"], 1.0 + day, AT + _SECONDS * day)
            if settings.server.shards == 1:
                server.snapshotter.cut(Window(DAY.start + step, DAY.end + step))
        words = [*WORDS, "새말0"]
        vectors, contexts = node.rows(words)
        status = server.status()
        facts = {
            "words": words,
            "vectors": vectors.tolist(),
            "contexts": contexts.tolist(),
            "sequence": node.sequence,
            "tokens": status["tokens"],
            "vocabulary": status["vocabulary"],
        }
        node.client.close()
    return facts


def write(into: Path) -> None:
    """Every store, and facts.json of what is in them."""
    into.mkdir()
    settings = home_settings(into / "home")
    facts = {"home": learnt(settings)}
    fill_stores(settings)
    store = SnapshotStore(settings.paths.snapshots)
    first, last = store.list()
    storage.save(build_report(store, last.id), settings.paths.trends)
    store.withdraw([first.id], WHY)
    facts["snapshots"] = {"first": first.id, "last": last.id}
    facts["sharded"] = learnt(home_settings(into / "sharded", shards=2), 1)
    with closing(sqlite3.connect(settings.paths.frontier / "yeoron.db")) as database:
        database.execute("PRAGMA journal_mode=DELETE")
        database.execute("PRAGMA page_size=512")
        database.execute("VACUUM")
    _training(into / "training")
    for home in ("home", "sharded"):
        for path in (into / home).iterdir():
            if path.name not in _KEPT:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    (into / "sources.toml").unlink()
    (into / "facts.json").write_text(json.dumps(facts, ensure_ascii=False), "utf-8")


class _Cut(BaseException):
    """A training that is killed."""


def _training(folder: Path) -> None:
    folder.mkdir()
    corpus = folder / "corpus.txt"
    corpus.write_text("말 글\n", "utf-8")
    try:
        with resuming(TrainRequest(corpus=corpus, state_dir=folder / "state")):
            raise _Cut
    except _Cut:
        return


def pack(folder: Path, archive: Path) -> None:
    """As a tar that is the same whoever makes it."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if member.name.endswith(("/lock", "/.lock", "-shm", "-wal")):
            return None
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = int(WHEN.timestamp())
        return member

    with lzma.open(archive, "wb", preset=9) as file, tarfile.open(fileobj=file, mode="w") as tar:
        tar.add(folder, arcname="stores", filter=plain)


def main(name: str) -> None:
    """Write the archive."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "stores"
        write(made)
        pack(made, FOLDER / f"{name}.tar.xz")


if __name__ == "__main__":
    main(sys.argv[1])
