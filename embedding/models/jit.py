"""How kernels are compiled: without the GIL, and once per machine and version of this room.

numba keys its cache by the file of the compiled function only. A kernel inlines instructions of
other files, so the cache folder carries a digest of all of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import platformdirs
from numba.core import config as numba_config
from numba.extending import intrinsic

# Reassociation and contraction only: NaN and infinity keep their meaning.
MATH = {"reassoc", "contract", "arcp", "nsz"}


@cache
def cache_folder() -> Path:
    """A writable folder for compiled kernels; NUMBA_CACHE_DIR has the first word."""
    digest = hashlib.sha256(numba.__version__.encode())
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    name = f"kernels-{digest.hexdigest()[:16]}"
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    roots = [Path(chosen)] if chosen else []
    roots.append(platformdirs.user_cache_path("yeoron"))
    with contextlib.suppress(FileNotFoundError):  # there may be no writable place for it at all
        roots.append(Path(tempfile.gettempdir()))
    for root in roots:
        folder = root / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix=name))


def instruction(function: Callable[..., Any]) -> Callable[..., Any]:
    """`numba.extending.intrinsic`, typed."""
    compiled: Callable[..., Any] = intrinsic(function)
    return compiled


def bare(function: Callable[..., Any]) -> Any:
    """A kernel that allocates nothing, compiled without reference counts.

    In a loop of a hundred nanoseconds the atomic counts of its arrays are a tenth of the time.
    Callers inline it: else a process that has just compiled both runs another copy of it, its
    sums in another order, than one that found the caller in the cache, and the bytes differ.
    """
    return kernel(_nrt=False, forceinline=True)(function)


def kernel(*signatures: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit` with this room's options and cache folder."""

    def compile_in_folder(function: Callable[..., Any]) -> Any:
        before = numba_config.CACHE_DIR
        numba_config.CACHE_DIR = str(cache_folder())
        try:
            settings = {"nogil": True, "cache": True, "fastmath": MATH, "error_model": "numpy"}
            return numba.njit(*signatures, **(settings | options))(function)
        finally:
            numba_config.CACHE_DIR = before

    return compile_in_folder
