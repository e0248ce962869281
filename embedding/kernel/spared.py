"""Imported before Arrow is used: Arrow need not import pandas, nor numba SciPy's BLAS.

Where there is a pandas, Arrow imports it when it is first given a list, only to know its types.
That takes a part of a second and 40 MB in each process, and none here gives it a pandas object.
Arrow looks once: here, and it finds none. `to_pandas` and `from_pandas` look again, and find it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa


class _Without:
    """Finds no module of a package, for one thread."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._thread = threading.get_ident()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if name.partition(".")[0] == self._package and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{name} is not needed here", name=name)
        return None


def _look(package: str, looked_for: Callable[[], object]) -> None:
    finder = _Without(package)
    sys.meta_path.insert(0, finder)
    try:
        looked_for()
    finally:
        sys.meta_path.remove(finder)


def spare_blas() -> None:
    """Before a first kernel is loaded: numba then looks for SciPy's BLAS, and is to find none.

    No kernel calls it, and it takes as long to import as numba itself.
    """

    def looked_for() -> None:
        from numba.np import arraymath  # noqa: F401

    if "scipy.linalg" not in sys.modules:
        _look("scipy", looked_for)


if "pandas" not in sys.modules:
    _look("pandas", lambda: pa.array([]))
