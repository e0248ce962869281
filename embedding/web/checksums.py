"""Compares the digests of snapshots in the background, once each, since files can rot unseen."""

from __future__ import annotations

import logging
import queue
import threading

from embedding.kernel.errors import SnapshotError
from embedding.snapshots.snapshot import Snapshot

log = logging.getLogger(__name__)


class Checksums:
    """Takes opened snapshots; `damaged` names those whose files are not what was published."""

    def __init__(self) -> None:
        self.damaged: dict[str, str] = {}
        self._waiting: queue.SimpleQueue[Snapshot] = queue.SimpleQueue()
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def check(self, snapshot: Snapshot) -> None:
        """Compare this one when those before it are done; a snapshot is compared once."""
        with self._lock:
            if snapshot.id in self._seen:
                return
            self._seen.add(snapshot.id)
            self._waiting.put(snapshot)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="checksums", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                snapshot = self._waiting.get(timeout=1.0)
            except queue.Empty:
                with self._lock:
                    if self._waiting.empty():
                        self._thread = None
                        return
                continue
            try:
                snapshot.verify()
            except SnapshotError as error:
                log.warning("%s", error)
                self.damaged[snapshot.id] = str(error)
            except OSError as error:
                log.warning("snapshot %s: not compared: %s", snapshot.id, error)
