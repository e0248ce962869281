"""The thin shell around one end of a pipe: a thread that reads, a thread that writes.

Callers never touch the pipe: they append frames to a list that the writer sends, and wait on a
condition that the reader wakes. So every timeout holds even when the other process is stopped.
Threads start at first use, because an end must travel to its process before it is used.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection

from embedding.kernel.errors import InputError, PlatformError
from embedding.stream import frames
from embedding.stream.frames import FrameKind

Handler = Callable[[FrameKind, int, bytes], None]


class Link:
    """One end of a two-way pipe that carries frames.

    `changed` is notified after each event; `handle` is called under it for each frame, `lost` under
    it once when the pipe ended.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.changed = threading.Condition()
        self._outgoing: deque[bytes] = deque()
        self._writing = False
        self._stopped = False
        self._broken = False
        self._threads: tuple[threading.Thread, ...] = ()

    @property
    def started(self) -> bool:
        """Whether this process uses this end."""
        return bool(self._threads)

    def start(self, handle: Handler, lost: Callable[[], None]) -> None:
        """Start both threads; later calls do nothing."""
        with self.changed:
            if self._threads or self._stopped:
                return
            self._threads = (
                threading.Thread(target=self._read, args=(handle, lost), daemon=True),
                threading.Thread(target=self._write, daemon=True),
            )
            for thread in self._threads:
                thread.start()

    def send(self, kind: FrameKind, number: int = 0, payload: bytes | memoryview = b"") -> None:
        """Hand a frame to the writer; never blocks. The caller holds `changed`."""
        if self._broken or self._stopped:
            return
        self._outgoing.append(frames.encode(kind, number, payload))
        self.changed.notify_all()

    def flush(self, timeout: float) -> bool:
        """Wait until everything was written; False when it was not within `timeout` seconds."""
        with self.changed:
            return self.changed.wait_for(
                lambda: self._stopped or not (self._outgoing or self._writing), timeout
            )

    def stop(self) -> None:
        """End both threads and close this process's copy of the pipe; later calls do nothing."""
        with self.changed:
            if self._stopped:
                return
            self._stopped = True
            self.changed.notify_all()
        _shut(self.connection)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(timeout=5.0)
        self.connection.close()

    def drop(self) -> None:
        """Close this process's copy of an end that another process uses, without ending it."""
        if self._threads:
            raise PlatformError("queue: this end is in use here and cannot be released; close it.")
        self._stopped = True
        self.connection.close()

    def _read(self, handle: Handler, lost: Callable[[], None]) -> None:
        """Reader: hand each frame over until the pipe ends or sends something that is no frame."""
        try:
            while True:
                frame = frames.decode(self.connection.recv_bytes())
                with self.changed:
                    handle(*frame)
                    self.changed.notify_all()
        except (EOFError, OSError, InputError):
            self._abandon()
            with self.changed:
                lost()
                self.changed.notify_all()

    def _write(self) -> None:
        """Writer: send what was handed over, in order."""
        while True:
            with self.changed:
                self._writing = False
                self.changed.notify_all()
                self.changed.wait_for(lambda: self._outgoing or self._stopped or self._broken)
                if self._stopped or self._broken:
                    return
                frame = self._outgoing.popleft()
                self._writing = True
            try:
                self.connection.send_bytes(frame)
            except (OSError, ValueError):
                # The reader says when the other side is gone, after all that it sent was read.
                self._abandon()
                return

    def _abandon(self) -> None:
        with self.changed:
            self._broken = True
            self._outgoing.clear()
            self._writing = False
            self.changed.notify_all()

    def __getstate__(self) -> Connection:
        if self._threads or self._stopped:
            raise PlatformError(
                "queue: this end is in use or closed here and cannot move to another process; "
                "hand it to Process(args=…) before the first put or get."
            )
        return self.connection

    def __setstate__(self, connection: Connection) -> None:
        self.__init__(connection)  # type: ignore[misc]


def _shut(connection: Connection) -> None:
    """Wake both threads: a shutdown ends a read that only closing would leave hanging."""
    try:
        handle = socket.socket(fileno=os.dup(connection.fileno()))
    except OSError:
        return
    with handle, contextlib.suppress(OSError):
        handle.shutdown(socket.SHUT_RDWR)
