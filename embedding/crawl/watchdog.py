"""No browser outlives its crawler, however the crawler ends.

Playwright's driver closes Chromium when its own standard input ends, but a driver that is stopped
or killed together with the crawler does not. The tether is a shell in a session of its own that
reads from a pipe: when nobody holds the other end any more, it kills the browser's process group
and the driver, and removes the folders in which it wrote.
"""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

_SCRIPT = 'read -r x; [ "$x" = let ] && exit; kill -9 "-$1"; kill -9 "$2"; rm -rf -- "$3" "$4"'
_PATIENCE = 5.0


class Watchdog:
    """Ties the process group `group` and the process `driver` to this process."""

    def __init__(self, group: int, driver: int, folders: tuple[Path, Path]) -> None:
        self._shell = subprocess.Popen(  # noqa: S603  (a fixed script; numbers and one path)
            ["/bin/sh", "-c", _SCRIPT, "sh", str(group), str(driver), *map(str, folders)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def release(self) -> None:
        """The processes have ended by themselves: kill nothing, as their numbers may be reused."""
        with contextlib.suppress(OSError, ValueError):
            self._shell.communicate(b"let\n", timeout=_PATIENCE)
        if self._shell.poll() is None:
            self._shell.kill()
            self._shell.wait()
