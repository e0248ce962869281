"""When checkpoints are written: at intervals, when asked for, and at the end."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod

from embedding.kernel.errors import UnavailableError
from embedding.server.parts import Companion

logger = logging.getLogger(__name__)

AGAIN_S = 2.0
"""After which a checkpoint is tried again that what is away, and comes back, has kept from being
written; twice as long each time, until the usual interval is reached."""


class Checkpointer(Companion, ABC):
    """Writes checkpoints on a thread of its own."""

    def __init__(self, *, every_s: float) -> None:
        self._every_s = self._pause_s = every_s
        self._again_s = AGAIN_S
        self._asked = 0
        self._done = 0
        self._failed: str | None = None
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="checkpoint", daemon=True)

    @abstractmethod
    def _write(self) -> None:
        """Write one of what is there now."""

    @abstractmethod
    def _ended(self) -> None:
        """The last one was written."""

    @property
    def failed(self) -> str | None:
        """Why the last checkpoint could not be written; None when it was."""
        return self._failed

    def opened(self) -> None:
        """Begin to write checkpoints at intervals."""
        self._thread.start()

    def checkpoint(self, *, wait: bool) -> None:
        if (failed := self.request(wait=wait)) is not None:
            raise UnavailableError(f"{failed}.")

    def ailing(self) -> list[str]:
        return [] if self._failed is None else [f"the last checkpoint failed: {self._failed}."]

    def request(self, *, wait: bool, timeout_s: float = 300.0) -> str | None:
        """Ask for a checkpoint of what is there now; with `wait`, why it failed, None if not."""
        with self._changed:
            self._asked += 1
            request = self._asked
            self._changed.notify_all()
            if not wait:
                return None
            if not self._changed.wait_for(lambda: self._done >= request, timeout=timeout_s):
                return f"no checkpoint was complete after {timeout_s:.0f} s"
            return self._failed

    def stop(self) -> None:
        """Write a last checkpoint and let the folder go."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout=600)
        self._ended()

    def write_once(self) -> str | None:
        """Write one and let the folder go; why it failed, None if not."""
        self.opened()
        self.stop()
        return self._failed

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._stopping or self._asked > self._done, timeout=self._pause_s
                )
                asked, stopping = self._asked, self._stopping
            failed = self._try_write()
            with self._changed:
                self._done, self._failed = asked, failed
                self._changed.notify_all()
            if stopping:
                return

    def _try_write(self) -> str | None:
        self._pause_s = self._every_s
        try:
            self._write()
            self._again_s = AGAIN_S
        except OSError as error:
            logger.error("a checkpoint could not be written: %s", error)
            return f"the checkpoint could not be written ({error.strerror or error})"
        except UnavailableError as error:
            self._pause_s = min(self._every_s, self._again_s)
            self._again_s *= 2
            logger.error("a checkpoint could not be written: %s", error)
            return f"the checkpoint could not be written ({str(error).rstrip('.')})"
        except Exception as error:
            logger.exception("a checkpoint could not be written")
            return f"the checkpoint could not be written ({type(error).__name__})"
        return None


def last_of(failed: str) -> str:
    """What it means that no checkpoint came after the failed one."""
    return (
        f"{failed}, and it was the last: what came after the one before it is in none; nodes that "
        "still run send it again to the next server of this folder."
    )
