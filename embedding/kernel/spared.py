"""Imported before Arrow is used: Arrow need not import pandas.

Where there is a pandas, Arrow imports it when it is first given a list, only to know its types.
That takes a part of a second and 40 MB in each process, and none here gives it a pandas object.
Arrow looks once: here, and it finds none. `to_pandas` and `from_pandas` look again, and find it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa


class _WithoutPandas:
    """Finds no pandas, for one thread."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if name == "pandas" and threading.get_ident() == self._thread:
            raise ModuleNotFoundError("Arrow needs no pandas here", name=name)
        return None


def _look() -> None:
    finder = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(finder)


if "pandas" not in sys.modules:
    _look()
