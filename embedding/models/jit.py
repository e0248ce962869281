"""How kernels are compiled: without the GIL, and once per machine and version of the kernels.

numba keys its cache by the place and content of the compiled function's file only. A kernel inlines
instructions of other files, so the cache folder carries a digest of all files of kernels, and with
it nothing depends on where they lie: another clone of the same code compiles nothing.
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
from numba.core.caching import UserProvidedCacheLocator
from numba.extending import intrinsic

# Reassociation and contraction only: NaN and infinity keep their meaning.
MATH = {"reassoc", "contract", "arcp", "nsz"}
_PACKAGE = Path(__file__).parents[1]
FOLDERS = (
    "models",
    "exchange",
    "exchange/compression",
    "server/rows",
    "worker/corpus",
    "worker/learning",
    "worker/usage",
    "worker/words",
)
"""Where kernels and what they inline are."""


class KernelLocator(UserProvidedCacheLocator):  # type: ignore[misc]
    """Names the cache of a file by its place in this package, wherever the package lies."""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """Folder of the kernels of a file."""
        folder = Path(py_file).resolve().parent
        if not folder.is_relative_to(_PACKAGE):
            return str(super().get_suitable_cache_subpath(py_file))
        return "_".join(folder.relative_to(_PACKAGE).parts)


@cache
def cache_folder() -> Path:
    """A writable folder for compiled kernels; NUMBA_CACHE_DIR has the first word."""
    name = f"kernels-{_digest()}"
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


def _digest() -> str:
    """Of numba and of each file that has kernels or instructions."""
    digest = hashlib.sha256(numba.__version__.encode())
    for file in (file for folder in FOLDERS for file in sorted((_PACKAGE / folder).glob("*.py"))):
        content = file.read_bytes()
        if file.parent.name == "models" or b"embedding.models.jit" in content:
            digest.update(f"{file.relative_to(_PACKAGE)}:{len(content)}:".encode() + content)
    return digest.hexdigest()[:16]


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
        before = numba_config.CACHE_DIR, numba_config.CACHE_LOCATOR_CLASSES
        numba_config.CACHE_DIR = str(cache_folder())
        numba_config.CACHE_LOCATOR_CLASSES = f"{__name__}.{KernelLocator.__name__}"
        try:
            settings = {"nogil": True, "cache": True, "fastmath": MATH, "error_model": "numpy"}
            return numba.njit(*signatures, **(settings | options))(function)
        finally:
            numba_config.CACHE_DIR, numba_config.CACHE_LOCATOR_CLASSES = before

    return compile_in_folder
