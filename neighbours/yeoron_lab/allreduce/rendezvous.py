"""Where nodes that all-reduce find each other: a folder of their user alone.

Nodes of one training run on one machine. What they tell each other are small files, and their sums
go through Unix sockets in the same folder. Nobody else's process can open either.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from embedding.kernel.errors import ExchangeError, PlatformError


@contextmanager
def rendezvous() -> Iterator[Path]:
    """A new folder of mode 700, there for the length of a `with` block."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="yeoron-ring-"))
    except OSError as error:
        raise PlatformError(
            f"rendezvous: no folder could be made in {tempfile.gettempdir()} ({error.strerror})."
        ) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Rendezvous:
    """Values by key, for all processes that know the folder.

    Raises ExchangeError once the folder is gone.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._require()

    def has(self, key: str) -> bool:
        """Whether there is a value."""
        if self._file(key).exists():
            return True
        self._require()
        return False

    def get(self, key: str) -> Any:
        """The value, which is there."""
        try:
            return json.loads(self._file(key).read_text(encoding="utf-8"))
        except OSError as error:
            raise self._gone() from error

    def put(self, key: str, value: object) -> None:
        """Set the value, in place of the one that is there."""
        draft = self._draft(value)
        try:
            draft.replace(self._file(key))
        except OSError as error:
            raise self._gone() from error

    def put_first(self, key: str, value: object) -> None:
        """Set the value unless there is one: of several that do it at once, the first counts."""
        draft = self._draft(value)
        try:
            with suppress(FileExistsError):
                os.link(draft, self._file(key))
            draft.unlink()
        except OSError as error:
            raise self._gone() from error

    def _file(self, key: str) -> Path:
        return self.folder / quote(key, safe="")

    def _draft(self, value: object) -> Path:
        path = self.folder / f".{secrets.token_hex(8)}"
        try:
            path.write_text(json.dumps(value), encoding="utf-8")
        except OSError as error:
            raise self._gone() from error
        return path

    def _require(self) -> None:
        if not self.folder.is_dir():
            raise self._gone()

    def _gone(self) -> ExchangeError:
        return ExchangeError(f"rendezvous {self.folder}: it is gone; its training has ended.")
